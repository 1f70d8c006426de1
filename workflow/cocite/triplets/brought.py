"""Triplets that the user brings as Parquet: rows of three corpus ids, whatever they are called."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cocite.core.errors import InputError, explain_unreadable
from cocite.core.id_sets import Ids, are_in
from cocite.core.plain_columns import corpus_ids
from cocite.core.randomness import priorities
from cocite.core.rows import PARQUET, whole_batches
from cocite.triplets.sampled import ROLES, UNSERVED, Block, Sampled, as_triplets

COLUMNS = (("query",), ("positive", "pos"), ("negative", "neg"))
ID_NAMES = ("corpus_id", "doc_id")
NO_NUMBER = "triplets with an id that is no number"
NO_QUERY = "triplets of papers that are no queries"
NO_TEXT = "triplets with a paper without text"
TWICE = "triplets that hold a paper twice"


def read_triplets(block: Block, *, per_query: int | None) -> Sampled:
    """The triplets of the block's queries, in whatever order they are in the files; at most `per_query` of each.

    Raises `InputError` for a file that is no Parquet, or has no columns of ids.
    """
    counts: Counter[str] = Counter({NO_NUMBER: 0, NO_QUERY: 0, NO_TEXT: 0, TWICE: 0})
    paths = [file for path in block.sources for file in (sorted(path.rglob("*.parquet")) if path.is_dir() else [path])]
    files = [_of_queries(block, path, counts) for path in paths]
    rows = np.concatenate([np.empty((0, 3), dtype=np.int64), *(rows for file in files for rows in file)])
    places = np.searchsorted(block.queries, rows[:, 0])
    is_known = np.bincount(places, minlength=len(block.queries)) > 0
    holds_three = (rows != np.roll(rows, 1, axis=1)).all(axis=1)
    has_text = are_in(block.papers, rows[:, 1:]).all(axis=1)
    is_usable = holds_three & has_text
    kind = np.full(int(is_usable.sum()), "given")
    triplets = as_triplets(block, places[is_usable], *rows[is_usable, 1:].T, negative_kind=kind)
    counts[TWICE] = int(np.count_nonzero(~holds_three))
    counts[NO_TEXT] = int(np.count_nonzero(holds_three & ~has_text))
    counts["triplets that come again"] = len(kind) - len(triplets)
    taken = triplets if per_query is None else _first(triplets, per_query, block.seed)
    counts["triplets beyond per_query"] = len(triplets) - len(taken)
    is_served = np.isin(block.queries, taken["query"].to_numpy())
    counts[f"{UNSERVED['triplets']}: none was brought"] = int(np.count_nonzero(~is_known))
    counts[f"{UNSERVED['triplets']}: theirs hold papers without text, or one twice"] = int(
        np.count_nonzero(is_known & ~is_served)
    )
    return Sampled(rows=taken, omissions=dict(counts))


def _of_queries(block: Block, path: Path, counts: Counter[str]) -> Iterator[Ids]:
    """The ids of the triplets of the block's queries, triplets × 3."""
    for ids in _read(path):
        is_whole = np.logical_and.reduce([column.is_valid().to_numpy(zero_copy_only=False) for column in ids])
        rows = np.stack([column.filter(pa.array(is_whole)).to_numpy() for column in ids], axis=1)
        is_ours = np.isin(rows[:, 0], block.queries)
        # Blocks read the same files: what is in none of them is the first block's rows less all that are some block's.
        counts[NO_NUMBER] += (len(is_whole) - len(rows)) * block.is_first
        counts[NO_QUERY] += len(rows) * block.is_first - int(np.count_nonzero(is_ours))
        yield rows[is_ours]


def _read(path: Path) -> Iterator[list[pa.Array]]:
    """The three ids of each triplet, some at a time."""
    with explain_unreadable(path, PARQUET), pq.ParquetFile(path, page_checksum_verification=True) as file:
        columns = [_column(file, path, names) for names in COLUMNS]
        for batch in whole_batches(file, columns):
            yield [_ids(batch, column) for column in columns]


def _column(file: pq.ParquetFile, path: Path, names: tuple[str, ...]) -> str:
    """The path of the column of ids that has one of these names, itself or in its fields."""
    paths = [column.path for column in map(file.schema.column, range(len(file.schema.names)))]
    wanted = [*names, *(f"{name}.{field}" for name in names for field in ID_NAMES)]
    found = next((each for each in wanted if each in paths), None)
    if found is None:
        raise InputError(
            f"{path}: has no column {names[0]} of corpus ids, nor a {names[-1]} with a {' or '.join(ID_NAMES)}."
        )
    return found


def _ids(batch: pa.RecordBatch, column: str) -> pa.Array:
    """Ids as numbers; null where one is neither a whole number from 0 nor its digits."""
    name, _, field = column.partition(".")
    return corpus_ids(batch[column] if column in batch.schema.names else pc.struct_field(batch[name], field))


def _first(triplets: pa.Table, count: int, seed: int) -> pa.Table:
    """A random choice of so many triplets of each query."""
    columns = [triplets[name].to_numpy() for name in ROLES]
    order = np.lexsort((priorities(seed, "brought triplets", *columns), columns[0]))
    starts = np.searchsorted(columns[0], columns[0])
    return triplets.take(pa.array(np.sort(order[np.arange(len(order)) - starts < count])))
