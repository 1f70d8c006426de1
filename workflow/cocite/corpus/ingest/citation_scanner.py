"""Scan lines of JSON for citations, eight bytes at a time, in machine code that Numba compiles and keeps.

DuckDB takes twice as long as the whole ingestion (docs/speed.md). Lines in an unusual form, the *odd* ones, are left to
Python's parser (`citations.py`). Unused values are skipped without validation but for quotes and brackets. `words[i]`
are the eight bytes from byte i on; `PADDING` bytes after the text must be readable. Positions are unsigned, since Numba
would wrap negative ones.
"""

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from cocite.core.id_sets import kernel
from cocite.core.written_ids import LARGEST_ID
from cocite.corpus.ingest.merge import INFLUENTIAL, UNKNOWN_INTENT

U = np.uint64
BYTE, FOUR, FIVE = U(0xFF), U(0xFFFFFFFF), U(0xFFFFFFFFFF)
ZERO, ONE = U(0), U(1)
QUOTE, BACKSLASH, COMMA, COLON, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, SPACE = (U(ord(each)) for each in '"\\,:{}[] ')
TAB, NEWLINE, RETURN = U(9), U(10), U(13)
_memchr: Any = types.ExternalFunction("memchr", types.uintp(types.uintp, types.int32, types.uintp))


def word_of(text: str) -> np.uint64:
    """Up to eight characters of ASCII as the lowest bytes of a word."""
    return U(int.from_bytes(text.encode(), "little"))


NULL, TRUE, FALSE = map(word_of, ("null", "true", "false"))

NONE, MISSING, ODD = -1, -2, -3
"""Codes for an id that is null, missing, or not a plain whole number."""
NO_CITING, NO_CITED, SELF, NO_TEXTS = 0, 1, 2, 3
"""Places in the counts: of citations that are left out, and of those whose contexts are no list of texts."""
_TWO, _THREE = U(0xFFFF), U(0xFFFFFF)
_MOST_DIGITS = U(19)
"""Digits of the largest id; any number with as many fits in 64 bits."""
_LARGEST_ID = U(LARGEST_ID)
_ID = (word_of('"citatio'), word_of('nid":'))
_CITING = (word_of('"citingc'), word_of('orpusid"'))
_CITED = (word_of('"citedco'), word_of('rpusid":'))
_INFLUENTIAL = (word_of('"isinflu'), word_of('ential":'))
_INTENTS = (word_of('"intents'), word_of('":'))
_CONTEXTS = (word_of('"context'), word_of('s":'))
_BACKGROUND = (word_of("backgrou"), word_of('nd"'))
_METHODOLOGY = (word_of("methodol"), word_of('ogy"'))
_RESULT = word_of('result"')


@kernel
def scan_citations(words, start, end, rows, odd, counts, ids_only, contexts):  # type: ignore[no-untyped-def]
    """Read whole lines from byte `start` to `end` until they end, or `rows` or `odd` are full.

    `rows` are arrays of the citation ids, citing ids, cited ids and traits; `odd` takes the start and the end of each
    line that is left to others, and `counts` goes up for lines without a row. With `ids_only`, every line that has a
    citation id gives a row of that id only, and the others are odd. `contexts` takes the start and the end of the
    contexts of each row, 0 and 0 if it has none; if the array is empty, contexts are not read. Returns where it
    stopped, and how many rows and odd lines there are. `PADDING` bytes after `end` must be readable.
    """
    citationid, citing, cited, traits = rows
    most = min(len(citing), len(contexts)) if len(contexts) else len(citing)
    position, written, skipped = start, 0, 0
    while position < end and written < most and skipped < len(odd):
        line = position
        position = find(words, NEWLINE, line, end) + ONE
        number, source, target, trait, first, after = _read_citation(words, line, position - ONE, len(contexts) > 0)
        if source == ODD or (ids_only and number == NONE):
            odd[skipped, 0], odd[skipped, 1] = line, position
            skipped += 1
        elif ids_only:
            citationid[written] = number
            written += 1
        elif source == NONE:
            counts[NO_CITING] += 1
        elif target == NONE:
            counts[NO_CITED] += 1
        elif source == target:
            counts[SELF] += 1
        else:
            citationid[written], citing[written], cited[written], traits[written] = number, source, target, trait
            if len(contexts):
                counts[NO_TEXTS] += after == ONE
                contexts[written, 0], contexts[written, 1] = first, after if after > ONE else ZERO
            written += 1
    return position, written, skipped


