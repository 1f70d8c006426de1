"""The citations that a graph is counted from: what each signal makes of them, and in which order they are sharded.

Co-citation and bibliographic coupling both pair the members of groups: the papers that one paper cites (co-citation),
or one sentence of a paper, or the papers that cite one paper (coupling). The release's citations are sharded and sorted
by the citing paper, but coupling and undirected edges ask who cites a paper. So each bucket is first cut by the cited
paper, and then the cuts of all buckets are united. Both steps sort within a memory limit, and each citation is written
twice, however many buckets there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from cocite.core.atomic import atomic_path
from cocite.core.database import connect
from cocite.core.id_sets import IdSet
from cocite.core.options import Bucket, Buckets, MemoryMb, Output, Queries, Threads
from cocite.core.tables.files import scan_table, verified_files, write_table
from cocite.core.tables.papers import read_kept_out

BATCH_ROWS = 100_000


@dataclass(frozen=True, kw_only=True)
class Signal:
    """How citations make groups."""

    citations: str
    """The table of citations, sorted by the group."""
    group: str
    """The column of the paper that makes the group, or that the sentence is of which does."""
    member: str
    """The column of the papers that are in it: one of them, or all in a list."""
    too_large: tuple[str, str]
    """What groups that are too large and their citations are called."""
    alone: str
    """What queries without a pair are called."""


SIGNALS = {
    "cocitation": Signal(
        citations="citations",
        group="citing",
        member="cited",
        too_large=("papers with more references than max_references", "references of such papers"),
        alone="queries that no paper cites together with another",
    ),
    "sentence-cocitation": Signal(
        citations="contexts",
        group="citing",
        member="cited",
        too_large=("sentences that cite more papers than max_papers", "citations in such sentences"),
        alone="queries that no sentence cites together with another paper",
    ),
    "coupling": Signal(
        citations="citations_by_cited",
        group="cited",
        member="citing",
        too_large=("papers with more citations than max_citations", "citations of such papers"),
        alone="queries that share no reference with another paper",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Source:
    """The citations of a graph, and which groups and members of them count."""

    signal: Signal
    files: Sequence[Path]
    """All buckets of the table of citations."""
    queries: IdSet
    kept_out: IdSet
    """The papers that neither make a group nor are in one."""
    largest: int
    """A group of more members, those that are kept out among them, is dropped; 0 for no limit."""
    mine: tuple[int, int]
    """The bucket whose pairs are counted, and how many there are."""


def split_citations(
    citations: Annotated[Path, typer.Argument(help="One bucket of the table citations.")],
    *,
    queries: Queries,
    buckets: Buckets,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Cut one bucket of citations into a folder with a file for each bucket of the cited paper.

    Citations by or of papers that are kept out are dropped.
    """
    with atomic_path(output) as folder, connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        db.register("citations", scan_table(citations, "citations"))
        db.register("kept_out", read_kept_out(queries).select(["corpusid"]))
        db.execute(f"""
            CREATE TEMP TABLE kept AS
            SELECT cited % {buckets} AS bucket, * EXCLUDE (influential, intents) FROM citations
            WHERE citing NOT IN (FROM kept_out) AND cited NOT IN (FROM kept_out)
            ORDER BY bucket, cited, citing
        """)
        folder.mkdir()
        for bucket in range(buckets):
            rows = db.sql(f"SELECT * EXCLUDE bucket FROM kept WHERE bucket = {bucket} ORDER BY cited, citing")
            write_table(folder / f"{bucket}.parquet", "split_citations", rows.to_arrow_reader(BATCH_ROWS))


def unite_citations(
    split: Annotated[list[Path], typer.Argument(help="Folders that `split-citations` wrote.")],
    *,
    bucket: Bucket,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Put one bucket of cited papers together from the folders that `split-citations` wrote."""
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        files = [folder / f"{bucket}.parquet" for folder in split]
        db.read_parquet(verified_files(files, "split_citations")).create_view("split")
        rows = db.sql("FROM split ORDER BY cited, citing")
        write_table(output, "citations_by_cited", rows.to_arrow_reader(BATCH_ROWS))
