"""Embed documents of a benchmark, or papers of the corpus, by a baseline: a table of texts in, one of vectors out."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import typer

from cocite.baselines.steps import Embedding, GivenSources
from cocite.baselines.training import read_trained
from cocite.config.baseline import Baseline
from cocite.config.baselines import AnyBaseline
from cocite.config.settings import GivenAsJson
from cocite.core.errors import InputError
from cocite.core.options import Output, Seed, Threads
from cocite.core.progress import report
from cocite.core.tables import TABLES
from cocite.core.tables.files import count_rows, vector_column, write_table

TABLES_OF = {"documents": "baseline_embeddings", "papers": "baseline_paper_embeddings"}
"""The tables that can be embedded, and the tables that their vectors make."""


def embed_documents(
    source: Annotated[Path, typer.Argument(help="Table documents of a benchmark, or a bucket of papers.")],
    *,
    table: Annotated[Literal["documents", "papers"], typer.Option(help="Which of the two it is.")] = "documents",
    settings: GivenAsJson[AnyBaseline],
    model: Annotated[
        Path | None, typer.Option(help="Folder of the trained model; left out for what is not trained.")
    ] = None,
    sources: GivenSources,
    seed: Seed,
    threads: Threads,
    output: Output,
) -> None:
    """Embed documents by a baseline; one that was trained has the settings that it was trained with.

    Documents that it has no vector for are left out. Raises `InputError` where a vector is not finite.
    """
    baseline = read_trained(model) if model else settings
    embedding = Embedding(**vars(sources), table=table, source=source, model=model, seed=seed, threads=threads)
    total = count_rows(source)
    written = write_table(output, TABLES_OF[table], _rows(baseline, embedding, TABLES_OF[table]))
    report(f"Embedded {written:,} of {total:,} {table}; {total - written:,} have no vector.")


def _rows(baseline: Baseline, embedding: Embedding, table: str) -> Iterator[pa.RecordBatch]:
    columns = TABLES[table].columns
    key = TABLES[table].key[-1]
    for names, given in baseline.embed(embedding):
        vectors = np.asarray(given, dtype=np.float32)
        broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(broken):
            raise InputError(
                f"The baseline gives {names[broken[0]]!r} of {embedding.source} a vector that is not finite."
            )
        made = {key: pa.array(names, columns[key].type), "vector": vector_column(vectors)}
        if "adapter" in columns:
            made = {"adapter": pa.array([""] * len(names), pa.string()), **made}
        yield pa.RecordBatch.from_pydict(made)
