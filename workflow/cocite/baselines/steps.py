"""Train a baseline, and embed the documents of a benchmark, or the papers of the corpus, by it.

A training takes the tables that the baseline names and writes the folder of a model, with the settings that made it: a
trained baseline embeds with these. Documents and papers come some thousand at a time: nothing here grows with the
corpus.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray
from pydantic import ConfigDict

from cocite.config.baseline import Baseline
from cocite.config.entries import as_json
from cocite.config.runs import AnyBaseline
from cocite.config.settings import GivenAsJson, entry_of
from cocite.core.atomic import atomic_path, read_json, write_json
from cocite.core.checkpoints import check_state, remove_state
from cocite.core.errors import InputError, explain_full_disk
from cocite.core.options import MemoryMb, Output, Queries, Seed, State, Threads
from cocite.core.progress import report
from cocite.core.tables import TABLES
from cocite.core.tables.files import count_rows, open_table, table_in, vector_column, vectors_of, write_table
from cocite.core.tables.papers import read_kept_out

SETTINGS = "settings.json"  # the settings of a model, in its folder: what it embeds with
TABLES_OF = {"documents": "baseline_embeddings", "papers": "baseline_paper_embeddings"}
"""The tables that can be embedded, and the tables that their vectors make."""
ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Batch:
    """Some rows of a table of documents, in its order."""

    names: list[Any]  # the documents' names, or the papers' corpus ids
    titles: list[str | None]
    abstracts: list[str | None]
    more: list[list[str]]  # further parts of a text after the abstract
    are_queries: list[bool]  # whether each is a short query of a search, and no paper

    @property
    def texts(self) -> list[str]:
        """The texts, their parts joined by spaces; empty if a document has none."""
        rows = zip(self.titles, self.abstracts, self.more, strict=True)
        return [" ".join(filter(None, (title, abstract, *more))) for title, abstract, more in rows]


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The tables that a baseline says it reads; what it does not read is empty or None."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")
    papers: Sequence[Path] = ()
    """Buckets of the table papers."""
    citations: Sequence[Path] = ()
    """Buckets of the table citations."""
    baseline: Path | None = None
    """The model of the baseline that this one is derived from."""
    paper_vectors: Sequence[Path] = ()
    """Vectors of papers (corpusid, vector), by bucket."""
    document_vectors: Path | None = None
    """Vectors of the benchmark's documents (adapter, document, vector), by the baseline or encoder underneath."""
    joined_vectors: Sequence[Path] = ()
    """The same by each of the models that are joined."""
    document_papers: Path | None = None
    """The table document_papers of the benchmark, where its documents' ids are of another origin than the corpus's."""
    edges: Sequence[Path] = ()
    """Buckets of the table edges."""
    examples: Path | None = None
    """The examples of a set."""
    texts: Path | None = None
    """Folder of the texts of their documents."""

    def given(self, name: str) -> Path:
        """The file or folder of this name. Raises `InputError` if it is not given."""
        path: Path | None = getattr(self, name)
        if path is None:
            raise InputError(f"No {name} is given, which this baseline reads.")
        return path


GivenSources = Annotated[
    GivenAsJson[Sources],
    typer.Option(
        help="Inputs of the baseline, as JSON: names such as papers, edges or baseline, each with a path or a "
        "list of paths (cocite.baselines.steps.Sources)."
    ),
]


@dataclass(frozen=True, kw_only=True)
class Training(Sources):
    """A training of a baseline."""

    queries: Path
    """The table queries, which lists the excluded papers."""
    seed: int
    """The run's seed."""
    training_seed: int
    memory_mb: int
    threads: int = 1
    state: Path
    """Folder that a killed training resumes from."""
    output: Path
    """Folder of the model, empty, which has its name when it is whole."""

    def seen(self) -> Iterator[Batch]:
        """The papers of the corpus without those that are kept out."""
        kept_out = read_kept_out(self.queries)["corpusid"].combine_chunks()
        for path in self.papers:
            yield from read_batches(path, "papers", kept_out)


@dataclass(frozen=True, kw_only=True)
class Embedding(Sources):
    """Documents to be embedded by a baseline."""

    table: str
    """What they are a table of: documents or papers."""
    source: Path
    """The table."""
    model: Path | None = None
    """The trained model; None if the baseline is not trained."""
    seed: int
    """The run's seed."""
    threads: int = 1

    def documents(self) -> Iterator[Batch]:
        """The documents."""
        yield from read_batches(self.source, self.table)


