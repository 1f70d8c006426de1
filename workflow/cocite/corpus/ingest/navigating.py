"""Find one's way in JSON text: past strings, lists and objects, from member to member, without reading what is skipped.

Text is given as overlapping words: `words[i]` are the eight bytes from byte i on. Positions are unsigned, because Numba
would wrap negative ones. Sixty-four bytes are compared at a time as well; LLVM finds the instructions. So 64 bytes from
any position on must be readable. Whether skipped text is valid is not judged, but for its quotes and brackets.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.cpython.unsafe.numbers import trailing_zeros
from numba.extending import intrinsic
from numpy.typing import NDArray

from cocite.core.id_words import kernel, ones_in

U = np.uint64
WIDTH = U(64)
"""Bytes that are looked at together."""
BYTE, FOUR, FIVE = U(0xFF), U(0xFFFFFFFF), U(0xFFFFFFFFFF)
ZERO, ONE = U(0), U(1)
QUOTE, BACKSLASH, COMMA, COLON, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, SPACE = (U(ord(each)) for each in '"\\,:{}[] ')
TAB, NEWLINE, RETURN = U(9), U(10), U(13)
_QUOTES, _BACKSLASHES, _OPENING, _CLOSING = (np.uint8(ord(each)) for each in '"\\{}')
"""A bracket of a list is the brace of an object without the bit 0x20."""
_VECTOR = ir.VectorType(ir.IntType(8), 64)
_memchr: Any = types.ExternalFunction("memchr", types.uintp(types.uintp, types.int32, types.uintp))
_memcpy: Any = types.ExternalFunction("memcpy", types.uintp(types.uintp, types.uintp, types.uintp))
"""Copies to an address from another one so many bytes."""


def word_of(text: str) -> np.uint64:
    """Up to eight characters of ASCII as the lowest bytes of a word."""
    return U(int.from_bytes(text.encode(), "little"))


NULL, TRUE, FALSE = map(word_of, ("null", "true", "false"))


def overlapping_words(text: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The eight bytes from each byte of the text on, as a view; its last seven bytes start none."""
    return np.ndarray(shape=(len(text) - 7,), dtype=np.uint64, buffer=text, strides=(1,))


def _equal_to(*, folded: bool) -> Any:
    """What gives the bits of the bytes that are equal to a byte; folded ones have the bit 0x20."""

    def bits(typingctx, address, byte):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            at, wanted = arguments
            text = builder.load(builder.inttoptr(at, _VECTOR.as_pointer()))
            text.align = 1
            lane = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), wanted, ir.IntType(32)(0))
            splat = builder.shuffle_vector(lane, lane, ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64))
            if folded:
                text = builder.or_(text, ir.Constant(_VECTOR, [0x20] * 64))
            return builder.bitcast(builder.icmp_unsigned("==", text, splat), ir.IntType(64))

        return types.uint64(types.uint64, types.uint8), generate

    return intrinsic(bits)


_where, _where_folded = _equal_to(folded=False), _equal_to(folded=True)
"""A bit for each of the 64 bytes from an address on that is a byte."""


@kernel
def lowest(bits):  # type: ignore[no-untyped-def]
    """The place of the lowest bit that is set; 64 if none is."""
    return U(trailing_zeros(bits)) if bits else WIDTH  # type: ignore[call-arg]


@kernel
def _between(marks):  # type: ignore[no-untyped-def]
    """The bits from each odd mark up to the even one after it: the contents of strings, if the marks are quotes."""
    inside = marks
    inside ^= inside << ONE
    inside ^= inside << U(2)
    inside ^= inside << U(4)
    inside ^= inside << U(8)
    inside ^= inside << U(16)
    inside ^= inside << U(32)
    return inside


@kernel
def address_of(words):  # type: ignore[no-untyped-def]
    """The address of the first byte."""
    return U(words.ctypes.data)


@kernel
def copy_texts(addresses, lengths, order, text, offsets):  # type: ignore[no-untyped-def]
    """Copy texts to one array, one after the other in some order; `offsets` says where each ends."""
    target, at = U(text.ctypes.data), ZERO
    for place in range(len(order)):
        length = U(lengths[order[place]])
        _memcpy(target + at, addresses[order[place]], length)
        at += length
        offsets[place + 1] = at


