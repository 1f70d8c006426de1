"""That a published folder embeds as the run did: by CoCite, and by sentence-transformers where that opens it."""

from pathlib import Path

import numpy as np
import polars as pl

from cocite.config.stale import configuration_of
from cocite.core.errors import InputError
from cocite.core.tables.files import verified_files
from cocite.tools.inspection.nearest import Model

DOCUMENTS = 8
"""Documents of each benchmark that are embedded again."""
LEAST_COSINE = 0.999
"""Between two vectors of a document; in bfloat16 they differ in their third digit."""


def check_vectors(results: Path, model: Model, folder: Path) -> int:
    """Embed some documents of the run by the encoder in a folder; return how many.

    Raises `InputError` where it cannot be opened, or one has another vector than the run has given it.
    """
    from cocite.encoder.adapters import adapters_in
    from cocite.encoder.model import open_encoder
    from cocite.encoder.poolings import is_by_sentence
    from cocite.encoder.sentence_wise import embed_texts

    encoder = open_encoder(folder)
    plain = not (is_by_sentence(encoder.pooling) or encoder.tokenizer.reading.sentence_wise or adapters_in(folder))
    checked = 0
    for benchmark in (configuration_of(results) or {})["benchmarks"]:
        known = _known(results, model, benchmark)
        texts = [encoder.tokenizer.document(row["document"], row) for row in known.iter_rows(named=True)]
        if not texts or encoder.tokenizer.reading.fields != ("title", "abstract"):
            continue
        documents, expected = known["document"].to_list(), np.stack(known["vector"].to_list())
        _compare(documents, embed_texts(encoder, texts), expected, "CoCite")
        if plain:
            _compare(documents, _by_library(folder, [each.text for each in texts]), expected, "sentence-transformers")
        checked += len(texts)
    return checked


def _known(results: Path, model: Model, benchmark: str) -> pl.DataFrame:
    """Some documents of a benchmark with title and abstract, and the vectors that the run has given them."""
    documents = results / f"evaluation/{benchmark}/documents.parquet"
    vectors = results / f"encoder/{model.name}/seed-{model.seed}/embeddings/{benchmark}.parquet"
    if not (documents.is_file() and vectors.is_file()):
        return pl.DataFrame()
    read = pl.scan_parquet(verified_files(documents, "documents"))
    texts = read.filter(pl.col("title").is_not_null(), pl.col("abstract").is_not_null())
    whole = texts.filter(pl.col("more").list.len() == 0).select("document", "title", "abstract")
    embedded = pl.scan_parquet(verified_files(vectors, "document_embeddings"))
    plain = embedded.filter(pl.col("adapter") == "").select("document", "vector")
    return whole.join(plain, on="document").sort("document").head(DOCUMENTS).collect()


def _by_library(folder: Path, texts: list[str]) -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    vectors: np.ndarray = SentenceTransformer(str(folder), device="cpu", local_files_only=True).encode(texts)
    return vectors


def _compare(documents: list[str], found: np.ndarray, expected: np.ndarray, library: str) -> None:
    """Raise where the vectors of a document differ; those of the run may have been cut."""
    found = found[:, : expected.shape[1]]
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
    cosines = (found * expected).sum(axis=1) / np.maximum(lengths, 1e-12)
    worst = int(cosines.argmin())
    if cosines[worst] < LEAST_COSINE:
        raise InputError(
            f"Opened by {library}, the encoder gives document {documents[worst]} another vector than in the run "
            f"(cosine {cosines[worst]:.4f})."
        )