@kernel
def _read_citation(words, position, end, with_contexts):  # type: ignore[no-untyped-def]
    """The line up to the newline at `end`: its citation id, its citing and cited ids, its traits, and its contexts. The
    citing id is ODD if the line is not one object of the expected kind. Contexts are given by their start and end: 0
    and 0 if there are none, 0 and 1 if they are not a list of texts."""
    first, after = ZERO, ZERO
    number, source, target = NONE, MISSING, MISSING
    influential, intents = np.uint8(0), np.uint8(0)
    position = after_blanks(words, position)
    more = words[position] & BYTE == OPEN
    position += ONE
    while more:
        position = after_blanks(words, position)
        key, rest = words[position], words[position + U(8)]
        if key == _CITING[0] and rest == _CITING[1] and words[position + U(16)] & BYTE == COLON:
            source, position = _read_id(words, after_blanks(words, position + U(17)))
        elif key == _CITED[0] and rest == _CITED[1]:
            target, position = _read_id(words, after_blanks(words, position + U(16)))
        elif key == _ID[0] and rest & FIVE == _ID[1]:
            number, position = _read_id(words, after_blanks(words, position + U(13)))
        elif key == _INFLUENTIAL[0] and rest == _INFLUENTIAL[1]:
            influential, position = _read_influential(words, after_blanks(words, position + U(16)))
        elif key == _INTENTS[0] and rest & _TWO == _INTENTS[1]:
            intents, position = _read_intents(words, after_blanks(words, position + U(10)), end)
        elif with_contexts and key == _CONTEXTS[0] and rest & _THREE == _CONTEXTS[1]:
            first, after, position = _read_contexts(words, after_blanks(words, position + U(11)), end)
        else:
            position = _after_member(words, position, end)
        position = after_blanks(words, position)
        more = words[position] & BYTE == COMMA and position < end
        position += ONE
    closed = words[position - ONE] & BYTE == CLOSE
    if not closed or after_blanks(words, position) != end or min(number, source, target) < NONE:
        source = ODD
    return number, source, target, influential | intents, first, after


@kernel
def _read_id(words, position):  # type: ignore[no-untyped-def]
    """A whole number, plain or as a string, or null; and the position after it. Of anything else, ODD."""
    if words[position] & FOUR == NULL:
        return NONE, position + U(4)
    quoted = words[position] & BYTE == QUOTE
    first = position + U(quoted)
    position = first
    value = U(0)
    digit = (words[position] & BYTE) - U(48)
    while digit < U(10):
        value = value * U(10) + digit
        position += ONE
        digit = (words[position] & BYTE) - U(48)
    digits = position - first
    if digits == U(0) or digits > _MOST_DIGITS or value > _LARGEST_ID:
        return ODD, position
    if quoted:
        return (np.int64(value) if words[position] & BYTE == QUOTE else ODD), position + ONE
    return (ODD if words[first] & BYTE == U(48) and digits > ONE else np.int64(value)), position


@kernel
def _read_influential(words, position):  # type: ignore[no-untyped-def]
    value = words[position] & FOUR
    if value in (TRUE, NULL):
        return np.uint8(INFLUENTIAL if value == TRUE else 0), position + U(4)
    return np.uint8(0), position + (U(5) if words[position] & FIVE == FALSE else ZERO)


@kernel
def _read_intents(words, position, end):  # type: ignore[no-untyped-def]
    """The set of the intents that are named in lists, however deep, as bits; and the position after them."""
    intents, depth = np.uint8(0), 0
    while position < end:
        byte = words[position] & BYTE
        if byte == QUOTE:
            first, second = words[position + ONE], words[position + U(9)]
            if first == _BACKGROUND[0] and second & _THREE == _BACKGROUND[1]:
                intents |= np.uint8(1)
            elif first == _METHODOLOGY[0] and second & FOUR == _METHODOLOGY[1]:
                intents |= np.uint8(2)
            elif first & U(0xFFFFFFFFFFFFFF) == _RESULT:
                intents |= np.uint8(4)
            else:
                intents |= np.uint8(UNKNOWN_INTENT)
            position = _end_of_plain_string(words, position + ONE, end)
        elif byte == OPEN_LIST:
            depth += 1
        elif byte == CLOSE_LIST:
            depth -= 1
        elif words[position] & FOUR == NULL:
            position += U(3)
        elif byte != COMMA and byte != SPACE:
            return intents, end
        position += ONE
        if depth == 0:
            return intents, position
    return intents, end


