"""How strongly two papers are tied: measures that correct a raw count for how often each of the two occurs.

The symbols: c of i and j is the count of a pair, the number of groups that both are in; s of i is the number of groups
that i is in; N is the number of groups. For co-citation a group is the references of a citing paper, so s is how often
a paper is cited; for coupling it is the papers that cite one paper, so s is how many references a paper has.

All are counted over the same groups, or the measures would be wrong. With `pairs: query` these are all groups that are
left without the papers that are kept out and the groups that are too large: every one that holds both papers of a
pair holds a query, so its count is complete. With `pairs: all` they are the groups that hold a query, because pairs
are counted over these only; s then says how often a paper occurs beside or as a query.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cocite.core.id_sets import GrowingIdSet, IdSet, place_of, places_of, size
from cocite.graph.citations import Source
from cocite.graph.counting import UNIT, Counted
from cocite.graph.groups import ANCHORED_GROUPS, GROUPS, Tally, read_members

Numbers = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Occurrences:
    """How many groups each paper is in."""

    papers: IdSet
    """The papers that a pair can have."""
    counts: NDArray[np.int32]
    """Groups that each is in, by its place."""
    groups: int
    """How many groups there are."""


def cosine(count: Numbers, one: Numbers, other: Numbers, groups: int) -> Numbers:
    """Salton's cosine, c / √(s·s) (Salton and McGill, 1983, Introduction to Modern Information Retrieval)."""
    return count / np.sqrt(one * other)


def jaccard(count: Numbers, one: Numbers, other: Numbers, groups: int) -> Numbers:
    """Jaccard's index, c / (s + s − c): of the groups with either, the share with both (Jaccard, 1901; Small, 1973)."""
    return count / (one + other - count)


def association(count: Numbers, one: Numbers, other: Numbers, groups: int) -> Numbers:
    """Association strength, c / (s·s) (van Eck and Waltman, 2009), proportional to observed over expected."""
    return count / (one * other)


def pmi(count: Numbers, one: Numbers, other: Numbers, groups: int) -> Numbers:
    """Pointwise mutual information in bits, log₂(N·c / (s·s)) (Church and Hanks, 1990). It can be 0 or less."""
    return np.log2(groups * count / (one * other))


MEASURES = {measure.__name__: measure for measure in (cosine, jaccard, association, pmi)}
"""The measures that take occurrences. `fractional` sums 1/(members − 1) over the groups of a pair instead, so that each
member of a group gives 1 in all, however large the group (Perianes-Rodriguez, Waltman and van Eck, 2016)."""


def count_occurrences(source: Source, *, all_pairs: bool) -> Occurrences:
    """Count in two passes: which papers are in a group with a query, and how many groups each of them is in."""
    growing = GrowingIdSet()
    for members in read_members(source, Tally(), anchored=True):
        growing.add(members)
    papers = growing.finish()
    counts = np.zeros(size(papers), dtype=np.int32)
    tally = Tally()
    for members in read_members(source, tally, anchored=all_pairs):
        _count(papers, counts, members)
    groups = tally.numbers[ANCHORED_GROUPS if all_pairs else GROUPS]
    return Occurrences(papers=papers, counts=counts, groups=int(groups))


def strengths_of(measure: str, counted: Counted, occurrences: Occurrences | None) -> Numbers:
    """The strength of each pair, float64."""
    paper, other, count, shares = counted
    if occurrences is None:
        return shares / UNIT
    counts = occurrences.counts
    one, two = (counts[places_of(occurrences.papers, end)].astype(np.float64) for end in (paper, other))
    return MEASURES[measure](count.astype(np.float64), one, two, occurrences.groups)


@njit(nogil=True, cache=True)
def _count(papers, counts, members):  # type: ignore[no-untyped-def]
    for member in members:
        place = place_of(papers, member)
        if place >= 0:
            counts[place] += 1
