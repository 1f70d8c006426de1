"""Put abstracts together from their inverted indexes: each word where its positions say, in machine code.

An index is an object of JSON: word → positions. Its words are ordered by (position, word); several may stand at one
position, a word may come as a key more than once, positions may be missing, and null stands for no position. What the
kernel does not read, such as more words than an abstract has, or an abstract that is longer than its index, it leaves
to Python (`records.py`).
"""

import numpy as np
from numpy.typing import NDArray

from cocite.corpus.works.lanes import WIDTH, U, below, kernel, lowest, where, where_less
from cocite.corpus.works.navigating import (
    BYTE,
    CLOSE,
    CLOSE_LIST,
    COLON,
    COMMA,
    FOUR,
    NULL,
    ONE,
    OPEN,
    OPEN_LIST,
    QUOTE,
    SPACE,
    ZERO,
    address_of,
    after_blanks,
    end_of_string,
)
from cocite.corpus.works.texts import BAD, copy_short, order_of, read_string

MOST_WORDS = 1 << 15
"""Words of an abstract, and the number of positions, that the kernel takes."""
_QUOTES, _BACKSLASHES, _BLANK, _NO_ASCII = np.uint8(34), np.uint8(92), np.uint8(32), np.uint8(128)
NO_INDEX, TEXT, LEFT_TO_PYTHON = 0, 1, 2
"""What becomes of an index."""

Bounds = tuple[NDArray[np.uint64], NDArray[np.uint64]]
"""Where each value begins and ends in a text; both are the same where it is null or missing."""


def abstracts_of(words: NDArray[np.uint64], bounds: Bounds) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray]:
    """The abstracts of the indexes between these bounds, as bytes, and where each ends; and what became of each.

    An abstract that is left to Python, or has no index, is empty.
    """
    starts, ends = bounds
    text = np.empty(int((ends - starts).sum()) + 64, dtype=np.uint8)
    offsets, outcomes = np.zeros(len(starts) + 1, dtype=np.int32), np.empty(len(starts), dtype=np.uint8)
    unescaped = np.empty(int((ends - starts).max(initial=0)) + 64, dtype=np.uint8)
    put_together(words, starts, ends, text, offsets, outcomes, unescaped, *_memory())
    return text, offsets, outcomes


def _memory() -> tuple[NDArray, NDArray]:
    """Room for the words of an abstract: their addresses, lengths and next words; and for its positions."""
    return np.empty((MOST_WORDS, 3), dtype=np.uint64), np.empty(MOST_WORDS, dtype=np.int32)


@kernel
def put_together(words, starts, ends, text, offsets, outcomes, unescaped, tokens, first_at):  # type: ignore[no-untyped-def]
    """Write the abstract of each index to `text`, and where each ends to `offsets`; `abstracts_of` gives the memory."""
    at = ZERO
    for row in range(len(starts)):
        offsets[row + 1] = at
        outcomes[row] = NO_INDEX
        if starts[row] == ends[row] or (ends[row] - starts[row] == U(4) and words[starts[row]] & FOUR == NULL):
            continue
        outcomes[row] = LEFT_TO_PYTHON
        positions, length = _read_index(words, starts[row], ends[row], unescaped, tokens, first_at)
        if positions >= 0 and length <= ends[row] - starts[row]:
            outcomes[row] = TEXT
            at = _write_words(tokens, first_at, positions, text, at)
            offsets[row + 1] = at


