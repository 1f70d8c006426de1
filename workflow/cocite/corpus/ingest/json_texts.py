"""Texts of works: strings of JSON with their escapes resolved, and abstracts put together from inverted indexes.

An index is an object of JSON: word → positions. Its words are ordered by (position, word); several may have one
position, a word may occur as a key more than once, and null means no position. The kernel leaves indexes that it cannot
read, such as ones with more words than an abstract has, to Python (`work_records.py`).
"""

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from cocite.core.id_words import kernel
from cocite.corpus.ingest.navigating import (
    BACKSLASH,
    BYTE,
    CLOSE,
    CLOSE_LIST,
    COLON,
    COMMA,
    FOUR,
    NEWLINE,
    NULL,
    ONE,
    OPEN,
    OPEN_LIST,
    QUOTE,
    SPACE,
    WIDTH,
    ZERO,
    U,
    address_of,
    after_blanks,
    below,
    copy,
    end_of_string,
    find,
    has_control,
    is_null,
    lowest,
    where,
    where_less,
)

BAD = U(0xFFFFFFFFFFFFFFFF)
"""The length of a text that cannot be read."""
_HIGHS = U(0x8080808080808080)
_memcmp: Any = types.ExternalFunction("memcmp", types.int32(types.uintp, types.uintp, types.uintp))


@kernel
def order_of(one, length, other, other_length):  # type: ignore[no-untyped-def]
    """Below, at or above 0 as one text comes before, is, or comes after another, by their bytes."""
    order = np.int64(_memcmp(one, other, min(length, other_length)))
    return order if order else np.int64(length) - np.int64(other_length)


@kernel
def read_string(words, start, stop, into, at):  # type: ignore[no-untyped-def]
    """Copy the text between the quotes of a string to place `at` of an array; return its length, or BAD.

    It is BAD for control characters, wrong escapes, halves of surrogate pairs, or bytes that are not UTF-8.
    """
    if has_control(words, start, stop) or not is_utf8(words, start, stop):
        return BAD
    target, source, begun = U(into.ctypes.data), address_of(words), at
    while True:
        escape = find(words, BACKSLASH, start, stop)
        copy(target + at, source + start, escape - start)
        at += escape - start
        if escape >= stop:
            return at - begun
        after, at = _read_escape(words, escape + ONE, stop, into, at)
        if after == BAD:
            return BAD
        start = after


@kernel
def _read_escape(words, position, stop, into, at):  # type: ignore[no-untyped-def]
    """Write the character of an escape; return the positions after it in source and target, or BAD."""
    byte = words[position] & BYTE
    if byte != U(117):
        plain = _plain_escape(byte)
        into[at] = plain
        return (position + ONE if plain and position < stop else BAD), at + ONE
    code = _four_digits(words, position + ONE, stop)
    position += U(5)
    if U(0xD800) <= code < U(0xDC00):
        is_pair = words[position] & BYTE == BACKSLASH and words[position + ONE] & BYTE == U(117)
        low = _four_digits(words, position + U(2), stop) if is_pair else BAD
        position += U(6)
        code = U(0x10000) + ((code - U(0xD800)) << U(10)) + (low - U(0xDC00)) if low >> U(10) == U(0x37) else BAD
    elif U(0xDC00) <= code < U(0xE000):
        code = BAD
    if code == BAD:
        return BAD, at
    return position, _write_code(code, into, at)


@kernel
def _plain_escape(byte):  # type: ignore[no-untyped-def]
    """The character that a letter after a backslash represents; 0 if none."""
    if byte == U(34) or byte == U(92) or byte == U(47):
        return byte
    if byte == U(110):
        return U(10)
    if byte == U(116):
        return U(9)
    if byte == U(114):
        return U(13)
    if byte == U(98):
        return U(8)
    return U(12) if byte == U(102) else ZERO


@kernel
def _four_digits(words, position, stop):  # type: ignore[no-untyped-def]
    """The number that four hexadecimal digits say, or BAD."""
    if position + U(4) > stop:
        return BAD
    code = ZERO
    for place in range(4):
        byte = words[position + U(place)] & BYTE
        digit = byte - U(48)
        if digit > U(9):
            digit = (byte | U(32)) - U(97)
            if digit > U(5):
                return BAD
            digit += U(10)
        code = (code << U(4)) | digit
    return code


@kernel
def _write_code(code, into, at):  # type: ignore[no-untyped-def]
    """Write a character in UTF-8; return the place after it."""
    if code < U(0x80):
        into[at] = code
        return at + ONE
    more = ONE if code < U(0x800) else U(2) if code < U(0x10000) else U(3)
    first = U(0xC0) if more == ONE else U(0xE0) if more == U(2) else U(0xF0)
    into[at] = first | (code >> (U(6) * more))
    while more:
        at, more = at + ONE, more - ONE
        into[at] = U(0x80) | ((code >> (U(6) * more)) & U(0x3F))
    return at + ONE


@kernel
def is_utf8(words, position, stop):  # type: ignore[no-untyped-def]
    """Whether the bytes between two positions are UTF-8 (RFC 3629: neither overlong nor a surrogate)."""
    while position < stop:
        if words[position] & _HIGHS == ZERO:
            position += U(8)
            continue
        length = _length_of_character(words[position])
        if length == ZERO or position + length > stop:
            return False
        position += length
    return True


