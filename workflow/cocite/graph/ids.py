"""Sets of corpus ids as bitmaps, and the place of each id among them.

Corpus ids are dense: a bit for each up to the largest one takes 36 MB for the whole of Semantic Scholar. Whether an id
is in a set is one look into memory, and its place among the sorted ids of the set a second one (rank, Jacobson, 1989),
where a search in a sorted list takes some twenty. Places keep the order of the ids, so what is sorted by place is
sorted by id.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cocite.errors import InputError
from cocite.tables import LARGEST_ID

Ids = NDArray[np.int64]
Words = NDArray[np.uint64]

_U = np.uint64
_ONE = _U(1)


class IdSet(NamedTuple):
    """A set of ids to ask for members of."""

    words: Words
    """A bit for each id, 64 in a word."""
    filled: Words
    """A bit for each word that is not 0: so small that for most ids the question ends in the processor's cache."""


def check_ids(ids: Ids, source: Path) -> None:
    """Raise `InputError` if an id does not fit."""
    if len(ids) and not (ids.min() >= 0 and ids.max() <= LARGEST_ID):
        wrong = ids.min() if ids.min() < 0 else ids.max()
        raise InputError(f"{source}: holds the corpus id {wrong}; ids must lie between 0 and {LARGEST_ID:,} here.")


def id_set(ids: Ids, source: Path) -> IdSet:
    """The set of these ids; an id may come twice. Raises `InputError`, which names the source, if one does not fit."""
    check_ids(ids, source)
    words = np.zeros(int(ids.max()) // 64 + 1 if len(ids) else 0, dtype=np.uint64)
    mark(words, ids)
    filled = np.zeros(len(words) // 64 + 1, dtype=np.uint64)
    mark(filled, np.flatnonzero(words))
    return IdSet(words, filled)


@njit(nogil=True, cache=True)
def mark(words, ids):  # type: ignore[no-untyped-def]
    """Add ids to a set that has room for them."""
    for paper in ids:
        words[paper >> 6] |= _ONE << _U(paper & 63)


@njit(nogil=True, cache=True)
def contains(papers, paper):  # type: ignore[no-untyped-def]
    """Whether an id is in an `IdSet`."""
    word = paper >> 6
    if word >= len(papers.words) or (papers.filled[word >> 6] >> _U(word & 63)) & _ONE == _U(0):
        return False
    return (papers.words[word] >> _U(paper & 63)) & _ONE != _U(0)


@njit(nogil=True, cache=True)
def ranks_of(words):  # type: ignore[no-untyped-def]
    """How many ids of the set lie before each word, and at the end how many there are."""
    ranks = np.zeros(len(words) + 1, dtype=np.int32)
    for word in range(len(words)):
        ranks[word + 1] = ranks[word] + _ones_in(words[word])
    return ranks


@njit(nogil=True, cache=True)
def place_of(words, ranks, paper):  # type: ignore[no-untyped-def]
    """The place of an id of the set among its sorted ids, from 0."""
    word = paper >> 6
    before = words[word] & ((_ONE << _U(paper & 63)) - _ONE)
    return ranks[word] + _ones_in(before)


@njit(nogil=True, cache=True)
def put_places(words, ranks, papers):  # type: ignore[no-untyped-def]
    """Overwrite each id of the set by its place."""
    for row in range(len(papers)):
        papers[row] = place_of(words, ranks, papers[row])


@njit(nogil=True, cache=True)
def are_in(asked, papers):  # type: ignore[no-untyped-def]
    """Whether each of some ids is in an `IdSet`."""
    found = np.empty(len(papers), dtype=np.bool_)
    for row in range(len(papers)):
        found[row] = contains(asked, papers[row])
    return found


@njit(nogil=True, cache=True)
def sorted_ids(words, ranks):  # type: ignore[no-untyped-def]
    """The ids of the set, int32, rising."""
    ids = np.empty(ranks[-1], dtype=np.int32)
    place = 0
    for word in range(len(words)):
        bits = words[word]
        while bits != _U(0):
            lowest = bits & (~bits + _ONE)
            ids[place] = word * 64 + _ones_in(lowest - _ONE)
            place += 1
            bits ^= lowest
    return ids


@njit(nogil=True, cache=True)
def _ones_in(word):  # type: ignore[no-untyped-def]
    """The number of bits that are set (Warren, Hacker's Delight, 5-1)."""
    word -= (word >> _ONE) & _U(0x5555555555555555)
    word = (word & _U(0x3333333333333333)) + ((word >> _U(2)) & _U(0x3333333333333333))
    word = (word + (word >> _U(4))) & _U(0x0F0F0F0F0F0F0F0F)
    return np.int32((word * _U(0x0101010101010101)) >> _U(56))
