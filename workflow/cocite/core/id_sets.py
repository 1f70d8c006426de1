"""Sets of corpus ids: membership, the position of an id among the sorted members, and the member at a position.

Members are bits in words of 64 ids (rank and select, Jacobson, 1989). The words of *low* ids, those below 2²⁹, are in
one array, indexed by their own number: corpus ids of Semantic Scholar are dense, so all of them take 36 MB, and a
lookup is one memory access. Of *high* ids, only words with a member are stored, in a second array indexed by a hash
table: up to 33 bytes per member for random ids, less for clustered ids, however large the largest id is.

A growing set first numbers its members in 31 bits, since positions are known only once it is complete.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.cpython.unsafe.numbers import trailing_zeros
from numpy.typing import NDArray

from cocite.core.errors import InputError
from cocite.core.written_ids import LARGEST_ID, Ids

BLOCK = 8
"""Words that share a rank: 64 bytes, a line of the processor's cache."""

Words = NDArray[np.uint64]
Places = NDArray[np.int32]

_U = np.uint64
_ONE = _U(1)

kernel = njit(nogil=True, cache=True, _nrt=False)  # type: ignore[call-overload]
"""Compiles what allocates nothing, without reference counts: Numba would count those to each array of a set for every
id that is asked about, which takes a hundred times as long as the answer."""
LOW_WORDS = 2**29 // 64
HIGH_WORDS = 2**31 // 64 - LOW_WORDS
"""Words of high ids whose members can be numbered."""
BYTES_A_WORD = 64
"""Memory that a word of high ids takes at most while a set grows, and until its members are placed."""

NO_IDS: Ids = np.empty(0, dtype=np.int64)
NO_NUMBERS: Places = np.empty(0, dtype=np.int32)


class IdSet(NamedTuple):
    """A set of ids to ask questions; it has fewer than 2³¹ members."""

    words: Words
    """The words of low ids up to the last with a member, then those of high ids with a member, rising."""
    keys: Ids
    """The numbers of the words of high ids: their ids divided by 64."""
    slots: Places
    """A hash table of places among the keys."""
    filled: Words
    """A bit for each low word with a member: so small that most questions end in the processor's cache."""
    ranks: Places
    """Members before each block of words, and at the end how many there are."""


class GrowingIdSet:
    """A set of ids that batches are added to, in any order; an id may come any number of times."""

    def __init__(self) -> None:
        self._low = np.zeros(LOW_WORDS, dtype=np.uint64)  # The kernel gives it memory only as far as ids reach.
        self._keys, self._high, self._slots = NO_IDS, self._low[:0], NO_NUMBERS
        self._used = np.zeros(2, dtype=np.int64)

    @property
    def high_words(self) -> int:
        """Words of high ids with a member; each takes up to `BYTES_A_WORD`."""
        return int(self._used[1])

    def add(self, ids: Ids) -> None:
        """Add ids, none of which is negative."""
        self._enter(ids, NO_NUMBERS)

    def number(self, ids: Ids, numbers: Places) -> None:
        """Add ids and write their numbers; equal ids have equal ones. Ids of `HIGH_WORDS` words can be numbered."""
        self._enter(ids, numbers)
        if self.high_words > HIGH_WORDS:
            raise OverflowError(f"{self.high_words:,} words of high ids, of which {HIGH_WORDS:,} can be numbered")

    def remove(self, ids: Ids) -> None:
        """Remove those of the ids that are members."""
        low, high = self._used
        _remove(ids, self._low[:low], self._keys[:high], self._high, self._slots)

    def finish(self) -> IdSet:
        """The set as it is now. It takes the memory of this one, which can grow no more."""
        words, keys, _ = self._in_order()
        filled = filled_words(words[: len(words) - len(keys)])
        return IdSet(words=words, keys=keys, slots=slots_for(keys, len(keys)), filled=filled, ranks=ranks_of(words))

    def place(self, numbers: Places) -> Ids:
        """Overwrite numbers by places among all members; return these, rising. The set can grow no more."""
        words, keys, order = self._in_order()
        positions = np.empty(len(order), dtype=np.int32)
        positions[order] = np.arange(len(order), dtype=np.int32)
        ranks = ranks_of(words)
        _put_places(numbers, words, ranks, len(words) - len(keys), positions)
        return _sorted_ids(words, keys, ranks[-1])

    def _enter(self, ids: Ids, numbers: Places) -> None:
        last = int(ids.max(initial=-1)) >> 6
        if last < LOW_WORDS:
            _mark(self._low, ids)
            self._used[0] = max(self._used[0], last + 1)
            numbers[:] = ids[: len(numbers)]
            return
        row = 0
        while (row := _enter(ids, row, self._low, self._keys, self._high, self._slots, self._used, numbers)) < len(ids):
            room, used = max(1024, 2 * len(self._keys)), self.high_words
            self._keys, self._high = (_extended(each, room) for each in (self._keys, self._high))
            self._slots = slots_for(self._keys[:used], room)

    def _in_order(self) -> tuple[Words, Ids, Ids]:
        """The words as an `IdSet` has them, the keys of the high ones, and where these were before."""
        low, high = self._used
        self._slots = NO_NUMBERS
        order = np.argsort(self._keys[:high])
        words = np.concatenate([self._low[:low], self._high[order]]) if high else self._low[:low]
        keys = self._keys[order]
        self._keys, self._high = NO_IDS, self._low[:0]
        return words, keys, order