@kernel
def _read_contexts(words, start, end):  # type: ignore[no-untyped-def]
    """The start and the end of a list of texts and nulls, as `_read_citation` gives them; and the position after."""
    if words[start] & FOUR == NULL:
        return ZERO, ZERO, start + U(4)
    if words[start] & BYTE != OPEN_LIST:
        return ZERO, ONE, after_value(words, start, end)
    position, texts = after_blanks(words, start + ONE), 0
    more = words[position] & BYTE != CLOSE_LIST
    while more and position < end:
        if words[position] & BYTE == QUOTE:
            position = end_of_string(words, position + ONE, end) + ONE
            texts += 1
        elif words[position] & FOUR == NULL:
            position += U(4)
        else:
            break
        position = after_blanks(words, position)
        more = words[position] & BYTE == COMMA
        position = after_blanks(words, position + ONE) if more else position
    if more or position >= end or words[position] & BYTE != CLOSE_LIST:
        return ZERO, ONE, after_value(words, start, end)
    position += ONE
    return (start, position, position) if texts else (ZERO, ZERO, position)


@kernel
def _end_of_plain_string(words, start, end):  # type: ignore[no-untyped-def]
    """The position of the quote that closes a string; `end` if there is none, or the string has an escape."""
    position = find(words, QUOTE, start, end)
    return position if find(words, BACKSLASH, start, position) == position else end


def overlapping_words(text: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The eight bytes from each byte of the text on, as a view; its last seven bytes start none."""
    return np.ndarray(shape=(len(text) - 7,), dtype=np.uint64, buffer=text, strides=(1,))


@kernel
def find(words, byte, start, stop):  # type: ignore[no-untyped-def]
    """The position of the first such byte; `stop` if there is none before."""
    if start >= stop:
        return stop
    address = U(words.ctypes.data)
    found = U(_memchr(address + start, np.int32(byte), stop - start))
    return found - address if found else stop


@kernel
def after_blanks(words, position):  # type: ignore[no-untyped-def]
    """The position of the next byte that is no white space within a line of JSON."""
    while words[position] & BYTE in (SPACE, TAB, RETURN):
        position += ONE
    return position


@kernel
def end_of_string(words, start, end):  # type: ignore[no-untyped-def]
    """The position of the quote that closes the string whose text begins at `start`; `end` if none does."""
    position = find(words, QUOTE, start, end)
    while position < end:
        first = position
        while first > start and words[first - ONE] & BYTE == BACKSLASH:
            first -= ONE
        if (position - first) & ONE == ZERO:
            return position
        position = find(words, QUOTE, position + ONE, end)
    return end


@kernel
def after_value(words, position, end):  # type: ignore[no-untyped-def]
    """The position after a value of any kind; `end` or beyond if it does not end before."""
    byte = words[position] & BYTE
    if byte == QUOTE:
        return end_of_string(words, position + ONE, end) + ONE
    if byte in (OPEN, OPEN_LIST):
        depth = 0
        while position < end:
            byte = words[position] & BYTE
            if byte == QUOTE:
                position = end_of_string(words, position + ONE, end)
            elif byte in (OPEN, OPEN_LIST):
                depth += 1
            elif byte in (CLOSE, CLOSE_LIST):
                depth -= 1
            position += ONE
            if depth == 0:
                break
        return min(position, end)
    while byte != COMMA and byte != CLOSE and byte != CLOSE_LIST and byte > SPACE and byte != QUOTE:
        position += ONE
        byte = words[position] & BYTE
    return position


@kernel
def _after_member(words, position, end):  # type: ignore[no-untyped-def]
    """The position after a member of an object; `end` if there is none, or its key has an escape and could be any."""
    key_end = _end_of_plain_string(words, position + ONE, end) if words[position] & BYTE == QUOTE else end
    colon = after_blanks(words, min(key_end + ONE, end))
    if colon >= end or words[colon] & BYTE != COLON:
        return end
    value = after_blanks(words, colon + ONE)
    after = after_value(words, value, end)
    return after if after > value else end
