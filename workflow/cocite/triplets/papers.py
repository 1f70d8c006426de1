"""The papers that triplets may hold: those with a title and an abstract that are not kept out.

In come the buckets of the corpus, of which only the ids and whether there is a text are read, and the table `queries`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from cocite import splits
from cocite.errors import InputError
from cocite.files import checked_files, open_table
from cocite.tables import LARGEST_ID
from cocite.triplets.ids import Ids, IdSet, id_set, size


def read_papers(papers: Path, queries: Path) -> IdSet:
    """The papers that triplets may hold, from the folder of the table papers.

    Raises `InputError` where there is none, or an id is too large.
    """
    buckets = checked_files(papers, "papers")
    largest = max(_largest(path) for path in buckets)
    kept_out = splits.read_kept_out(queries)["corpusid"].to_numpy()
    # Lists of papers to exclude may name any number; beyond the largest id there is no paper, and no need of a bit.
    listed = id_set(_with_text(buckets), largest, without=kept_out[kept_out <= largest])
    if size(listed) == 0:
        raise InputError(f"{papers}: no paper has a title and an abstract; triplets need some that do.")
    return listed


def _with_text(buckets: Sequence[Path]) -> Iterator[Ids]:
    for path in buckets:
        for batch in open_table(path, "papers").iter_batches(columns=["corpusid", "has_text"]):
            yield batch["corpusid"].filter(batch["has_text"]).to_numpy()


def _largest(path: Path) -> int:
    """The largest id of a bucket, 0 where it is empty, from what its file says of itself."""
    file = open_table(path, "papers")
    column = file.schema_arrow.names.index("corpusid")
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    largest = max((group.column(column).statistics.max for group in groups if group.num_rows), default=0)
    if largest > LARGEST_ID:
        raise InputError(f"{path}: holds the corpus id {largest}; ids must not exceed {LARGEST_ID:,} here.")
    return int(largest)