def id_set(batches: Iterable[Ids], *, without: Ids = NO_IDS) -> IdSet:
    """The set of all ids in some batches but those `without`; an id may come twice, and none is negative."""
    growing = GrowingIdSet()
    for ids in batches:
        growing.add(ids)
    growing.remove(without)
    return growing.finish()


def set_of(ids: Ids) -> IdSet:
    """The set of these ids."""
    return id_set([ids])


def size(members: IdSet) -> int:
    """How many ids there are in a set."""
    return int(members.ranks[-1])


def check_ids(ids: Ids, source: Path) -> None:
    """Raise `InputError`, which names the source, if an id is negative."""
    if len(ids) and ids.min() < 0:
        raise InputError(f"{source}: contains the corpus id {ids.min()}; ids must be between 0 and {LARGEST_ID:,}.")


@kernel
def contains(members, paper):  # type: ignore[no-untyped-def]
    """Whether an id is in a set."""
    word = _word_of(members, paper)
    return word >= 0 and members.words[word] & bit_of(paper) != 0


@kernel
def place_of(members, paper):  # type: ignore[no-untyped-def]
    """The position of an id among the sorted members, from 0; −1 if it is not a member."""
    word = _word_of(members, paper)
    if word < 0 or members.words[word] & bit_of(paper) == 0:
        return -1
    return rank(members.words, members.ranks, word, paper)


@kernel
def member_at(members, place):  # type: ignore[no-untyped-def]
    """The member of a place."""
    word, bit = select(members.words, members.ranks, place)
    return _first_id(members.words, members.keys, word) + bit


@njit(nogil=True, cache=True)
def are_in(members, papers):  # type: ignore[no-untyped-def]
    """Whether each of some ids is in a set."""
    found = np.empty(papers.shape, dtype=np.bool_)
    for row, paper in np.ndenumerate(papers):
        found[row] = contains(members, paper)
    return found


@njit(nogil=True, cache=True)
def places_of(members, papers):  # type: ignore[no-untyped-def]
    """The position of each id among the sorted members; −1 if it is not a member."""
    places = np.empty(papers.shape, dtype=np.int32)
    for row, paper in np.ndenumerate(papers):
        places[row] = place_of(members, paper)
    return places


@njit(nogil=True, cache=True)
def members_at(members, places):  # type: ignore[no-untyped-def]
    """The member of each place."""
    papers = np.empty(places.shape, dtype=np.int64)
    for row, place in np.ndenumerate(places):
        papers[row] = member_at(members, place)
    return papers


@kernel
def _word_of(members, paper):  # type: ignore[no-untyped-def]
    """The place of the word that an id is in, −1 where none of its ids is a member."""
    key, low = paper >> 6, len(members.words) - len(members.keys)
    if 0 <= key < low:
        return key if members.filled[key >> 6] & bit_of(key) != 0 else -1
    if len(members.keys) == 0:
        return -1
    high = members.slots[slot_of(members.keys, members.slots, key)]
    return low + high if high >= 0 else -1


@kernel
def _first_id(words, keys, word):  # type: ignore[no-untyped-def]
    low = len(words) - len(keys)
    return (word if word < low else keys[word - low]) << 6


@kernel
def _mark(low, ids):  # type: ignore[no-untyped-def]
    for paper in ids:
        low[np.uint64(paper) >> np.uint64(6)] |= bit_of(paper)


@kernel
def _enter(ids, row, low, keys, high, slots, used, numbers):  # type: ignore[no-untyped-def]
    """Add ids from a row on, numbering them if `numbers` is given; return the row at which the table is full."""
    last, is_numbered = used[0], len(numbers) > 0
    while row < len(ids):
        word = ids[row] >> 6
        if word < len(low):
            low[word] |= bit_of(ids[row])
            last = max(last, word + 1)
        else:
            if used[1] == len(keys):
                break
            slot = slot_of(keys, slots, word)
            if slots[slot] < 0:
                slots[slot] = used[1]
                keys[used[1]], high[used[1]] = word, 0
                used[1] += 1
            high[slots[slot]] |= bit_of(ids[row])
            word = len(low) + slots[slot]
        if is_numbered:
            numbers[row] = (word << 6) | (ids[row] & 63)
        row += 1
    used[0] = last
    return row


