"""The papers nearest to a text or a paper, as a trained model places them.

The distance is Euclidean, as in the benchmarks that models are ranked by. All vectors are gone through, some at a time:
memory does not grow with the corpus, time does. A text is embedded as the papers were.
"""

from glob import escape

import duckdb

from cocite.ground.errors import InputError
from cocite.people.inspection.answers import Answer
from cocite.people.inspection.models import Model
from cocite.people.inspection.papers import NO_RECORD, corpus_id, known_as
from cocite.tables.files import checked_files

_NEAREST = """
    WITH nearest AS (
        SELECT corpusid, list_distance(vector, $vector::FLOAT[]) AS distance
        FROM read_parquet($files) WHERE corpusid IS DISTINCT FROM $itself
        ORDER BY distance, corpusid LIMIT $limit
    )
    SELECT row_number() OVER (ORDER BY distance, nearest.corpusid) AS rank, distance, nearest.corpusid, year, title
    FROM nearest LEFT JOIN papers USING (corpusid) ORDER BY rank"""


def nearest_papers(db: duckdb.DuckDBPyConnection, model: Model, query: str, limit: int) -> Answer:
    """The nearest papers to a text; to a paper where the query is a corpus id, itself left out.

    Raises `InputError` where a paper has no vector, or a file of vectors is broken.
    """
    paper = corpus_id(query) if query.strip().isdecimal() else None
    files = [escape(str(path)) for path in checked_files(model.vectors, "paper_embeddings")]
    vector = _embed(model, query) if paper is None else _vector_of(db, model, paper, files)
    asked = f"“{query}”" if paper is None else f"paper {paper}, {known_as(db, paper) or NO_RECORD},"
    found = db.execute(_NEAREST, {"vector": vector, "files": files, "itself": paper, "limit": limit})
    return Answer(
        heading=f"Nearest to {asked} by model {model.name}, seed {model.seed}",
        columns=[name for name, *_ in found.description],
        rows=found.fetchall(),
    )


def _vector_of(db: duckdb.DuckDBPyConnection, model: Model, paper: int, files: list[str]) -> list[float]:
    query = "SELECT vector FROM read_parquet($files) WHERE corpusid = $paper"
    found = db.execute(query, {"files": files, "paper": paper}).fetchall()
    if not found:
        raise InputError(
            f"Paper {paper} has no vector of model {model.name}: it is no paper of the corpus, or has no text."
        )
    vector: list[float] = found[0][0]
    return vector


def _embed(model: Model, text: str) -> list[float]:
    """The vector that a model gives to a text."""
    from cocite.encoder.model import embed, open_encoder
    from cocite.encoder.tokens import tokenise

    encoder = open_encoder(model.folder)
    vector: list[float] = embed(encoder, tokenise([text], encoder.tokenizer))[0].tolist()
    return vector
