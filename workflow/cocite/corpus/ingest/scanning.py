"""Scan lines of JSON for citations, eight bytes at a time, in machine code that Numba compiles and keeps.

More than half of a shard is sentences that are not needed, and a parser spends its time on what is thrown away:
DuckDB alone takes twice as long for a shard as all of ingesting does (docs/speed.md). The scanner takes the lines that
look as releases have them and leaves any other, as *odd*, to Python's parser (`citations.py`): speed costs no
correctness. What is not needed is skipped by the C library's memchr, and whether it is valid is not judged: a line
with a broken context still holds a citation.

Text comes as overlapping words: `words[i]` are the eight bytes from byte i on, so that a comparison of words is a
comparison of bytes anywhere. Positions are unsigned, because Numba would wrap negative ones.
"""

from typing import Any

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from cocite.core.written_ids import LARGEST_ID
from cocite.corpus.ingest.records import INFLUENTIAL as INFLUENTIAL_TRAIT
from cocite.corpus.ingest.records import UNKNOWN_INTENT

U = np.uint64
NONE, MISSING, ODD = -1, -2, -3
"""What stands for an id that is null, one that no key gave, and one that is no plain whole number."""
NO_CITING, NO_CITED, SELF, NO_TEXTS = 0, 1, 2, 3
"""Places in the counts: of citations that are left out, and of those whose contexts are no list of texts."""

_ONES, _HIGHS = U(0x0101010101010101), U(0x8080808080808080)
_BYTE, _TWO, _THREE, _FOUR, _FIVE = U(0xFF), U(0xFFFF), U(0xFFFFFF), U(0xFFFFFFFF), U(0xFFFFFFFFFF)
_NOTHING, _ONE, _EIGHT = U(0), U(1), U(8)
_memchr: Any = types.ExternalFunction("memchr", types.uintp(types.uintp, types.int32, types.uintp))
_memcpy: Any = types.ExternalFunction("memcpy", types.uintp(types.uintp, types.uintp, types.uintp))
_MOST_DIGITS = U(19)
"""Digits of the largest id; any number with as many fits in 64 bits."""
_LARGEST_ID = U(LARGEST_ID)


def _word(text: str) -> np.uint64:
    return U(int.from_bytes(text.encode(), "little"))


_QUOTE, _BACKSLASH, _COMMA, _COLON, _SPACE, _NEWLINE, _RETURN, _TAB = map(_word, '"\\,: \n\r\t')
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST, _ZERO = map(_word, "{}[]0")
_NULL, _TRUE, _FALSE, _E = map(_word, ("null", "true", "fals", "e"))
_ID = (_word('"citatio'), _word('nid":'))
_CITING = (_word('"citingc'), _word('orpusid"'))
_CITED = (_word('"citedco'), _word('rpusid":'))
_INFLUENTIAL = (_word('"isinflu'), _word('ential":'))
_INTENTS = (_word('"intents'), _word('":'))
_CONTEXTS = (_word('"context'), _word('s":'))
_BACKGROUND = (_word("backgrou"), _word('nd"'))
_METHODOLOGY = (_word("methodol"), _word('ogy"'))
_RESULT = _word('result"')