@kernel
def _remove(ids, low, keys, high, slots):  # type: ignore[no-untyped-def]
    for paper in ids:
        word = paper >> 6
        if word < len(low):
            low[word] &= ~bit_of(paper)
        elif len(keys):
            found = slots[slot_of(keys, slots, word)]
            if found >= 0:
                high[found] &= ~bit_of(paper)


@kernel
def _put_places(numbers, words, ranks, low, positions):  # type: ignore[no-untyped-def]
    """Overwrite numbers by places; `positions` are those of the high words, of which `low` others are ahead."""
    for row in range(len(numbers)):
        word = numbers[row] >> 6
        if word >= LOW_WORDS:
            word = low + positions[word - LOW_WORDS]
        numbers[row] = rank(words, ranks, word, numbers[row])


@njit(nogil=True, cache=True)
def _sorted_ids(words, keys, count):  # type: ignore[no-untyped-def]
    ids = np.empty(count, dtype=np.int64)
    place = 0
    for word in range(len(words)):
        bits, first = words[word], _first_id(words, keys, word)
        while bits != 0:
            ids[place] = first + lowest(bits)
            place += 1
            bits &= bits - np.uint64(1)
    return ids


def _extended(values: NDArray, room: int) -> NDArray:
    """The values with memory for more behind them, which is not touched."""
    extended = np.empty(room, dtype=values.dtype)
    extended[: len(values)] = values
    return extended


@kernel
def bit_of(paper):  # type: ignore[no-untyped-def]
    """The bit of an id in its word."""
    return _ONE << _U(paper & 63)


@njit(nogil=True, cache=True)
def ranks_of(words):  # type: ignore[no-untyped-def]
    """The number of members before each block of words, and in all."""
    ranks = np.zeros((len(words) + BLOCK - 1) // BLOCK + 1, dtype=np.int32)
    for block in range(len(ranks) - 1):
        ranks[block + 1] = ranks[block]
        for word in range(block * BLOCK, min((block + 1) * BLOCK, len(words))):
            ranks[block + 1] += ones_in(words[word])
    return ranks


@kernel
def rank(words, ranks, word, paper):  # type: ignore[no-untyped-def]
    """The number of members before an id of a word."""
    word = _U(word)  # Numba would let a signed one count from the end, which takes time.
    block = word // _U(BLOCK)
    before = ranks[block] + ones_in(words[word] & (bit_of(paper) - _ONE))
    for other in range(block * _U(BLOCK), word):
        before += ones_in(words[other])
    return before


@kernel
def select(words, ranks, place):  # type: ignore[no-untyped-def]
    """The word and the bit of the member of a place."""
    block = np.searchsorted(ranks, place, "right") - 1
    word, left = block * BLOCK, place - ranks[block]
    while left >= ones_in(words[word]):
        left -= ones_in(words[word])
        word += 1
    bits = words[word]
    for _ in range(left):
        bits &= bits - _ONE
    return word, lowest(bits)


@njit(nogil=True, cache=True)
def filled_words(words):  # type: ignore[no-untyped-def]
    """A bit for each word that is not 0."""
    filled = np.zeros(len(words) // 64 + 1, dtype=np.uint64)
    for word in range(len(words)):
        if words[word] != _U(0):
            filled[word >> 6] |= bit_of(word)
    return filled


@kernel
def ones_in(word):  # type: ignore[no-untyped-def]
    """The number of bits that are set (Warren, Hacker's Delight, 5-1)."""
    word -= (word >> _ONE) & _U(0x5555555555555555)
    word = (word & _U(0x3333333333333333)) + ((word >> _U(2)) & _U(0x3333333333333333))
    word = (word + (word >> _U(4))) & _U(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * _U(0x0101010101010101)) >> _U(56))


@kernel
def lowest(word):  # type: ignore[no-untyped-def]
    """The place of the lowest bit that is set."""
    return np.int64(trailing_zeros(word))  # type: ignore[call-arg]


@njit(nogil=True, cache=True)
def slots_for(keys, room):  # type: ignore[no-untyped-def]
    """A hash table with the place of each key, and −1 in free slots: half of them, when the room is used up."""
    size = 2
    while size < 2 * room:
        size *= 2
    slots = np.full(size, -1, dtype=np.int32)
    for place in range(len(keys)):
        slots[slot_of(keys, slots, keys[place])] = place
    return slots


@kernel
def slot_of(keys, slots, key):  # type: ignore[no-untyped-def]
    """The slot of a key, or the free one that it would get."""
    mask = len(slots) - 1
    mixed = _U(key)
    mixed = (mixed ^ (mixed >> _U(32))) * _U(0xD6E8FEB86659FD93)
    slot = np.int64(mixed ^ (mixed >> _U(32))) & mask
    while slots[slot] >= 0 and keys[slots[slot]] != key:
        slot = (slot + 1) & mask
    return slot
