"""What a step of a baseline is given: the tables that it reads, seeds, and where it writes.

Documents and papers come some thousand at a time: nothing here grows with the corpus.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import typer
from pydantic import ConfigDict

from cocite.config.settings import GivenAsJson
from cocite.core.errors import InputError
from cocite.core.tables import TABLES
from cocite.core.tables.files import open_table
from cocite.core.tables.splits import read_kept_out

ROWS_AT_ONCE = 4096


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Some rows of a table of documents, in its order."""

    names: list[Any]
    """The documents' names, or the papers' corpus ids."""
    titles: list[str | None]
    abstracts: list[str | None]
    more: list[list[str]]
    """What a text holds after the abstract."""
    are_queries: list[bool]
    """Whether each is a short query of a search, and no paper."""

    @property
    def texts(self) -> list[str]:
        """The texts, their parts joined by spaces; empty where a document has none."""
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
    """The model of the baseline that this one stands on."""
    paper_vectors: Sequence[Path] = ()
    """Vectors of papers (corpusid, vector), by bucket."""
    document_vectors: Path | None = None
    """Vectors of the benchmark's documents (adapter, document, vector), by the baseline or encoder underneath."""
    document_papers: Path | None = None
    """The table document_papers of the benchmark, where its documents' ids are of another origin than the corpus's."""
    edges: Sequence[Path] = ()
    """Buckets of the table edges."""
    examples: Path | None = None
    """The examples of a set."""
    texts: Path | None = None
    """Folder of the texts of their documents."""

    def given(self, name: str) -> Path:
        """The file or folder of this name. Raises `InputError` where it is not given."""
        path: Path | None = getattr(self, name)
        if path is None:
            raise InputError(f"No {name} is given, which this baseline reads.")
        return path


GivenSources = Annotated[
    GivenAsJson[Sources],
    typer.Option(
        help="What the baseline says it reads, as JSON: names such as papers, edges or baseline, each with a path or a "
        "list of paths (cocite.baselines.steps.Sources)."
    ),
]


@dataclass(frozen=True, kw_only=True)
class Training(Sources):
    """A training of a baseline."""

    queries: Path
    """The table queries, which says what is kept out."""
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
    """The trained model; None where the baseline is not trained."""
    seed: int
    """The run's seed."""
    threads: int = 1

    def documents(self) -> Iterator[Batch]:
        """The documents."""
        yield from read_batches(self.source, self.table)


def read_batches(path: Path, table: str, without: pa.Array | None = None) -> Iterator[Batch]:
    """The rows of a table of papers or documents, without some of the papers."""
    [key] = TABLES[table].key
    with open_table(path, table) as file:
        there = [name for name in ("more", "is_query") if name in file.schema_arrow.names]
        columns = [key, "title", "abstract", *there]
        for read in file.iter_batches(ROWS_AT_ONCE, columns=columns):
            kept = read if without is None else read.filter(pc.invert(pc.is_in(read[key], value_set=without)))
            names, titles, abstracts = (kept[name].to_pylist() for name in columns[:3])
            more = kept["more"].to_pylist() if "more" in there else [[] for _ in names]
            are_queries = kept["is_query"].to_pylist() if "is_query" in there else [False] * len(names)
            yield Batch(names=names, titles=titles, abstracts=abstracts, more=more, are_queries=are_queries)
