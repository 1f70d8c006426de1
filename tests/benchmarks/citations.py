"""Citations as skewed as real ones, generated into buckets of the table citations.

References per paper are log-normal, with the mean and spread of hci (22, σ of the logarithm .84). What is cited follows
preferential attachment in its mean field: the i-th paper of a field has a weight of i^−½ (Barabási and Albert, 1999).
Fields have 1,000 papers; nine of ten references of a paper stay in its own, so that its papers are
cited together again and again. Four times the citations go to the same papers.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from cocite.core.tables.files import write_table

CITED_PAPERS = 500_000
PAPERS_OF_A_FIELD = 1_000
MEAN_REFERENCES, SPREAD = 22.0, 0.84
MOST_REFERENCES = 1000
OWN_FIELD = 0.9
SCALE = 251
"""Ids are this far apart on average, as those of a release are when few papers of it are at hand."""
FAR_APART = 2**36 + 1
"""What ids are multiplied by to lie all over 63 bits; it is odd, so that buckets of two stay as they are."""
_FIELDS = CITED_PAPERS // PAPERS_OF_A_FIELD
_PAPERS_AT_ONCE = 20_000


def write_citations(folder: Path, *, citations: int, buckets: int, factor: int = 1) -> list[Path]:
    """Write at least so many citations into buckets by the citing paper, their ids times the factor; deterministic."""
    papers = int(citations / MEAN_REFERENCES * 1.03)
    paths = [folder / f"{bucket}.parquet" for bucket in range(buckets)]
    for bucket, path in enumerate(paths):
        rng = np.random.default_rng([citations, bucket])
        write_table(path, "citations", _batches(rng, papers // buckets, bucket, buckets, factor))
    return paths


def write_queries(path: Path, *, queries: int, factor: int = 1) -> None:
    """Make the most cited papers the queries, the same number in each field."""
    ids = np.arange(queries) * SCALE * factor
    write_table(path, "queries", pa.table({"corpusid": ids, "split": ["train"] * queries}))


def _batches(rng: np.random.Generator, papers: int, bucket: int, buckets: int, factor: int) -> Iterator[pa.RecordBatch]:
    first_id = CITED_PAPERS * SCALE // buckets + 1
    for first in range(0, papers, _PAPERS_AT_ONCE):
        count = min(_PAPERS_AT_ONCE, papers - first)
        drawn = rng.lognormal(np.log(MEAN_REFERENCES) - SPREAD**2 / 2, SPREAD, count)
        references = np.clip(drawn.round(), 1, MOST_REFERENCES).astype(np.int64)
        paper = np.repeat(np.arange(first, first + count), references)
        field = np.repeat(rng.integers(0, _FIELDS, count), references)
        elsewhere = rng.random(len(field)) >= OWN_FIELD
        field[elsewhere] = rng.integers(0, _FIELDS, int(elsewhere.sum()))
        pairs = np.unique(paper << 32 | _cited(rng, field))
        citing = (first_id + (pairs >> 32)) * buckets + bucket
        yield pa.record_batch(
            {
                "citing": citing * factor,
                "cited": (pairs & 0xFFFFFFFF) * factor,
                "influential": np.zeros(len(pairs), dtype=bool),
                "intents": pa.array([[]], pa.list_(pa.string())).take(pa.array(np.zeros(len(pairs), dtype=np.int8))),
            }
        )


def _cited(rng: np.random.Generator, field: np.ndarray) -> np.ndarray:
    """The id of a paper of each field, drawn by preferential attachment."""
    number = (PAPERS_OF_A_FIELD * rng.random(len(field)) ** 2).astype(np.int64)
    return (number * _FIELDS + field) * SCALE
