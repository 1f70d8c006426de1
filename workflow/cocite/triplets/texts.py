"""Sets of triplets as a training takes them: examples in their order, and the documents that these name, each once.

All sets of a group are cut to the size of its smallest (CoCite, 2024), and the validation triplets of all of them
together are the validation set of every model of the group. The order is one of hashes, so it is a shuffle that does
not depend on jobs: queries follow each other at random, and so do the triplets of a query, which stay together.

The papers are read once, front to back, and those that are named are written as they come. Memory holds the ids of all
triplets, and some texts a thread.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.ground.errors import InputError
from cocite.ground.id_sets import Ids
from cocite.ground.randomness import priorities
from cocite.tables.files import atomic_path, checked_files, open_table, write_table
from cocite.triplets.sampled import ROLES

PAPERS_IN_MEMORY = 5_000
"""Papers that each thread reads at once."""
TEXT_COLUMNS = ["corpusid", "title", "abstract"]

Rows = NDArray[np.int64]
"""Triplets × (query, positive, negative)."""


def training_rows(triplets: Path, group: Sequence[Path], seed: int) -> Rows:
    """The training triplets of one set of a group, shuffled by query and cut to the size of the group's smallest.

    Raises `InputError` where that has none.
    """
    smallest = _smallest(group, [_count(path, "train") for path in group], "training", "smaller")
    return _shuffled(_read_split(triplets, "train"), seed)[:smallest]


def validation_rows(group: Sequence[Path], seed: int) -> Rows:
    """The validation triplets of all sets of a group, cut alike, each triplet once, shuffled by query.

    Raises `InputError` where there is none.
    """
    sets = [_shuffled(_read_split(path, "validation"), seed) for path in group]
    smallest = _smallest(group, list(map(len, sets)), "validation", "larger")
    return _shuffled(np.unique(np.concatenate([rows[:smallest] for rows in sets]), axis=0), seed)


def _smallest(group: Sequence[Path], sizes: list[int], use: str, remedy: str) -> int:
    """The size of the smallest set of a group. Raises `InputError` where that is empty."""
    if 0 in sizes:
        empty = group[sizes.index(0)]
        raise InputError(f"{empty}: no {use} triplet; more query papers or a {remedy} queries.validation would do.")
    return min(sizes)


def _read_split(path: Path, split: str) -> Rows:
    batches = open_table(path, "triplets").iter_batches(columns=[*ROLES, "split"])
    of_split = [batch.filter(pc.equal(batch.column("split"), split)) for batch in batches]
    rows = [np.stack([batch.column(role).to_numpy() for role in ROLES], axis=1) for batch in of_split]
    return np.concatenate([np.empty((0, len(ROLES)), np.int64), *rows])


def _count(path: Path, split: str) -> int:
    batches = open_table(path, "triplets").iter_batches(columns=["split"])
    return sum(pc.sum(pc.equal(batch.column("split"), split)).as_py() or 0 for batch in batches)


def _shuffled(rows: Rows, seed: int) -> Rows:
    keys = {
        "order of queries": priorities(seed, "order of queries", rows[:, 0]),
        "query": rows[:, 0],
        "order within a query": priorities(seed, "order of triplets", *rows.T),
    }
    return rows[pc.sort_indices(pa.table(keys), sort_keys=[(key, "ascending") for key in keys]).to_numpy()]


def write_examples(output: Path, table: str, rows: Rows) -> None:
    """Write triplets, in their order, as the table training_examples or validation_examples: one and one a query."""
    starts = pa.array(np.arange(len(rows) + 1, dtype=np.int32))
    query, *others = (pa.array(column) for column in rows.T)
    positives, negatives = (pa.ListArray.from_arrays(starts, column) for column in others)
    write_table(output, table, pa.table({"query": query, "positives": positives, "negatives": negatives}))


def write_documents(output: Path, table: str, rows: Rows, papers: Path, *, threads: int) -> None:
    """Write the papers of triplets, each once, as the table training_documents or validation_documents.

    Its buckets are those of the folder `papers`. Raises `InputError` where a paper has no text there.
    """
    wanted = np.unique(rows)
    found = np.zeros(len(wanted), dtype=bool)
    with atomic_path(output) as folder:
        folder.mkdir()

        def write(bucket: Path) -> None:
            write_table(folder / bucket.name, table, _documents(wanted, found, bucket))

        with ThreadPoolExecutor(threads) as workers:
            list(workers.map(write, checked_files(papers, "papers")))
        if not found.all():
            raise InputError(
                f"{papers}: {np.count_nonzero(~found):,} papers of the triplets have neither title nor abstract there, "
                f"the first of them {wanted[~found][0]}; triplets must be of papers with a text."
            )


def _documents(wanted: Ids, found: NDArray[np.bool_], papers: Path) -> Iterator[pa.RecordBatch]:
    """The papers of a bucket that are wanted and have a text; their places in `found` become true."""
    file = open_table(papers, "papers")
    for batch in file.iter_batches(PAPERS_IN_MEMORY, columns=TEXT_COLUMNS, use_threads=False):
        has_text = pc.or_(*(pc.is_valid(batch.column(name)) for name in ("title", "abstract")))
        ids = batch.column("corpusid").to_numpy()
        place = np.minimum(np.searchsorted(wanted, ids), len(wanted) - 1)
        chosen = (wanted[place] == ids) & has_text.to_numpy(zero_copy_only=False)
        found[place[chosen]] = True
        yield batch.select(TEXT_COLUMNS).filter(pa.array(chosen))
