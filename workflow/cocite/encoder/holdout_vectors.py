"""The vectors of a hold-out's documents where it also searches the corpus: they are papers, which are embedded then."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer

from cocite.core.progress import report
from cocite.core.searching import vector_blocks
from cocite.core.tables.files import VECTORS_AT_ONCE, checked_files, open_table, read_table, vector_column, write_table
from cocite.encoder.embedding import NO_ADAPTER, ROWS_WRITTEN


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
    files = checked_files(vectors, "paper_embeddings")
    dimension = open_table(files[0], "paper_embeddings").schema_arrow.field("vector").type.list_size
    selected, has_vector = np.zeros((len(papers), dimension), np.float32), np.zeros(len(papers), np.bool_)
    for places, block in vector_blocks(files, papers[order], VECTORS_AT_ONCE):
        selected[order[places]], has_vector[order[places]] = block, True
    [adapter] = adapters or [NO_ADAPTER]
    kept = np.flatnonzero(has_vector)
    schema = pa.schema({"adapter": pa.string(), "document": pa.string(), "vector": pa.list_(pa.float32(), dimension)})
    parts = (kept[start : start + ROWS_WRITTEN] for start in range(0, len(kept), ROWS_WRITTEN))
    rows = (
        pa.record_batch([[adapter] * len(part), names.take(part), vector_column(selected[part])], schema=schema)
        for part in parts
    )
    write_table(output, "document_embeddings", pa.RecordBatchReader.from_batches(schema, rows))
    report(f"{len(kept)} of {len(papers)} documents have the vector of their paper.")
