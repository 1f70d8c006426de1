"""The 32-bit numbers that stand for papers in keys, whose upper half is the distance.

An id below 2³² is its own number. In a table with larger ids, the number of a paper is its place among the papers of
the table, which keeps their order; the set of their ids, which is held for that, leads from one to the other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cocite.ground.id_sets import Ids, IdSet, check_ids, id_set, members_at, places_of
from cocite.neighbours.distances import Numbers
from cocite.tables.files import open_table, scan_table

UNKNOWN = -1
"""Stands for the number of an id that the table does not hold."""


@dataclass(frozen=True, kw_only=True)
class Numbering:
    """Which number stands for which paper of a table."""

    papers: IdSet | None = None
    """All papers of the table; None where ids are their own numbers."""

    @property
    def held_mb(self) -> float:
        """Memory that it takes."""
        return sum(part.nbytes for part in self.papers) / 1e6 if self.papers else 0.0

    def numbers_of(self, ids: Ids) -> Numbers:
        """The number of each id; `UNKNOWN` where the table does not hold it, or the id itself."""
        return ids if self.papers is None else places_of(self.papers, ids).astype(np.int64)

    def ids_of(self, numbers: Numbers) -> Ids:
        """The id of each number."""
        return numbers if self.papers is None else members_at(self.papers, numbers)


def number_papers(path: Path) -> Numbering:
    """Number the papers of a table `graph_embeddings`. Raises `InputError` where an id is negative."""
    return Numbering() if _largest_id(path) < 2**32 else Numbering(papers=id_set(_ids(path)))


def _largest_id(path: Path) -> int:
    """The id of the last paper: they rise."""
    file = open_table(path, "graph_embeddings")
    filled = [group for group in range(file.num_row_groups) if file.metadata.row_group(group).num_rows]
    return int(file.read_row_group(filled[-1], ["corpusid"])["corpusid"][-1].as_py()) if filled else 0


def _ids(path: Path) -> Iterator[Ids]:
    for batch in scan_table(path, "graph_embeddings").to_batches(columns=["corpusid"]):
        ids = batch.column("corpusid").to_numpy()
        check_ids(ids, path)
        yield ids
