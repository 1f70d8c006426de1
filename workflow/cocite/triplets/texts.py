"""Triplets joined with their texts, cut so that sets of triplets can be compared.

All sets of a group are cut to the size of its smallest (CoCite, 2024), by whole queries in a seeded order, and the
validation triplets of all of them together are the validation set of every model of the group.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from cocite.errors import InputError
from cocite.files import scan_table, write_table
from cocite.randomness import priorities

ROLES = ("query", "positive", "negative")
ROWS_IN_MEMORY = 20_000


def materialise_training(*, triplets: Path, group: Sequence[Path], papers: Path, seed: int, output: Path) -> int:
    """Write the training triplets of one set with their texts, shuffled by query; return how many."""
    chosen = _cut(_triplets_of(triplets, "train"), _smallest(group, "train"), seed)
    return write_table(output, "training_texts", _with_texts(chosen, papers))


def materialise_validation(*, group: Sequence[Path], papers: Path, seed: int, output: Path) -> int:
    """Write the validation triplets of all sets of a group, each triplet once; return how many."""
    smallest = _smallest(group, "validation")
    cut = [_cut(_triplets_of(path, "validation"), smallest, seed) for path in group]
    together = pl.concat(cut).unique(maintain_order=True)
    if together.is_empty():
        raise InputError(f"{output}: no validation triplet; more query papers or a larger queries.validation would do.")
    return write_table(output, "validation_texts", _with_texts(together, papers))


def _triplets_of(path: Path, split: str) -> pl.DataFrame:
    table = scan_table(path, "triplets").to_table(columns=list(ROLES), filter=pc.field("split") == split)
    return pl.DataFrame(table)


def _smallest(group: Sequence[Path], split: str) -> int:
    return min(scan_table(path, "triplets").count_rows(filter=pc.field("split") == split) for path in group)


def _cut(triplets: pl.DataFrame, rows: int, seed: int) -> pl.DataFrame:
    """The first `rows` triplets in a seeded order of queries; a query's triplets stay together."""
    order = priorities(seed, "order of queries", triplets["query"].to_numpy())
    return triplets.with_columns(priority=pl.Series(order)).sort("priority", *ROLES).drop("priority").head(rows)


def _with_texts(triplets: pl.DataFrame, papers: Path) -> Iterator[pa.RecordBatch]:
    """The triplets with title and abstract of each paper, in batches."""
    ids = pl.concat([triplets[role] for role in ROLES]).unique()
    wanted = pc.field("corpusid").isin(ids.to_arrow())
    texts = pl.DataFrame(
        scan_table(papers, "papers").to_table(columns=["corpusid", "title", "abstract"], filter=wanted)
    )
    for rows in triplets.iter_slices(ROWS_IN_MEMORY):
        joined = rows
        for role in ROLES:
            columns = {"corpusid": role, "title": f"{role}_title", "abstract": f"{role}_abstract"}
            joined = joined.join(texts.rename(columns), on=role, how="left", maintain_order="left")
        yield from joined.to_arrow().to_batches()