@kernel
def _length_of_character(word):  # type: ignore[no-untyped-def]
    """The bytes of the character that begins a word; 0 if none does."""
    first, second = word & BYTE, (word >> U(8)) & BYTE
    if first < U(0x80):
        return ONE
    if U(0xC2) <= first < U(0xE0):
        return U(2) if word & U(0xC000) == U(0x8000) else ZERO
    if first & U(0xF0) == U(0xE0):
        is_shortest = first != U(0xE0) or second >= U(0xA0)
        is_character = first != U(0xED) or second < U(0xA0)
        return U(3) if word & U(0xC0C000) == U(0x808000) and is_shortest and is_character else ZERO
    if U(0xF0) <= first < U(0xF5):
        is_shortest = first != U(0xF0) or second >= U(0x90)
        is_character = first != U(0xF4) or second < U(0x90)
        return U(4) if word & U(0xC0C0C000) == U(0x80808000) and is_shortest and is_character else ZERO
    return ZERO


MOST_WORDS = 1 << 15
"""Words of an abstract, and the number of positions, that the kernel takes."""
_QUOTES, _BACKSLASHES, _BLANK, _NO_ASCII = np.uint8(34), np.uint8(92), np.uint8(32), np.uint8(128)
NO_INDEX, TEXT, LEFT_TO_PYTHON = 0, 1, 2
"""What becomes of an index."""

Bounds = tuple[NDArray[np.uint64], NDArray[np.uint64]]
"""Start and end of each value in a text; equal if it is null or missing."""


def abstracts_of(words: NDArray[np.uint64], bounds: Bounds) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray]:
    """The abstracts of indexes, as bytes, where each ends, and what became of each; one left to Python is empty."""
    starts, ends = bounds
    text = np.empty(int((ends - starts).sum()) + 64, dtype=np.uint8)
    offsets, outcomes = np.zeros(len(starts) + 1, dtype=np.int32), np.empty(len(starts), dtype=np.uint8)
    unescaped = np.empty(int((ends - starts).max(initial=0)) + 64, dtype=np.uint8)
    # Room for the words of an abstract: their addresses, lengths and next words; and for its positions.
    tokens, first_at = np.empty((MOST_WORDS, 3), dtype=np.uint64), np.empty(MOST_WORDS, dtype=np.int32)
    put_together(words, starts, ends, text, offsets, outcomes, unescaped, tokens, first_at)
    return text, offsets, outcomes


@kernel
def put_together(words, starts, ends, text, offsets, outcomes, unescaped, tokens, first_at):  # type: ignore[no-untyped-def]
    """Write the abstract of each index to `text`, and where each ends to `offsets`; `abstracts_of` gives the memory."""
    at = ZERO
    for row in range(len(starts)):
        offsets[row + 1] = at
        outcomes[row] = NO_INDEX
        if starts[row] == ends[row] or is_null(words, starts[row], ends[row]):
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

    Returns the number of positions, −1 if the index is left to Python, and the bytes of the words with spaces.
    """
    used, total, count, positions = ZERO, ZERO, 0, 0
    position = _after_white_space(words, position)
    if words[position] & BYTE != OPEN:
        return -1, ZERO
    position = _after_white_space(words, position + ONE)
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
        position = _after_white_space(words, position + ONE)
        if position >= end or words[position] & BYTE != COLON:
            return -1, ZERO
        position = _after_white_space(words, position + ONE)
        if words[position] & FOUR == NULL:
            position += U(4)
        elif words[position] & BYTE != OPEN_LIST:
            return -1, ZERO
        else:
            position = _after_white_space(words, position + ONE)
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
                position = _after_white_space(words, position)
                byte = words[position] & BYTE
                is_open = byte == COMMA
                if (not is_open and byte != CLOSE_LIST) or position >= end:
                    return -1, ZERO
                position = _after_white_space(words, position + ONE) if is_open else position
            position += ONE
        position = _after_white_space(words, position)
        more = words[position] & BYTE == COMMA
        position = _after_white_space(words, position + ONE) if more else position
    is_whole = words[position] & BYTE == CLOSE and position < end and _after_white_space(words, position + ONE) >= end
    return (positions if is_whole else -1), total


@kernel
def _after_white_space(words, position):  # type: ignore[no-untyped-def]
    """As `after_blanks`; an index in Parquet may have several lines."""
    position = after_blanks(words, position)
    while words[position] & BYTE == NEWLINE:
        position = after_blanks(words, position + ONE)
    return position


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
    """A position of a word and the position after it; −1 if it is not a whole number, or too large."""
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
    """Write the words in order, separated by single spaces; return the position after them."""
    target, is_first = U(text.ctypes.data), True
    for place in range(positions):
        token = np.int64(first_at[place])
        while token >= 0:
            if not is_first:
                text[at] = SPACE
                at += ONE
            copy(target + at, tokens[token, 0], tokens[token, 1])
            at += tokens[token, 1]
            is_first = False
            token = np.int64(tokens[token, 2]) - 1
    return at