@kernel
def _read_index(words, position, end, unescaped, tokens, first_at):  # type: ignore[no-untyped-def]
    """Sort the words of an index into the lists that begin at `first_at`.

    Returns the number of positions, −1 where the index is left to Python, and the bytes of the words with their blanks.
    """
    used, total, count, positions = ZERO, ZERO, 0, 0
    position = after_blanks(words, position)
    if words[position] & BYTE != OPEN:
        return -1, ZERO
    position = after_blanks(words, position + ONE)
    more = words[position] & BYTE != CLOSE
    while more:
        if words[position] & BYTE != QUOTE or position >= end:
            return -1, ZERO
        start = position + ONE
        position, is_plain = _end_of_word(words, start, end)
        address, length = address_of(words) + start, position - start
        if not is_plain:
            length = read_string(words, start, position, unescaped, used)
            if length == BAD:
                return -1, ZERO
            address = U(unescaped.ctypes.data) + used
            used += length
        position = after_blanks(words, position + ONE)
        if position >= end or words[position] & BYTE != COLON:
            return -1, ZERO
        position = after_blanks(words, position + ONE)
        if words[position] & FOUR == NULL:
            position += U(4)
        elif words[position] & BYTE != OPEN_LIST:
            return -1, ZERO
        else:
            position = after_blanks(words, position + ONE)
            is_open = words[position] & BYTE != CLOSE_LIST
            while is_open:
                if words[position] & FOUR == NULL:
                    position += U(4)
                else:
                    place, position = _read_place(words, position)
                    if place < 0 or count == MOST_WORDS:
                        return -1, ZERO
                    while positions <= place:
                        first_at[positions] = -1
                        positions += 1
                    before = count
                    count = _insert(tokens, first_at, place, count, address, length)
                    total += (length + ONE) * U(count - before)
                position = after_blanks(words, position)
                byte = words[position] & BYTE
                is_open = byte == COMMA
                if (not is_open and byte != CLOSE_LIST) or position >= end:
                    return -1, ZERO
                position = after_blanks(words, position + ONE) if is_open else position
            position += ONE
        position = after_blanks(words, position)
        more = words[position] & BYTE == COMMA
        position = after_blanks(words, position + ONE) if more else position
    is_whole = words[position] & BYTE == CLOSE and position < end and after_blanks(words, position + ONE) >= end
    return (positions if is_whole else -1), total


@kernel
def _end_of_word(words, start, end):  # type: ignore[no-untyped-def]
    """The position of the quote that closes a word, and whether it is plain ASCII without escapes."""
    address = address_of(words) + start
    place = lowest(where(address, _QUOTES))
    others = where(address, _BACKSLASHES) | where_less(address, _BLANK) | ~where_less(address, _NO_ASCII)
    if place < WIDTH and others & below(place) == ZERO:
        return start + place, True
    return end_of_string(words, start, end), False


@kernel
def _read_place(words, position):  # type: ignore[no-untyped-def]
    """A position of a word and the position after it; −1 where it is no whole number, or too large."""
    place, digits = ZERO, ZERO
    digit = (words[position] & BYTE) - U(48)
    is_zero = digit == ZERO
    while digit < U(10) and digits < U(6):
        place = place * U(10) + digit
        position += ONE
        digits += ONE
        digit = (words[position] & BYTE) - U(48)
    is_place = digits > ZERO and place < U(MOST_WORDS) and not (is_zero and digits > ONE) and digit > U(9)
    return (np.int64(place) if is_place else np.int64(-1)), position


@kernel
def _insert(tokens, first_at, place, count, address, length):  # type: ignore[no-untyped-def]
    """Add a word to the list of a position, in the order of the words and each once; return the number of words."""
    before, after = np.int64(-1), np.int64(first_at[place])
    while after >= 0:
        order = order_of(address, length, tokens[after, 0], tokens[after, 1])
        if order == 0:
            return count
        if order < 0:
            break
        before, after = after, np.int64(tokens[after, 2]) - 1
    tokens[count, 0], tokens[count, 1], tokens[count, 2] = address, length, U(after + 1)
    if before < 0:
        first_at[place] = count
    else:
        tokens[before, 2] = U(count + 1)
    return count + 1


@kernel
def _write_words(tokens, first_at, positions, text, at):  # type: ignore[no-untyped-def]
    """Write the words in their order, with single blanks between; return the place after them."""
    target, is_first = U(text.ctypes.data), True
    for place in range(positions):
        token = np.int64(first_at[place])
        while token >= 0:
            if not is_first:
                text[at] = SPACE
                at += ONE
            copy_short(target + at, tokens[token, 0], tokens[token, 1])
            at += tokens[token, 1]
            is_first = False
            token = np.int64(tokens[token, 2]) - 1
    return at
