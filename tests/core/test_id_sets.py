"""A set of ids answers as Python's sets and sorted lists do, whatever the ids, and takes memory by their number."""

from bisect import bisect_left
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cocite.core import id_sets
from cocite.core.errors import InputError
from cocite.core.id_sets import are_in, id_set, members_at, places_of, set_of

LARGEST = 2**63 - 1
BORDERS = (0, 2**29, 2**31, 2**32, 2**40, 2**53, 2**62, LARGEST)
DENSE = st.integers(0, 700)
SPARSE = st.integers(0, LARGEST)
CLUSTERED = st.builds(
    lambda border, step: min(max(border + step, 0), LARGEST), st.sampled_from(BORDERS), st.integers(-200, 200)
)
STRIDED = st.builds(lambda step, bits: min(step << bits, LARGEST), st.integers(0, 40), st.sampled_from([6, 12, 29, 57]))
IDS = st.sampled_from([DENSE, SPARSE, CLUSTERED, STRIDED, st.one_of(DENSE, SPARSE, CLUSTERED, STRIDED)]).flatmap(
    lambda kind: st.lists(kind, max_size=60)
)


def as_array(ids):
    return np.array(ids, dtype=np.int64)


def sorted_ids(members):
    """The ids of a set, rising, bit by bit."""
    low = len(members.words) - len(members.keys)
    filled = np.flatnonzero(members.words)
    numbers = np.where(filled < low, filled, np.append(members.keys, 0)[np.maximum(filled - low, 0)])
    words, bits = np.nonzero(np.unpackbits(members.words[filled].view(np.uint8), bitorder="little").reshape(-1, 64))
    return numbers[words] * 64 + bits


def strangers_near(ids):
    """Ids that differ from the members by one, by a word, or in their high bits alone."""
    near = {paper + step for paper in ids for step in (-64, -1, 1, 64, 2**29, 2**40)} | {paper % 2**29 for paper in ids}
    return [paper for paper in sorted(near - set(ids)) if 0 <= paper <= LARGEST]


@given(IDS)
@example([2**62, 1, 2, 3])
@example([LARGEST, LARGEST - 1, 0])
def test_a_set_tells_its_members_their_places_and_the_member_of_a_place(ids):
    members, rising = set_of(as_array(ids)), sorted(set(ids))
    assert id_sets.size(members) == len(rising)
    assert sorted_ids(members).tolist() == rising
    assert [id_sets.contains(members, paper) for paper in rising] == [True] * len(rising)
    assert [id_sets.place_of(members, paper) for paper in rising] == [bisect_left(rising, paper) for paper in rising]
    assert [id_sets.member_at(members, place) for place in range(len(rising))] == rising
    assert members_at(members, np.arange(len(rising))).tolist() == rising


@given(IDS, st.lists(SPARSE, max_size=5))
def test_a_set_knows_no_id_that_is_not_a_member(ids, others):
    members = set_of(as_array(ids))
    strangers = as_array([*strangers_near(ids), *(set(others) - set(ids)), -1])
    assert not are_in(members, strangers).any()
    assert (places_of(members, strangers) == -1).all()


@given(st.lists(IDS, max_size=5), IDS)
def test_a_set_is_the_union_of_its_batches_without_what_is_taken_out(batches, without):
    members = id_set([as_array(ids) for ids in batches], without=as_array(without))
    assert sorted_ids(members).tolist() == sorted(set().union(*batches) - set(without))


@given(st.lists(IDS, min_size=1, max_size=5))
def test_the_numbers_of_a_growing_set_become_the_places_of_their_ids(batches):
    growing = id_sets.GrowingIdSet()
    numbers = np.empty(sum(map(len, batches)), dtype=np.int32)
    ends = np.cumsum([len(ids) for ids in batches])
    for ids, end in zip(batches, ends, strict=True):
        growing.number(as_array(ids), numbers[end - len(ids) : end])
    given_out = {}
    for number, paper in zip(numbers.tolist(), [paper for ids in batches for paper in ids], strict=True):
        assert given_out.setdefault(paper, number) == number
    assert len(set(given_out.values())) == len(given_out)

    rising = growing.place(numbers).tolist()

    assert rising == sorted(given_out)
    assert [rising[place] for place in numbers.tolist()] == [paper for ids in batches for paper in ids]


@pytest.mark.parametrize("kind", ["dense", "random", "clustered", "multiples"])
def test_many_ids_are_placed_as_in_a_sorted_array(kind):
    drawn = np.random.default_rng(1)
    ids = {
        "dense": lambda: drawn.integers(0, 2**20, 300_000),
        "random": lambda: drawn.integers(0, 2**63, 300_000),
        "clustered": lambda: (
            drawn.choice(as_array([0, 2**33, 2**40, 2**62]), 300_000) + drawn.integers(0, 2**18, 300_000)
        ),
        "multiples": lambda: drawn.integers(0, 2**20, 300_000) << 40,
    }[kind]()
    rising = np.unique(ids)
    members = id_set(np.array_split(ids, 7))
    assert (sorted_ids(members) == rising).all()
    assert (places_of(members, ids) == np.searchsorted(rising, ids)).all()
    asked = np.concatenate([ids[:1000] + 1, ids[:1000] ^ 64, drawn.integers(0, 2**63, 1000)])
    assert (are_in(members, asked) == np.isin(asked, rising)).all()
    places = drawn.integers(0, len(rising), 10_000)
    assert (members_at(members, places) == rising[places]).all()


def bytes_of(members):
    return sum(part.nbytes for part in members)


def test_memory_follows_the_number_of_high_ids_and_the_largest_low_one():
    drawn = np.random.default_rng(2)
    assert bytes_of(set_of(drawn.integers(2**40, 2**63, 100_000))) < 40 * 100_000
    assert bytes_of(set_of(as_array([1, 2, 3, 2**62]))) < 1000
    assert bytes_of(set_of(np.arange(2**40, 2**40 + 6_400_000))) < 40 * 100_000
    assert bytes_of(set_of(as_array([280_000_000]))) < 1.1 * 280_000_000 / 8


def test_a_negative_id_is_refused_and_its_source_is_named():
    with pytest.raises(InputError, match=r"^a/b: contains the corpus id -7; ids must be between 0 and 9,223,"):
        id_sets.check_ids(as_array([5, -7, 2**63 - 1]), Path("a/b"))
    id_sets.check_ids(as_array([0, 2**63 - 1]), Path("a/b"))