@kernel
def find(words, byte, start, stop):  # type: ignore[no-untyped-def]
    """The position of the first such byte; `stop` if there is none before."""
    if start >= stop:
        return stop
    address = address_of(words)
    found = U(_memchr(address + start, np.int32(byte), stop - start))
    return found - address if found else stop


@kernel
def after_blanks(words, position):  # type: ignore[no-untyped-def]
    """The position of the next byte that is no white space within a line of JSON."""
    byte = words[position] & BYTE
    while byte in (SPACE, TAB, RETURN):
        position += ONE
        byte = words[position] & BYTE
    return position


@kernel
def end_of_string(words, start, end):  # type: ignore[no-untyped-def]
    """The position of the quote that closes the string whose text begins at `start`; `end` where none does."""
    address, position = address_of(words), start
    while position < end:
        quotes = _where(address + position, _QUOTES)
        escapes = _where(address + position, _BACKSLASHES)
        place, escape = lowest(quotes), lowest(escapes)
        if place < escape:
            return min(position + place, end)
        position += escape + U(2) if escape < WIDTH else WIDTH
    return end


@kernel
def after_nested(words, position, end):  # type: ignore[no-untyped-def]
    """The position after the list or object that begins here; `end` if it is not closed before."""
    address, inside, depth, is_escaped = address_of(words), ZERO, 0, ZERO
    while position < end:
        at = address + position
        # All steps are as wide, so that the processor begins with the next one before this one is done.
        escapes, escaped = _where(at, _BACKSLASHES), is_escaped
        if escapes | is_escaped:
            escaped, is_escaped = _escaped_by(escapes, is_escaped)
        strings = _between(_where(at, _QUOTES) & ~escaped) ^ inside
        seen = ~(strings | escaped)
        opened, closed = _where_folded(at, _OPENING) & seen, _where_folded(at, _CLOSING) & seen
        if depth <= ones_in(closed):
            count, left = 0, closed
            while left:
                bit = left & (ZERO - left)
                count += 1
                if depth + ones_in(opened & (bit - ONE)) == count:
                    return min(position + lowest(bit) + ONE, end)
                left ^= bit
        depth += ones_in(opened) - ones_in(closed)
        inside = ZERO - (strings >> U(63))
        position += WIDTH
    return end


@kernel
def _escaped_by(escapes, is_escaped):  # type: ignore[no-untyped-def]
    """The bits of what backslashes escape, given whether the first bit is; and whether what follows is."""
    escaped, left = is_escaped, escapes & ~is_escaped
    while left:
        bit = left & (ZERO - left)
        escaped |= bit << ONE
        left &= ~(bit | bit << ONE)
    return escaped, (escapes & ~escaped) >> U(63)


@kernel
def after_value(words, position, end):  # type: ignore[no-untyped-def]
    """The position after a value of any kind; `end` or beyond if it does not end before."""
    byte = words[position] & BYTE
    if byte == QUOTE:
        return end_of_string(words, position + ONE, end) + ONE
    if byte in (OPEN, OPEN_LIST):
        return after_nested(words, position, end)
    while byte != COMMA and byte != CLOSE and byte != CLOSE_LIST and byte > SPACE and byte != QUOTE:
        position += ONE
        byte = words[position] & BYTE
    return position


@kernel
def next_member(words, position, end):  # type: ignore[no-untyped-def]
    """The member of an object that begins here: where its key and its value begin and end, and what follows them.

    What follows is the position of a comma or of the bracket that closes the object; `end` if there is no member. A key
    with an escape is not unescaped, so it matches no key.
    """
    key = after_blanks(words, position) + ONE
    if words[key - ONE] & BYTE != QUOTE:
        return key, key, key, key, end
    key_end = end_of_string(words, key, end)
    value = after_blanks(words, key_end + ONE)
    if value >= end or words[value] & BYTE != COLON:
        return key, key_end, value, value, end
    value = after_blanks(words, value + ONE)
    after = after_value(words, value, end)
    return key, key_end, value, after, min(after_blanks(words, after), end)
