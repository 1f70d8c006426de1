"""Words of 64 ids, a bit each, in which members are ranked, and the hash table that leads to words by their number.

The kernels compile without reference counts, since they allocate nothing: Numba would count the references to each
array of a set for every id that is asked about, which takes a hundred times as long as the answer.
"""

import numpy as np
from numba import njit
from numba.cpython.unsafe.numbers import trailing_zeros
from numpy.typing import NDArray

BLOCK = 8
"""Words that share a rank: 64 bytes, a line of the processor's cache."""

Words = NDArray[np.uint64]
Places = NDArray[np.int32]

_U = np.uint64
_ONE = _U(1)

kernel = njit(nogil=True, cache=True, _nrt=False)  # type: ignore[call-overload]
"""Compiles what allocates nothing."""


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
