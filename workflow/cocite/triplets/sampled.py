"""What a sampler is given and what it gives back: a block of queries with all it may draw from, and their triplets.

The papers that triplets may hold are those with a title and an abstract that are not kept out. Threads share the
reading of a table by its row groups: each is opened by the thread that reads it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cocite.core.errors import InputError
from cocite.core.id_sets import NO_IDS, Ids, IdSet, check_ids, id_set, size
from cocite.core.tables.files import checked_files, open_parquet, open_table
from cocite.core.tables.files import table_in as table_in
from cocite.core.tables.splits import read_kept_out
from cocite.triplets.titles import NONE as NO_TITLES
from cocite.triplets.titles import Titles

ROWS_AT_ONCE = 1 << 18
ROLES = ("query", "positive", "negative")
WORDS = {"triplets": ("triplets", "a triplet"), "sampled_examples": ("examples", "an example")}
"""What the rows of each table that a sampler gives are called, all of them and one."""
UNSERVED = {table: f"queries without {one}" for table, (_, one) in WORDS.items()}
"""How the queries are counted that have no row."""

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Block:
    """Queries that are sampled for at once."""

    queries: Ids
    """Their ids, rising. Those that are negative are texts, for sets that are made of other sets."""
    splits: pa.ChunkedArray
    """The split of each: train or validation."""
    papers: IdSet
    """The papers with a text, which alone may stand in a triplet."""
    sources: Sequence[Path]
    """The files that the sampler draws from."""
    seed: int
    """The run's seed."""
    kept_out: Ids = field(default_factory=lambda: NO_IDS)
    """The papers that are held out or excluded."""
    threads: int = 1
    """Threads that may read the sources."""
    is_first: bool = True
    """Whether no queries were sampled for before."""
    titles_kept_out: Callable[[], Titles] = lambda: NO_TITLES
    """Reads the titles of papers that are kept out, from all papers."""
    spill_to: Path | None = None
    """Beside what a sampler may write temporary files."""

    def files(self, table: str) -> list[Path]:
        """The sources that hold a table, in the order given. Raises `InputError` where none does."""
        found = [path for path in self.sources if table_in(path) == table]
        if not found:
            given = ", ".join(map(str, self.sources)) or "none"
            raise InputError(f"The sampler draws from the table {table}; none of its sources is one (given: {given}).")
        return found

    def read(self, table: str, columns: Sequence[str], *, rows: int | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a table, some at a time. No batch is empty or holds rows of two files."""
        for path in self.files(table):
            batches = open_table(path, table).iter_batches(
                rows or ROWS_AT_ONCE, columns=list(columns), use_threads=self.threads > 1
            )
            yield from filter(len, batches)

    def map_row_groups(
        self, table: str, columns: Sequence[str], work: Callable[[Iterator[pa.RecordBatch]], Result], *, query: str
    ) -> Iterator[Result]:
        """What `work` makes of the batches of each row group, in order; every thread reads and works on its own ones.

        Files are sorted by the column `query`; row groups that hold none of our queries are not read.
        """
        # A footer is read once: with hundreds of row groups, it is too long to be read again for each.
        footers = {path: pq.read_metadata(path) for path in checked_files(self.files(table), table)}
        ours = [
            (path, number)
            for path, footer in footers.items()
            for number in range(footer.num_row_groups)
            if _may_meet(footer, number, query, self.queries[0], self.queries[-1])
        ]

        def read(group: tuple[Path, int]) -> Result:
            path, number = group
            with open_parquet(path, footer=footers[path]) as file:
                return work(file.iter_batches(ROWS_AT_ONCE, [number], columns=list(columns), use_threads=False))

        with ThreadPoolExecutor(self.threads) as workers:
            yield from workers.map(read, ours)


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """Triplets or examples, and what was left out."""

    rows: pa.Table
    """Columns of the table that the sampler gives, in the order of its key."""
    texts: pa.Table | Iterable[pa.RecordBatch] | None = None
    """The texts among them that are no papers, of a sampler that brings some: columns of `sampled_texts`, in any order;
    a text may come again. They are read after the rows are written."""
    omissions: dict[str, int] = field(default_factory=dict)
    """How many of what were left out, and why; a reason that never occurred counts 0."""


def as_triplets(
    block: Block, places: Ids, positives: Ids, negatives: Ids, **columns: np.ndarray | pa.Array
) -> pa.Table:
    """A table of triplets from the places of their queries in the block; ranks are null unless given.

    Rows may come in any order; of those that come twice, the first is taken.
    """
    empty = pa.nulls(len(places), pa.int32())
    rows = {
        "query": block.queries[places],
        "positive": positives,
        "negative": negatives,
        "split": block.splits.take(pa.array(places)),
        "positive_rank": empty,
        "negative_rank": empty,
        **columns,
    }
    return in_order(pa.table(rows))


def in_order(triplets: pa.Table) -> pa.Table:
    """The triplets in the order of their ids; of those that come twice, the first is taken."""
    ordered = triplets.take(pc.sort_indices(triplets, sort_keys=[(role, "ascending") for role in ROLES]))
    keys = np.stack([ordered[role].to_numpy() for role in ROLES])
    is_new = np.ones(len(ordered), dtype=bool)
    is_new[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    return ordered if is_new.all() else ordered.filter(pa.array(is_new))


def read_chosen(path: Path, is_chosen: NDArray[np.bool_]) -> pa.Table:
    """The rows of a sampled set that are chosen; memory holds few others, and row groups without any are not read."""
    file = open_table(path, table_in(path))
    chosen, first = [], 0
    for number in range(file.num_row_groups):
        last = first + file.metadata.row_group(number).num_rows
        for batch in file.iter_batches(ROWS_AT_ONCE, [number]) if is_chosen[first:last].any() else ():
            chosen.append(batch.filter(pa.array(is_chosen[first : first + len(batch)])))
            first += len(batch)
        first = last
    return pa.Table.from_batches(filter(len, chosen), file.schema_arrow).replace_schema_metadata()


def read_papers(papers: Path, queries: Path) -> IdSet:
    """The papers that triplets may hold, from the folder of the table papers and the table `queries`.

    Raises `InputError` where there is none, or an id is negative.
    """
    kept_out = read_kept_out(queries)["corpusid"].to_numpy()
    check_ids(kept_out, queries)
    listed = id_set(_with_text(papers), without=kept_out)
    if size(listed) == 0:
        raise InputError(f"{papers}: no paper has a title and an abstract; triplets need some that do.")
    return listed


def _with_text(papers: Path) -> Iterator[Ids]:
    for path in checked_files(papers, "papers"):
        for batch in open_table(path, "papers").iter_batches(columns=["corpusid", "has_text"]):
            ids = batch["corpusid"].filter(batch["has_text"]).to_numpy()
            check_ids(ids, path)
            yield ids


def _may_meet(footer: pq.FileMetaData, number: int, column: str, first: int, last: int) -> bool:
    """Whether a column of a row group may hold a value from `first` to `last`."""
    found = footer.row_group(number).column(footer.schema.names.index(column)).statistics
    return found is None or not found.has_min_max or bool(found.min <= last and found.max >= first)
