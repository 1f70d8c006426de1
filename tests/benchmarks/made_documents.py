"""Documents with texts as long as those of real papers, and encoders, made by a process of its own."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.benchmarks.made_triplets import paper_text, write_encoder

from cocite.core.tables.files import write_table

AT_ONCE = 5000


def main(folder: Path, *counts: int) -> None:
    """Write tables of so many documents, an encoder of MiniLM's size, and one of a layer of width 128."""
    write_encoder(folder / "encoder")
    write_encoder(folder / "small", layers=1, hidden=128, heads=2)
    for documents in counts:
        write_documents(folder / f"{documents}.parquet", documents)


def write_documents(path: Path, number: int) -> None:
    write_table(path, "documents", _documents(number))


def _documents(number: int) -> Iterator[pa.RecordBatch]:
    drawn = np.random.default_rng(1)
    for start in range(0, number, AT_ONCE):
        names = [f"{document:08}" for document in range(start, min(start + AT_ONCE, number))]
        titles, abstracts = zip(*(paper_text(drawn) for _ in names), strict=True)
        more = pa.array([[]] * len(names), pa.list_(pa.string()))
        texts = {"title": pa.array(titles), "abstract": pa.array(abstracts)}
        yield pa.record_batch({"document": names, **texts, "more": more, "field": pa.nulls(len(names), pa.string())})
