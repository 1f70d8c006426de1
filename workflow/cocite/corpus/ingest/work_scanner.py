"""Scan lines of JSON for what a corpus needs of a work: where each value begins and ends, and what the values say.

A line that does not look as a copy has it, or one of whose values does not, is *odd*, and left to `work_records.py`.
"""

import numpy as np

from cocite.core.id_words import kernel
from cocite.core.written_ids import LARGEST_ID
from cocite.corpus.ingest.json_texts import BAD, order_of, read_string
from cocite.corpus.ingest.navigating import (
    BYTE,
    CLOSE,
    CLOSE_LIST,
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
    TRUE,
    ZERO,
    U,
    address_of,
    after_blanks,
    after_value,
    find,
    find_member,
    is_null,
    lowest,
    next_member,
    word_of,
)

NO_WORK = -1
"""The number of a reference that is null."""
ODD_NUMBER = -2
_LARGEST_ID = U(LARGEST_ID)
_WORK = (word_of("https://"), word_of("openalex"), word_of("ex.org/W"))
"""What the id of a work begins with, from the characters 0, 8 and 14 on."""


@kernel
def scan_works(words, start, end, keys, of_length, lines, starts, ends, odd):  # type: ignore[no-untyped-def]
    """Find the values of some keys in whole lines; return where it stopped and the number of lines.

    `keys` has a row of bytes for each key, `of_length` a bit for each key of a length. The value of key k in line l is
    between `starts[k, l]` and `ends[k, l]`, which are equal if it is null or missing; `odd` marks the odd lines.
    """
    address, position, count = address_of(words), start, 0
    names = U(keys.ctypes.data)
    while position < end and count < len(lines):
        stop = find(words, NEWLINE, position, end)
        lines[count, 0], lines[count, 1] = position, stop
        for column in range(len(keys)):
            starts[column, count] = ends[column, count] = ZERO
        position = after_blanks(words, position)
        more = words[position] & BYTE == OPEN and position < stop
        position += ONE
        while more:
            name, name_end, value, after, position = next_member(words, position, stop)
            if position >= stop or after == value:
                break
            length = name_end - name
            left = of_length[length] if length < U(len(of_length)) else ZERO
            while left:
                column = lowest(left)
                if order_of(address + name, length, names + column * U(keys.shape[1]), length) == 0:
                    starts[column, count] = value
                    ends[column, count] = value if is_null(words, value, after) else after
                left &= left - ONE
            more = words[position] & BYTE == COMMA
            position += ONE
        is_whole = not more and words[position - ONE] & BYTE == CLOSE and after_blanks(words, position) >= stop
        odd[count] = not is_whole
        position = stop + ONE
        count += 1
    return position, count


@kernel
def find_in_objects(words, starts, ends, key, odd):  # type: ignore[no-untyped-def]
    """Narrow the bounds of objects to those of what they have under a key."""
    for row in range(len(starts)):
        first, last = find_member(words, starts[row], ends[row], key)
        odd[row] |= first > last
        starts[row], ends[row] = first, max(first, last)


@kernel
def find_in_lists(words, starts, ends, outer, inner, odd, rows, firsts, lasts):  # type: ignore[no-untyped-def]
    """Find `outer.inner` in each object of lists of them; return how many there are.

    They are appended to `firsts` and `lasts`, and the number of the list that each is of to `rows`.
    """
    count = 0
    for row in range(len(starts)):
        if starts[row] == ends[row]:
            continue
        position, stop = after_blanks(words, starts[row] + ONE), ends[row]
        more = words[starts[row]] & BYTE == OPEN_LIST
        if more and words[position] & BYTE == CLOSE_LIST:
            continue
        while more:
            after = after_value(words, position, stop)
            first, last = find_member(words, position, after, outer)
            if first < last:
                first, last = find_member(words, first, last, inner)
            if first > last or after >= stop:
                break
            if first < last:
                rows[count], firsts[count], lasts[count] = row, first, last
                count += 1
            position = after_blanks(words, after)
            more = words[position] & BYTE == COMMA
            position = after_blanks(words, position + ONE) if more else position
        odd[row] |= more or position != stop - ONE
    return count


@kernel
def read_texts(words, starts, ends, rows, text, offsets, odd):  # type: ignore[no-untyped-def]
    """Write the strings between these bounds, quotes included, where each ends, and which of their `rows` are odd."""
    at = ZERO
    for place in range(len(starts)):
        if starts[place] < ends[place]:
            is_string = words[starts[place]] & BYTE == QUOTE
            length = read_string(words, starts[place] + ONE, ends[place] - ONE, text, at) if is_string else BAD
            if length == BAD:
                odd[rows[place]] = True
            else:
                at += length
        offsets[place + 1] = at


