"""Triplets joined with the texts of their papers: from sets of triplets and the table papers to folders of shards.

All sets of a group are cut to the size of its smallest (CoCite, 2024), and the validation triplets of all of them
together are the validation set of every model of the group. The order is one of hashes, so it is a shuffle that does
not depend on jobs: queries follow each other at random, and so do the triplets of a query, which stay together.

The texts of a large set do not fit into memory, and its triplets name their papers in no order. The papers are read
once, front to back, and the texts that a shard needs are appended to a file of that shard; then each shard is put
together from its own file. Memory holds the ids of all triplets, and the texts of one shard a thread.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.ground.database import spill_folder
from cocite.ground.errors import InputError
from cocite.ground.id_sets import Ids
from cocite.ground.randomness import priorities
from cocite.tables.files import atomic_path, open_table, write_table
from cocite.triplets.sampled import ROLES, RowGroup, row_groups

TRIPLETS_IN_SHARD = 50_000
SHARDS_AT_ONCE = 200
"""Shards that one reading of the papers fills, each a file that is open."""
PAPERS_IN_MEMORY = 5_000
"""Papers that each thread reads at once."""
TRIPLETS_IN_MEMORY = 5_000
"""Triplets that each thread joins at once: a row group of a shard."""
TEXT_SCHEMA = pa.schema([("corpusid", pa.int64()), ("title", pa.string()), ("abstract", pa.string())])

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


@dataclass(frozen=True)
class Wanted:
    """The papers whose texts some shards need, in rising order of their ids; one that two shards need stands twice."""

    ids: Ids
    shard: Ids
    found: np.ndarray
    """Whether its text has been found."""

    @classmethod
    def of(cls, shards: Sequence[Rows]) -> "Wanted":
        """The papers of these shards."""
        of_shards = [np.unique(rows) for rows in shards]
        papers = np.unique(np.concatenate(of_shards))
        # Numbers of place and shard are sorted several times as quickly as ids with their shards.
        keys = [np.searchsorted(papers, ids) * len(shards) + shard for shard, ids in enumerate(of_shards)]
        places, shard = np.divmod(np.sort(np.concatenate(keys)), len(shards))
        return cls(papers[places], shard, np.zeros(len(places), dtype=bool))


def write_texts(output: Path, table: str, rows: Rows, papers: Path, *, threads: int) -> None:
    """Write triplets, in their order, as the table training_texts or validation_texts.

    Raises `InputError` where a paper of a triplet has no title or no abstract in the folder `papers`.
    """
    starts = shard_starts(rows[:, 0], TRIPLETS_IN_SHARD)
    shards = [rows[start:end] for start, end in pairwise(starts)]
    with atomic_path(output) as folder, ThreadPoolExecutor(threads) as workers:
        for first in range(0, len(shards), SHARDS_AT_ONCE):
            some = shards[first : first + SHARDS_AT_ONCE]
            with spill_folder(output.parent) as spill:
                files = [Path(spill, f"{number}.arrow") for number in range(len(some))]
                _gather(Wanted.of(some), papers, files, workers)
                paths = [folder / f"{number:05}.parquet" for number in range(first, first + len(some))]
                list(workers.map(partial(_write_shard, table), paths, some, files))


def shard_starts(queries: Ids, size: int) -> list[int]:
    """Where shards of about `size` triplets start, and then where the last one ends.

    `queries` holds the query of each triplet. A query's triplets, which follow each other, are never in two shards.
    """
    starts = np.flatnonzero(np.diff(queries)) + 1
    borders = np.searchsorted(starts, np.arange(size, len(queries), size))
    return sorted({0, len(queries), *starts[borders[borders < len(starts)]].tolist()})


def _gather(wanted: Wanted, papers: Path, files: Sequence[Path], workers: ThreadPoolExecutor) -> None:
    """Append the texts of the papers that each shard needs to its file."""
    writers = [pa.ipc.new_stream(path, TEXT_SCHEMA) for path in files]
    try:
        append = partial(_append_texts, wanted, writers, [Lock() for _ in files])
        list(workers.map(append, row_groups(papers, "papers")))
    finally:
        for writer in writers:
            writer.close()
    if not wanted.found.all():
        missing = np.unique(wanted.ids[~wanted.found])
        raise InputError(
            f"{papers}: {len(missing):,} papers of the triplets have no title and abstract there, the first of them "
            f"{missing[0]}; triplets must be of papers with a text."
        )


def _append_texts(
    wanted: Wanted, writers: Sequence[pa.RecordBatchStreamWriter], locks: Sequence[Lock], group: RowGroup
) -> None:
    for batch in group.batches(TEXT_SCHEMA.names, PAPERS_IN_MEMORY):
        rows, shard = _look_up(batch, wanted)
        taken = batch.take(pa.array(rows))
        texts = pa.RecordBatch.from_arrays([taken.column(name) for name in TEXT_SCHEMA.names], schema=TEXT_SCHEMA)
        borders = np.flatnonzero(np.diff(shard)) + 1
        for start, end in pairwise([0, *borders.tolist(), len(shard)] if len(shard) else []):
            with locks[shard[start]]:
                writers[shard[start]].write_batch(texts.slice(start, end - start))


def _look_up(batch: pa.RecordBatch, wanted: Wanted) -> tuple[Ids, Ids]:
    """Rows of the papers of a batch that are wanted and have a text, and the shards that want them, in rising order."""
    ids = batch.column("corpusid").to_numpy()
    low, high = np.searchsorted(wanted.ids, ids[0]), np.searchsorted(wanted.ids, ids[-1], "right")
    rows = np.searchsorted(ids, wanted.ids[low:high])
    texts = [batch.column(name).is_valid().to_numpy(zero_copy_only=False)[rows] for name in ("title", "abstract")]
    found = (ids[rows] == wanted.ids[low:high]) & texts[0] & texts[1]
    wanted.found[low:high] |= found
    shard = wanted.shard[low:high][found]
    order = np.argsort(shard, kind="stable")
    return rows[found][order], shard[order]


def _write_shard(table: str, path: Path, rows: Rows, file: Path) -> None:
    with pa.memory_map(str(file)) as mapped:
        # Rows are taken three times as quickly from one piece as from many.
        texts = pa.ipc.open_stream(mapped).read_all().combine_chunks()
    file.unlink()
    write_table(path, table, _joined(rows, texts))


def _joined(rows: Rows, texts: pa.Table) -> Iterator[pa.RecordBatch]:
    """The triplets with title and abstract of each paper, some at a time."""
    position = pc.index_in(pa.array(rows.ravel()), texts["corpusid"]).to_numpy().reshape(rows.shape)
    for start in range(0, len(rows), TRIPLETS_IN_MEMORY):
        some = slice(start, start + TRIPLETS_IN_MEMORY)
        columns = {}
        for number, role in enumerate(ROLES):
            of_role = texts.take(pa.array(position[some, number])).combine_chunks()
            columns[role] = pa.array(rows[some, number])
            columns |= {f"{role}_{part}": of_role[part].combine_chunks() for part in ("title", "abstract")}
        yield pa.RecordBatch.from_pydict(columns)
