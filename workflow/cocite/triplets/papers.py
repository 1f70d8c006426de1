"""The papers that triplets may hold: those with a title and an abstract that are not kept out.

In come the buckets of the corpus, of which only the ids and whether there is a text are read, and the table `queries`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from cocite.ground.errors import InputError
from cocite.ground.id_sets import Ids, IdSet, check_ids, id_set, size
from cocite.tables import splits
from cocite.tables.files import checked_files, open_table


def read_papers(papers: Path, queries: Path) -> IdSet:
    """The papers that triplets may hold, from the folder of the table papers.

    Raises `InputError` where there is none, or an id is negative.
    """
    kept_out = splits.read_kept_out(queries)["corpusid"].to_numpy()
    check_ids(kept_out, queries)
    listed = id_set(_with_text(checked_files(papers, "papers")), without=kept_out)
    if size(listed) == 0:
        raise InputError(f"{papers}: no paper has a title and an abstract; triplets need some that do.")
    return listed


def _with_text(buckets: Sequence[Path]) -> Iterator[Ids]:
    for path in buckets:
        for batch in open_table(path, "papers").iter_batches(columns=["corpusid", "has_text"]):
            ids = batch["corpusid"].filter(batch["has_text"]).to_numpy()
            check_ids(ids, path)
            yield ids
