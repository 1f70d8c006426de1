"""Scan lines of JSON for citations, eight bytes at a time, in machine code that Numba compiles and keeps.

DuckDB takes twice as long to read a shard as the whole ingestion (docs/speed.md). The scanner reads lines in the usual
form of releases and leaves others, the *odd* lines, to Python's parser (`citations.py`). Unused values are skipped
without validation: a line with a broken context still has a citation.
"""

import numpy as np
from numba import njit

from cocite.core.id_words import kernel
from cocite.core.written_ids import LARGEST_ID
from cocite.corpus.ingest.navigating import (
    BACKSLASH,
    BYTE,
    CLOSE,
    CLOSE_LIST,
    COLON,
    COMMA,
    FALSE,
    FIVE,
    FOUR,
    NEWLINE,
    NULL,
    ONE,
    OPEN,
    OPEN_LIST,
    QUOTE,
    SPACE,
    TRUE,
    ZERO,
    U,
    after_blanks,
    after_value,
    end_of_string,
    find,
    next_member,
    word_of,
)
from cocite.corpus.ingest.records import INFLUENTIAL, UNKNOWN_INTENT

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
    stopped, and how many rows and odd lines there are. The 64 bytes after `end` must be readable.
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


@njit(nogil=True, cache=True)
def scatter_by_bucket(rows, buckets, sorted_rows):  # type: ignore[no-untyped-def]
    """Copy rows into arrays, by bucket (citing id modulo `buckets`); return where each bucket starts, and the end."""
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


@kernel
def _read_citation(words, position, end, with_contexts):  # type: ignore[no-untyped-def]
    """The line up to the newline at `end`: its citation id, its citing and cited ids, its traits, and its contexts.

    The citing id is ODD if the line is not one object of the expected kind. Contexts are given by their start and end:
    0 and 0 if there are none, 0 and 1 if they are not a list of texts.
    """
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
            name, name_end, value, after_it, position = next_member(words, position, end)
            if after_it == value or find(words, BACKSLASH, name, name_end) < name_end:
                position = end
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
    value = words[position] & FIVE
    if value & FOUR == TRUE:
        return np.uint8(INFLUENTIAL), position + U(4)
    if value & FOUR == NULL:
        return np.uint8(0), position + U(4)
    if value == FALSE:
        return np.uint8(0), position + U(5)
    return np.uint8(0), position


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
    is_closed = words[position] & BYTE == CLOSE_LIST
    while not is_closed and position < end:
        if words[position] & BYTE == QUOTE:
            position = end_of_string(words, position + ONE, end) + ONE
            texts += 1
        elif words[position] & FOUR == NULL:
            position += U(4)
        else:
            break
        position = after_blanks(words, position)
        is_closed = words[position] & BYTE == CLOSE_LIST
        if not is_closed:
            if words[position] & BYTE != COMMA:
                break
            position = after_blanks(words, position + ONE)
    position += ONE
    if not is_closed or position > end:
        return ZERO, ONE, after_value(words, start, end)
    return (start, position, position) if texts else (ZERO, ZERO, position)


@kernel
def _end_of_plain_string(words, start, end):  # type: ignore[no-untyped-def]
    """The position of the quote that closes a string; `end` if there is none, or the string has an escape."""
    position = find(words, QUOTE, start, end)
    return position if find(words, BACKSLASH, start, position) == position else end
