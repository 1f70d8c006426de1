"""The papers nearest to a text or a paper, as a trained model places them.

The distance is Euclidean, as in the benchmarks that models are ranked by. All vectors are gone through, some at a time:
memory does not grow with the corpus, time does. A text is embedded by sentence-transformers from the model's folder,
as anyone would who was given that folder.
"""

from typing import Any

import duckdb

from cocite.errors import InputError
from cocite.ground.written_ids import is_id
from cocite.looking.answers import Answer
from cocite.looking.models import Model
from cocite.tables import LARGEST_ID

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

    Raises `InputError` where a paper has no vector, and for a number that is too large for an id.
    """
    text = query.strip()
    if text.isdecimal() and not is_id(text):
        raise InputError(f"{text} is not a corpus id; it must be a whole number from 0 to {LARGEST_ID:,}.")
    paper = int(text) if is_id(text) else None
    vector = _embed(model, query) if paper is None else _vector_of(db, model, paper)
    asked = f"“{query}”" if paper is None else f"paper {paper}, “{_title(db, paper)}”"
    files = [str(path) for path in model.vectors]
    found = db.execute(_NEAREST, {"vector": vector, "files": files, "itself": paper, "limit": limit})
    return Answer(
        heading=f"Nearest to {asked} by model {model.name}, seed {model.seed}",
        columns=[name for name, *_ in found.description],
        rows=found.fetchall(),
    )


def _vector_of(db: duckdb.DuckDBPyConnection, model: Model, paper: int) -> list[float]:
    files = [str(path) for path in model.vectors]
    query = "SELECT vector FROM read_parquet($files) WHERE corpusid = $paper"
    found = db.execute(query, {"files": files, "paper": paper}).fetchall()
    if not found:
        raise InputError(
            f"Paper {paper} has no vector of model {model.name}: it is no paper of the corpus, or has no text."
        )
    vector: list[float] = found[0][0]
    return vector


def _title(db: duckdb.DuckDBPyConnection, paper: int) -> Any:
    ((title,),) = db.execute("SELECT title FROM papers WHERE corpusid = $paper", {"paper": paper}).fetchall()
    return title


def _embed(model: Model, text: str) -> list[float]:
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    encoder = SentenceTransformer(
        str(model.folder), device="cpu", local_files_only=True, model_kwargs={"use_safetensors": True}
    )
    vector: list[float] = encoder.encode(text, show_progress_bar=False).tolist()
    return vector
