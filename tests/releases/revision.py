"""What happens to the records of one dataset between two releases, and a draw of the records it happens to."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.releases.diffs import PRIMARY_KEYS, Diff

from cocite.demo.shards import Record

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Edit = Callable[[Record], Record]
"""A change of a record, or another record on its model; the record that it is given stays as it is."""


def keep(row: Record) -> Record:
    """The record as it was: real diffs repeat records that have not changed."""
    return row


def with_fields(row: Record, **fields: Any) -> Record:
    """The record with other values in some fields."""
    return {**row, **fields}


@dataclass(frozen=True, kw_only=True)
class Revision:
    """The changes of one dataset, by primary key."""

    edits: Mapping[int, Edit]
    """What becomes of a record."""
    removed: set[int]
    """Records that are gone."""
    absent: list[int]
    """Keys that are deleted although no record has them."""
    modelled: dict[int, list[Edit]] = field(default_factory=dict)
    """Records that are made on the model of one, with other keys."""

    def add(self, models: Iterable[int], edits: Iterable[Edit]) -> None:
        """Add records, each made by an edit of its model."""
        for model, edit in zip(models, edits, strict=True):
            self.modelled.setdefault(int(model), []).append(edit)


@dataclass(frozen=True, kw_only=True)
class Touched:
    """The primary keys in a diff of one dataset."""

    updated: set[int]
    deleted: set[int]


class Lots:
    """Draws records for one kind of change after another, so that none is struck by two.

    Records may come in groups that belong together; then one of a group is drawn, and no other of it after that.
    """

    def __init__(self, keys: Ints, share: float, rng: np.random.Generator, groups: Ints | None = None) -> None:
        """Each draw takes this share of all keys, rounded up."""
        self.count = ceil(share * len(keys))
        self._keys, self._rng = keys, rng
        self._groups = keys if groups is None else groups
        self._free = np.ones(len(keys), dtype=bool)

    def withhold(self, mask: Mask) -> None:
        """Draw these records no more."""
        self._free &= ~mask

    def draw(self, eligible: Mask | None = None) -> list[int]:
        """The keys of some of the eligible records, fewer where there are not enough."""
        places = self._rng.permutation(np.flatnonzero(self._free if eligible is None else self._free & eligible))
        _, first = np.unique(self._groups[places], return_index=True)
        drawn = places[np.sort(first)[: self.count]]
        self.withhold(np.isin(self._groups, self._groups[drawn]))
        return [int(key) for key in self._keys[drawn]]


def sample(keys: Iterable[int], count: int, rng: np.random.Generator) -> list[int]:
    """So many of the keys, or all where there are fewer."""
    return [int(key) for key in rng.permutation(np.array(sorted(keys), dtype=np.int64))[:count]]


def choose_models(keys: Ints, added: Sequence[int], rng: np.random.Generator) -> list[int]:
    """A record to be the model of each added one."""
    return [int(key) for key in rng.choice(keys, size=len(added))]


def revise(rows: Iterable[Record], dataset: str, revision: Revision, diff: Diff) -> Iterator[Record]:
    """The rows of the newer release, made from those of the older one; what changes goes into the diff on the way."""
    key = PRIMARY_KEYS[dataset]
    added: list[Record] = []
    for row in rows:
        added += [make(row) for make in revision.modelled.get(row[key], [])]
        if row[key] in revision.removed:
            diff.delete(row)
        elif row[key] in revision.edits:
            edited = revision.edits[row[key]](row)
            diff.update(edited)
            yield edited
        else:
            yield row
    for row in added:
        diff.update(row)
        yield row
    for number in revision.absent:
        diff.delete({key: number})
