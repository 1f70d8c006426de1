"""Strings of JSON as text: escapes are resolved, and what is no UTF-8 is noticed."""

from typing import Any

import numpy as np
from numba import types

from cocite.corpus.works.lanes import U, kernel, move16
from cocite.corpus.works.navigating import BACKSLASH, BYTE, ONE, ZERO, address_of, has_control

BAD = U(0xFFFFFFFFFFFFFFFF)
"""What stands for the length of a text that cannot be read."""
_HIGHS = U(0x8080808080808080)
_memcpy: Any = types.ExternalFunction("memcpy", types.uintp(types.uintp, types.uintp, types.uintp))
_memcmp: Any = types.ExternalFunction("memcmp", types.int32(types.uintp, types.uintp, types.uintp))
_memchr: Any = types.ExternalFunction("memchr", types.uintp(types.uintp, types.int32, types.uintp))


@kernel
def copy(target, source, length):  # type: ignore[no-untyped-def]
    """Copy so many bytes from one address to another."""
    _memcpy(target, source, length)


@kernel
def copy_texts(addresses, lengths, order, text, offsets):  # type: ignore[no-untyped-def]
    """Copy texts to one array, one after the other in some order; `offsets` says where each ends."""
    target, at = U(text.ctypes.data), ZERO
    for place in range(len(order)):
        length = U(lengths[order[place]])
        copy(target + at, addresses[order[place]], length)
        at += length
        offsets[place + 1] = at


@kernel
def mark_first(rows, codes, is_first):  # type: ignore[no-untyped-def]
    """Say of each text, given the row that it is of, in rising order, and its code, whether it is not there before."""
    begun = 0
    for place in range(len(rows)):
        if rows[place] != rows[begun]:
            begun = place
        is_first[place] = True
        for before in range(begun, place):
            is_first[place] &= codes[before] != codes[place]


@kernel
def copy_short(target, source, length):  # type: ignore[no-untyped-def]
    """As `copy`, for short texts; up to 15 more bytes are read, and written."""
    copied = ZERO
    while copied < length:
        move16(target + copied, source + copied)
        copied += U(16)


@kernel
def order_of(one, length, other, other_length):  # type: ignore[no-untyped-def]
    """Below, at or above 0 as one text comes before, is, or comes after another, by their bytes."""
    order = np.int64(_memcmp(one, other, min(length, other_length)))
    return order if order else np.int64(length) - np.int64(other_length)


@kernel
def find(words, byte, start, stop):  # type: ignore[no-untyped-def]
    """The position of the first such byte; `stop` where there is none before."""
    if start >= stop:
        return stop
    address = address_of(words)
    found = U(_memchr(address + start, byte, stop - start))
    return found - address if found else stop


@kernel
def read_string(words, start, stop, into, at):  # type: ignore[no-untyped-def]
    """Copy the text between the quotes of a string to place `at` of an array; return its length there, or BAD.

    It is BAD where it holds control characters, escapes that are none, halves of surrogate pairs, or is not UTF-8. The
    text is never longer than the string.
    """
    if has_control(words, start, stop) or not is_utf8(words, start, stop):
        return BAD
    target, source, begun = U(into.ctypes.data), address_of(words), at
    while True:
        escape = find(words, 92, start, stop)
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
    """Write what an escape stands for; return the positions after it, here and there, or BAD."""
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
    """What a letter behind a backslash stands for; 0 where it stands for nothing."""
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
    """The bytes of the character that begins a word; 0 where none does."""
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
