"""The vectors of a hold-out's documents where it also searches the corpus: they are papers, which are embedded then."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer

from cocite.core.progress import report
from cocite.core.tables.files import read_table, vector_column, vectors_of_papers, write_table

ROWS_WRITTEN = 4096
"""As many as an embedding writes together: the tables have the same bytes. Importing it would import torch."""


def select_vectors(
    documents: Annotated[Path, typer.Argument(help="The table documents, whose ids are those of papers.")],
    vectors: Annotated[Path, typer.Option(help="Folder of the tables paper_embeddings of all buckets.")],
    output: Annotated[Path, typer.Option(help="The table document_embeddings.")],
    adapters: Annotated[
        Sequence[str], typer.Option(help="The adapter by which the papers were embedded; left out for none.")
    ] = (),
) -> None:
    """Write the vectors of papers as those of documents, in the order of these; one without a vector is left out."""
    names = read_table(documents, "documents", ["document"])["document"].combine_chunks()
    papers = names.cast(pa.int64()).to_numpy()
    order = np.argsort(papers)
    of_papers, is_there = vectors_of_papers(vectors, "paper_embeddings", papers[order])
    place = np.argsort(order)
    kept = np.flatnonzero(is_there[place])
    [adapter] = adapters or [""]
    vector = pa.list_(pa.float32(), of_papers.shape[1])
    schema = pa.schema({"adapter": pa.string(), "document": pa.string(), "vector": vector})
    parts = (kept[start : start + ROWS_WRITTEN] for start in range(0, len(kept), ROWS_WRITTEN))
    rows = (
        pa.record_batch([[adapter] * len(part), names.take(part), vector_column(of_papers[place[part]])], schema=schema)
        for part in parts
    )
    write_table(output, "document_embeddings", pa.RecordBatchReader.from_batches(schema, rows))
    report(f"{len(kept)} of {len(papers)} documents have the vector of their paper.")
