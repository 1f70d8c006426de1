"""Train a baseline, and embed the documents of a benchmark, or the papers of the corpus, by it.

A training takes the tables that the baseline names and writes the folder of a model, with the settings that made it: a
trained baseline embeds with these.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import typer

from cocite.baselines.steps import Embedding, GivenSources, Training
from cocite.config.baseline import Baseline
from cocite.config.baselines import AnyBaseline
from cocite.config.entries import as_json
from cocite.config.settings import GivenAsJson, entry_of
from cocite.core.atomic import atomic_path, read_json, write_json
from cocite.core.checkpoints import remove_state
from cocite.core.errors import InputError, explain_full_disk
from cocite.core.options import MemoryMb, Output, Queries, Seed, State, Threads
from cocite.core.progress import report
from cocite.core.tables import TABLES
from cocite.core.tables.files import count_rows, vector_column, write_table

SETTINGS = "settings.json"
"""The settings of a model, in its folder: what it embeds with."""
TABLES_OF = {"documents": "baseline_embeddings", "papers": "baseline_paper_embeddings"}
"""The tables that can be embedded, and the tables that their vectors make."""


def train_baseline(
    settings: GivenAsJson[AnyBaseline],
    sources: GivenSources,
    *,
    queries: Queries,
    seed: Seed,
    training_seed: Annotated[int, typer.Option(help="Seed of this training; 0 where nothing is drawn.")],
    memory_mb: MemoryMb,
    threads: Threads,
    state: State,
    output: Output,
) -> None:
    """Train a baseline on the corpus without the papers that are kept out; a killed training is resumed."""
    with explain_full_disk(output), atomic_path(output) as folder:
        folder.mkdir(exist_ok=True)
        training = Training(
            **vars(sources),
            queries=queries,
            seed=seed,
            training_seed=training_seed,
            memory_mb=memory_mb,
            threads=threads,
            state=state,
            output=folder,
        )
        settings.train(training)
        write_json(folder / SETTINGS, {"baseline": as_json(settings), "seed": seed, "training_seed": training_seed})
    remove_state(state)


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
    baseline: Baseline = entry_of(read_json(model / SETTINGS)["baseline"], AnyBaseline) if model else settings
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
