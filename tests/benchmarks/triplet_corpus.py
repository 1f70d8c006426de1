"""Papers with texts, queries and neighbours, made by a process of its own, whose memory is not what is measured."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from cocite.core.tables.files import write_table

LARGEST_ID = 280_000_000
FAR_APART = 2**34 + 1
"""What ids are multiplied by to lie all over 63 bits; it is odd, so that buckets of two stay as they are."""
BUCKETS = 2
VOCABULARY = 20_000
PAPERS_AT_ONCE = 20_000
QUERIES_AT_ONCE = 200
TITLE, ABSTRACT = (40, 120), (700, 1500)
"""Characters of a title and of an abstract, from and to; Semantic Scholar's have 80 and 1,100 on average."""


def main(folder: Path, papers: int, queries: int, k: int, factor: int = 1) -> None:
    """Write so many papers in buckets, their ids times the factor, queries, and one file of their k neighbours."""
    drawn = np.random.default_rng(1)
    ids = (np.sort(drawn.choice(LARGEST_ID, papers, replace=False)) + 1) * factor
    asked = np.sort(drawn.choice(ids, queries, replace=False))
    for bucket in range(BUCKETS):
        write_table(folder / f"papers/{bucket}.parquet", "papers", _papers(ids[ids % BUCKETS == bucket], drawn))
    split = pa.array(["train"] * queries)
    write_table(folder / "queries.parquet", "queries", pa.table({"corpusid": asked, "split": split}))
    write_table(folder / "neighbours/0.parquet", "neighbours", _neighbours(asked, ids, k, drawn))


def _papers(ids: np.ndarray, drawn: np.random.Generator) -> Iterator[pa.RecordBatch]:
    words = np.array([f"{number:x}{'abcdefgh'[: number % 8]}" for number in range(VOCABULARY)])
    text = np.frombuffer(" ".join(drawn.choice(words, 4_000_000)).encode(), dtype=np.uint8)
    for start in range(0, len(ids), PAPERS_AT_ONCE):
        some = ids[start : start + PAPERS_AT_ONCE]
        empty = dict.fromkeys(("year", "venue", "doi", "citation_count", "reference_count"), pa.nulls(len(some)))
        yield pa.RecordBatch.from_pydict(
            {
                "corpusid": some,
                "title": _texts(text, len(some), TITLE, drawn),
                "abstract": _texts(text, len(some), ABSTRACT, drawn),
                "has_text": [True] * len(some),
                "fields": pa.array([[]] * len(some), pa.list_(pa.string())),
                **empty,
            }
        )


def _texts(text: np.ndarray, count: int, sizes: tuple[int, int], drawn: np.random.Generator) -> pa.StringArray:
    lengths = drawn.integers(*sizes, count)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    starts = drawn.integers(0, len(text) - sizes[1], count)
    characters = text[np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])]
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(characters))


def _neighbours(asked: np.ndarray, ids: np.ndarray, k: int, drawn: np.random.Generator) -> Iterator[pa.RecordBatch]:
    rank = np.arange(1, k + 1, dtype=np.int32)
    for start in range(0, len(asked), QUERIES_AT_ONCE):
        some = asked[start : start + QUERIES_AT_ONCE]
        # Steps of one or more through the papers in a circle: k different ones, none of them the query.
        steps = drawn.integers(1, len(ids) // (k + 1), (len(some), k)).cumsum(axis=1)
        places = (np.searchsorted(ids, some)[:, None] + steps) % len(ids)
        yield pa.RecordBatch.from_pydict(
            {
                "query": np.repeat(some, k),
                "rank": np.tile(rank, len(some)),
                "neighbour": ids[drawn.permuted(places, axis=1)].ravel(),
                "distance": np.tile(rank.astype(np.float32), len(some)),
            }
        )