@kernel
def read_numbers(words, starts, ends, numbers, odd):  # type: ignore[no-untyped-def]
    """Read whole numbers of up to 18 digits; what else there is makes a line odd."""
    for row in range(len(starts)):
        position, value = starts[row], np.int64(0)
        while position < ends[row] and (words[position] & BYTE) - U(48) < U(10):
            value = value * 10 + np.int64((words[position] & BYTE) - U(48))
            position += ONE
        digits = position - starts[row]
        is_long = digits > ONE and words[starts[row]] & BYTE == U(48)
        odd[row] |= position < ends[row] or digits > U(18) or is_long
        numbers[row] = value


@kernel
def read_flags(words, starts, ends, flags, odd):  # type: ignore[no-untyped-def]
    """Read true and false; a flag that is missing is false."""
    for row in range(len(starts)):
        length, first = ends[row] - starts[row], words[starts[row]] & FIVE
        flags[row] = length == U(4) and first & FOUR == TRUE
        is_false = length == ZERO or (length == U(5) and first == FALSE)
        odd[row] |= not (flags[row] or is_false)


@kernel
def read_own_ids(words, starts, ends, numbers, odd):  # type: ignore[no-untyped-def]
    """Read the numbers of works from strings, quotes included."""
    for row in range(len(starts)):
        is_string = starts[row] < ends[row] and words[starts[row]] & BYTE == QUOTE
        numbers[row] = number_of_work(words, starts[row] + ONE, ends[row] - ONE) if is_string else ODD_NUMBER
        odd[row] |= numbers[row] < 0


@kernel
def read_references(words, starts, ends, numbers, offsets, odd):  # type: ignore[no-untyped-def]
    """Read lists of the ids of works; return how many there are. `offsets` says where each list ends."""
    count = 0
    for row in range(len(starts)):
        begun, position, stop = count, starts[row], ends[row]
        is_fine = position == stop
        if not is_fine and words[position] & BYTE == OPEN_LIST:
            position = after_blanks(words, position + ONE)
            more = words[position] & BYTE != CLOSE_LIST
            while more and position < stop:
                numbers[count], after = _next_reference(words, position)
                if numbers[count] == ODD_NUMBER:
                    break
                count += 1
                position = after_blanks(words, after)
                more = words[position] & BYTE == COMMA
                position = after_blanks(words, position + ONE) if more else position
            is_fine = not more and position == stop - ONE
        if not is_fine:
            odd[row], count = True, begun
        offsets[row + 1] = count
    return count


@kernel
def _next_reference(words, position):  # type: ignore[no-untyped-def]
    """The number of the work that begins here, an id in quotes or null, and the position of its end."""
    if words[position] & BYTE != QUOTE:
        is_null = words[position] & FOUR == NULL
        return np.int64(NO_WORK) if is_null else np.int64(ODD_NUMBER), position + U(4)
    number, after = number_after(words, position + ONE)
    return number if words[after] & BYTE == QUOTE else np.int64(ODD_NUMBER), after + ONE


@kernel
def read_listed_ids(words, bounds, numbers, offsets, odd):  # type: ignore[no-untyped-def]
    """Read the ids in lists of texts without quotes, each from one of the bounds to the next; empty ones are null."""
    for row in range(len(offsets) - 1):
        for place in range(offsets[row], offsets[row + 1]):
            start, stop = U(bounds[place]), U(bounds[place + 1])
            numbers[place] = number_of_work(words, start, stop) if start < stop else NO_WORK
            odd[row] |= numbers[place] == ODD_NUMBER


@kernel
def number_of_work(words, start, stop):  # type: ignore[no-untyped-def]
    """The number in the id of a work, which goes from `start` to `stop`; ODD_NUMBER for anything else."""
    number, after = number_after(words, start)
    return number if after == stop else np.int64(ODD_NUMBER)


@kernel
def number_after(words, start):  # type: ignore[no-untyped-def]
    """The number in the id of a work, after its 22 other characters, and the position of its end; else ODD_NUMBER."""
    is_work = words[start] == _WORK[0] and words[start + U(8)] == _WORK[1]
    is_work = is_work and words[start + U(14)] == _WORK[2]
    value, first = ZERO, start + U(22)
    position, digit = first, (words[first] & BYTE) - U(48)
    while digit < U(10) and position - first < U(20):
        value = value * U(10) + digit
        position += ONE
        digit = (words[position] & BYTE) - U(48)
    is_id = is_work and ZERO < position - first < U(20) and value <= _LARGEST_ID
    return np.int64(value) if is_id else np.int64(ODD_NUMBER), position


@kernel
def cut_references(ids, offsets, numbers, order, citing, cited, ends):  # type: ignore[no-untyped-def]
    """Write the citations of works in some order; return the counts without a cited id, and of self-citations.

    The references of work w are the `numbers` from `offsets[w]` up to the next offset. `ends` has the number of
    citations up to each work in that order.
    """
    count, unknown, own = 0, 0, 0
    for place in range(len(order)):
        work = order[place]
        for at in range(offsets[work], offsets[work + 1]):
            if numbers[at] < 0:
                unknown += 1
            elif numbers[at] == ids[work]:
                own += 1
            else:
                citing[count], cited[count] = ids[work], numbers[at]
                count += 1
        ends[place + 1] = count
    return unknown, own