def vector_batches(path: Path) -> Iterator[tuple[pa.Array, NDArray[np.float32]]]:
    """The names of documents, or corpus ids, in a table of vectors, and the vectors, some thousand at a time."""
    table = table_in(path)
    key = TABLES[table].key[-1]
    with open_table(path, table) as file:
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=[key, "vector"]):
            yield batch[key], vectors_of(pa.Table.from_batches([batch]))


def read_batches(path: Path, table: str, without: pa.Array | None = None) -> Iterator[Batch]:
    """The rows of a table of papers or documents, without some of the papers."""
    [key] = TABLES[table].key
    with open_table(path, table) as file:
        asked = {key, "title", "abstract", "more", "is_query"}.intersection(file.schema_arrow.names)
        for read in file.iter_batches(ROWS_AT_ONCE, columns=sorted(asked)):
            kept = read if without is None else read.filter(pc.invert(pc.is_in(read[key], value_set=without)))
            columns = {"more": [[]] * len(kept), "is_query": [False] * len(kept), **kept.to_pydict()}
            yield Batch(*(columns[name] for name in (key, "title", "abstract", "more", "is_query")))


def train_baseline(
    settings: GivenAsJson[AnyBaseline],
    sources: GivenSources,
    *,
    queries: Queries,
    seed: Seed,
    training_seed: Annotated[int, typer.Option(help="Seed of this training; 0 for deterministic ones.")],
    memory_mb: MemoryMb,
    threads: Threads,
    state: State,
    output: Output,
) -> None:
    """Train a baseline on the corpus without the papers that are kept out; a killed training is resumed."""
    check_state(state)  # which some baselines do not open
    with explain_full_disk(output), atomic_path(output) as folder:
        folder.mkdir(exist_ok=True)
        seeds = {"seed": seed, "training_seed": training_seed}
        given: dict[str, Any] = {**vars(sources), **seeds, "memory_mb": memory_mb, "threads": threads}
        settings.train(Training(**given, queries=queries, state=state, output=folder))
        write_json(folder / SETTINGS, {"baseline": as_json(settings), **seeds})
    remove_state(state)


def embed_documents(
    source: Annotated[Path, typer.Argument(help="Table documents of a benchmark, or a bucket of papers.")],
    *,
    table: Annotated[Literal["documents", "papers"], typer.Option(help="Type of these documents.")] = "documents",
    settings: GivenAsJson[AnyBaseline],
    model: Annotated[
        Path | None, typer.Option(help="Folder of the trained model, for baselines that are trained.")
    ] = None,
    sources: GivenSources,
    seed: Seed,
    threads: Threads,
    output: Output,
) -> None:
    """Embed documents by a baseline; a trained one keeps the settings of its training.

    Documents without a vector are left out. Raises `InputError` if a vector is not finite.
    """
    baseline: Baseline = entry_of(read_json(model / SETTINGS)["baseline"], AnyBaseline) if model else settings
    embedding = Embedding(**vars(sources), table=table, source=source, model=model, seed=seed, threads=threads)
    total = count_rows(source)
    written = write_table(output, TABLES_OF[table], _rows(baseline, embedding, TABLES_OF[table]))
    report(f"Embedded {written:,} of {total:,} {table}; {total - written:,} have no vector.")


def _rows(baseline: Baseline, embedding: Embedding, table: str) -> Iterator[pa.RecordBatch]:
    columns, key = TABLES[table].columns, TABLES[table].key[-1]
    for names, given in baseline.embed(embedding):
        vectors = np.asarray(given, dtype=np.float32)
        is_broken = ~np.isfinite(vectors).all(axis=1)
        if is_broken.any():
            name = names[int(is_broken.argmax())]
            raise InputError(f"The baseline gives {name!r} of {embedding.source} a vector that is not finite.")
        adapter = {"adapter": pa.array([""] * len(names), pa.string())} if "adapter" in columns else {}
        ids = pa.array(names, columns[key].type)
        yield pa.RecordBatch.from_pydict({**adapter, key: ids, "vector": vector_column(vectors)})