def overlapping_words(text: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The eight bytes from each byte of the text on, as a view; its last seven bytes start none."""
    return np.ndarray(shape=(len(text) - 7,), dtype=np.uint64, buffer=text, strides=(1,))


@njit(nogil=True, cache=True)
def scan_citations(words, start, end, rows, odd, counts, ids_only, contexts):  # type: ignore[no-untyped-def]
    """Read whole lines from byte `start` to `end` until they end, or `rows` or `odd` are full.

    `rows` are arrays of the citation ids, citing ids, cited ids and traits; `odd` takes the start and the end of each
    line that is left to others, and `counts` goes up for lines without a row. With `ids_only`, every line that has a
    citation id gives a row of that id alone, and the others are odd. `contexts` takes the start and the end of the
    contexts of each row, twice 0 where it has none; if it is empty, contexts are not looked for. Returns where it
    stopped, and how many rows and odd lines there are. The bytes after `end` must be readable for a word.
    """
    citationid, citing, cited, traits = rows
    most = min(len(citing), len(contexts)) if len(contexts) else len(citing)
    position, written, skipped = start, 0, 0
    while position < end and written < most and skipped < len(odd):
        line = position
        position = _find(words, _NEWLINE, line, end) + _ONE
        number, source, target, trait, first, after = _read_citation(words, line, position - _ONE, len(contexts) > 0)
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
                counts[NO_TEXTS] += after == _ONE
                contexts[written, 0], contexts[written, 1] = first, after if after > _ONE else _NOTHING
            written += 1
    return position, written, skipped


@njit(nogil=True, cache=True)
def scatter_by_bucket(rows, buckets, sorted_rows):  # type: ignore[no-untyped-def]
    """Copy rows into arrays of the same length, bucket after bucket (citing id modulo `buckets`).

    Returns where each bucket starts, and the end.
    """
    starts = np.zeros(buckets + 1, dtype=np.int64)
    for citing in rows[1]:
        starts[citing % buckets + 1] += 1
    starts = np.cumsum(starts)
    places = starts.copy()
    for row in range(len(rows[1])):
        bucket = rows[1][row] % buckets
        place = places[bucket]
        places[bucket] += 1
        sorted_rows[0][place] = rows[0][row]
        sorted_rows[1][place] = rows[1][row]
        sorted_rows[2][place] = rows[2][row]
        sorted_rows[3][place] = rows[3][row]
    return starts


@njit(nogil=True, cache=True)
def copy_contexts(words, contexts, count, rows, into):  # type: ignore[no-untyped-def]
    """Append the contexts of `count` rows to those that are there; return how many rows and bytes there are now.

    `into` has arrays of the citing ids, the cited ids and the ends of what is there, its bytes, which must have room,
    and how many rows it has.
    """
    _, citing, cited, _ = rows
    to_citing, to_cited, ends, text, written = into
    at = ends[written - 1] if written else 0
    source, target = U(words.ctypes.data), U(text.ctypes.data)
    for row in range(count):
        length = contexts[row, 1] - contexts[row, 0]
        if length:
            _memcpy(target + U(at), source + contexts[row, 0], length)
            at += np.int64(length)
            to_citing[written], to_cited[written], ends[written] = citing[row], cited[row], at
            written += 1
    return written, at


@njit(nogil=True, cache=True)
def cut_contexts(text, ends, rows, offsets, cut):  # type: ignore[no-untyped-def]
    """Copy the contexts of some rows to `cut`, one after the other, and where each begins to `offsets`."""
    source, target = U(text.ctypes.data), U(cut.ctypes.data)
    at = 0
    for number in range(len(rows)):
        row = rows[number]
        first = ends[row - 1] if row else 0
        offsets[number] = at
        _memcpy(target + U(at), source + U(first), U(ends[row] - first))
        at += ends[row] - first
    offsets[len(rows)] = at


@njit(nogil=True)
def _read_citation(words, position, end, with_contexts):  # type: ignore[no-untyped-def]
    """The line up to the newline at `end`: its citation id, its citing and cited ids, its traits, and its contexts.

    The citing id is ODD where the line is not one object of the expected kind. Contexts are given by their start and
    end, 0 and 0 where there are none, 0 and 1 where they are no list of texts.
    """
    first, after = _NOTHING, _NOTHING
    number, source, target = NONE, MISSING, MISSING
    influential, intents = np.uint8(0), np.uint8(0)
    position = _after_blanks(words, position)
    more = words[position] & _BYTE == _OPEN
    position += _ONE
    while more:
        position = _after_blanks(words, position)
        key, rest = words[position], words[position + _EIGHT]
        if key == _CITING[0] and rest == _CITING[1] and words[position + U(16)] & _BYTE == _COLON:
            source, position = _read_id(words, _after_blanks(words, position + U(17)))
        elif key == _CITED[0] and rest == _CITED[1]:
            target, position = _read_id(words, _after_blanks(words, position + U(16)))
        elif key == _ID[0] and rest & _FIVE == _ID[1]:
            number, position = _read_id(words, _after_blanks(words, position + U(13)))
        elif key == _INFLUENTIAL[0] and rest == _INFLUENTIAL[1]:
            influential, position = _read_influential(words, _after_blanks(words, position + U(16)))
        elif key == _INTENTS[0] and rest & _TWO == _INTENTS[1]:
            intents, position = _read_intents(words, _after_blanks(words, position + U(10)), end)
        elif with_contexts and key == _CONTEXTS[0] and rest & _THREE == _CONTEXTS[1]:
            first, after, position = _read_contexts(words, _after_blanks(words, position + U(11)), end)
        else:
            position = _after_member(words, position, end)
        position = _after_blanks(words, position)
        more = words[position] & _BYTE == _COMMA and position < end
        position += _ONE
    closed = words[position - _ONE] & _BYTE == _CLOSE
    if not closed or _after_blanks(words, position) != end or min(number, source, target) < NONE:
        source = ODD
    return number, source, target, influential | intents, first, after


@njit(nogil=True)
def _read_id(words, position):  # type: ignore[no-untyped-def]
    """A whole number, plain or as a string, or null; and the position after it. Of anything else, ODD."""
    if words[position] & _FOUR == _NULL:
        return NONE, position + U(4)
    quoted = words[position] & _BYTE == _QUOTE
    first = position + U(quoted)
    position = first
    value = U(0)
    digit = (words[position] & _BYTE) - _ZERO
    while digit < U(10):
        value = value * U(10) + digit
        position += _ONE
        digit = (words[position] & _BYTE) - _ZERO
    digits = position - first
    if digits == U(0) or digits > _MOST_DIGITS or value > _LARGEST_ID:
        return ODD, position
    if quoted:
        return (np.int64(value) if words[position] & _BYTE == _QUOTE else ODD), position + _ONE
    return (ODD if words[first] & _BYTE == _ZERO and digits > _ONE else np.int64(value)), position


@njit(nogil=True)
def _read_influential(words, position):  # type: ignore[no-untyped-def]
    value = words[position] & _FOUR
    if value == _TRUE:
        return np.uint8(INFLUENTIAL_TRAIT), position + U(4)
    if value == _NULL:
        return np.uint8(0), position + U(4)
    if value == _FALSE and words[position + U(4)] & _BYTE == _E:
        return np.uint8(0), position + U(5)
    return np.uint8(0), position


@njit(nogil=True)
def _read_intents(words, position, end):  # type: ignore[no-untyped-def]
    """The set of the intents that are named in lists, however deep, as bits; and the position after them."""
    intents, depth = np.uint8(0), 0
    while position < end:
        byte = words[position] & _BYTE
        if byte == _QUOTE:
            first, second = words[position + _ONE], words[position + U(9)]
            if first == _BACKGROUND[0] and second & U(0xFFFFFF) == _BACKGROUND[1]:
                intents |= np.uint8(1)
            elif first == _METHODOLOGY[0] and second & _FOUR == _METHODOLOGY[1]:
                intents |= np.uint8(2)
            elif first & U(0xFFFFFFFFFFFFFF) == _RESULT:
                intents |= np.uint8(4)
            else:
                intents |= np.uint8(UNKNOWN_INTENT)
            position = _end_of_plain_string(words, position + _ONE, end)
        elif byte == _OPEN_LIST:
            depth += 1
        elif byte == _CLOSE_LIST:
            depth -= 1
        elif words[position] & _FOUR == _NULL:
            position += U(3)
        elif byte != _COMMA and byte != _SPACE:
            return intents, end
        position += _ONE
        if depth == 0:
            return intents, position
    return intents, end


@njit(nogil=True)
def _read_contexts(words, start, end):  # type: ignore[no-untyped-def]
    """The start and the end of a list of texts and nulls, as `_read_citation` gives them; and the position after."""
    if words[start] & _FOUR == _NULL:
        return _NOTHING, _NOTHING, start + U(4)
    if words[start] & _BYTE != _OPEN_LIST:
        return _NOTHING, _ONE, _after_value(words, start, end)
    position, texts = _after_white_space(words, start + _ONE), 0
    is_closed = words[position] & _BYTE == _CLOSE_LIST
    while not is_closed and position < end:
        if words[position] & _BYTE == _QUOTE:
            position = _end_of_string(words, position + _ONE, end) + _ONE
            texts += 1
        elif words[position] & _FOUR == _NULL:
            position += U(4)
        else:
            break
        position = _after_white_space(words, position)
        is_closed = words[position] & _BYTE == _CLOSE_LIST
        if not is_closed:
            if words[position] & _BYTE != _COMMA:
                break
            position = _after_white_space(words, position + _ONE)
    position += _ONE
    if not is_closed or position > end:
        return _NOTHING, _ONE, _after_value(words, start, end)
    return (start, position, position) if texts else (_NOTHING, _NOTHING, position)


@njit(nogil=True)
def _after_white_space(words, position):  # type: ignore[no-untyped-def]
    """As `_after_blanks`, past tabs as well."""
    byte = words[position] & _BYTE
    while byte in (_SPACE, _RETURN, _TAB):
        position += _ONE
        byte = words[position] & _BYTE
    return position


@njit(nogil=True)
def _after_member(words, position, end):  # type: ignore[no-untyped-def]
    """The position after a key and its value, whatever they are; `end` where they are none."""
    if words[position] & _BYTE != _QUOTE:
        return end
    position = _end_of_plain_string(words, position + _ONE, end) + _ONE
    if position > end or words[position] & _BYTE != _COLON:
        return end
    return _after_value(words, _after_blanks(words, position + _ONE), end)


@njit(nogil=True)
def _after_value(words, position, end):  # type: ignore[no-untyped-def]
    """The position after a value, whatever it is."""
    byte = words[position] & _BYTE
    if byte == _QUOTE:
        return _end_of_string(words, position + _ONE, end) + _ONE
    if byte in (_OPEN, _OPEN_LIST):
        return _after_nested(words, position, end)
    while byte != _COMMA and byte != _CLOSE and byte != _NEWLINE and byte != _QUOTE:
        position += _ONE
        byte = words[position] & _BYTE
    return position


@njit(nogil=True)
def _after_nested(words, position, end):  # type: ignore[no-untyped-def]
    """The position after a list or an object; `end` or beyond where it is not closed."""
    depth = 0
    while position < end:
        byte = words[position] & _BYTE
        if byte == _QUOTE:
            position = _end_of_string(words, position + _ONE, end)
        elif byte in (_OPEN, _OPEN_LIST):
            depth += 1
        elif byte in (_CLOSE, _CLOSE_LIST):
            depth -= 1
        position += _ONE
        if depth == 0:
            return position
    return end


@njit(nogil=True)
def _end_of_string(words, start, end):  # type: ignore[no-untyped-def]
    """The position of the quote that closes the string whose text begins at `start`; `end` where none does."""
    position = _find(words, _QUOTE, start, end)
    while position < end:
        before = position
        while before > start and words[before - _ONE] & _BYTE == _BACKSLASH:
            before -= _ONE
        if (position - before) & _ONE == U(0):
            return position
        position = _find(words, _QUOTE, position + _ONE, end)
    return end


@njit(nogil=True)
def _end_of_plain_string(words, start, end):  # type: ignore[no-untyped-def]
    """As `_end_of_string`, for strings that are read: `end` also where one holds an escape."""
    position = _find(words, _QUOTE, start, end)
    return position if _find(words, _BACKSLASH, start, position) == position else end


@njit(nogil=True)
def _find(words, byte, start, end):  # type: ignore[no-untyped-def]
    """The position of the first such byte from `start` on; `end` where there is none before."""
    if start >= end:
        return end
    text = U(words.ctypes.data)
    found = _memchr(text + start, np.int32(byte), end - start)
    return end if found == U(0) else found - text


@njit(nogil=True)
def _after_blanks(words, position):  # type: ignore[no-untyped-def]
    byte = words[position] & _BYTE
    while byte in (_SPACE, _RETURN):
        position += _ONE
        byte = words[position] & _BYTE
    return position
