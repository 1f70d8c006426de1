"""Read a file that is one JSON list as lines: an item a line, in bounded memory, however the list is laid out.

The text is rewritten in place, byte for byte: what opens and closes the list and what separates its items becomes white
space, and so do the ends of lines within items. So lists need no parser of their own, and all that reads lines reads
them. MongoDB's exports write NumberInt(2009) in place of 2009; such names and their brackets become white space too.
"""

import io
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from cocite.config.release_folder import unpacked
from cocite.core.errors import InputError

BYTES_AT_ONCE = 1 << 20
_BYTES_OF_START = 1 << 12
_DEPTH, _IN_STRING, _ESCAPED, _IN_NAME = range(4)
"""Places in the state of a rewriting."""
_SPACE, _NEWLINE, _RETURN, _QUOTE, _BACKSLASH, _COMMA = map(ord, ' \n\r"\\,')
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST, _BRACKET, _END_BRACKET = map(ord, "{}[]()")
_NUMBER, _OBJECT_ID, _ISO_DATE, _U, _S = map(ord, "NOIuS")


def open_lines(path: Path) -> io.BufferedIOBase:
    """Open a shard as `unpacked` does; if it is a JSON list, its lines are the items.

    Reading raises `InputError` where a list does not end.
    """
    file = unpacked(path)
    if not _begins_list(file):
        file.seek(0)
        return file
    file.seek(0)
    return io.BufferedReader(_Items(file, path), BYTES_AT_ONCE)


def _begins_list(file: io.BufferedIOBase) -> bool:
    """Whether the first byte that is no white space, after a mark of the byte order, opens a list."""
    start = file.read(_BYTES_OF_START).removeprefix(b"\xef\xbb\xbf")
    while start and not start.strip():
        start = file.read(_BYTES_OF_START)
    return start.lstrip().startswith(b"[")


class _Items(io.RawIOBase):
    """The items of a list, each on a line."""

    def __init__(self, file: io.BufferedIOBase, path: Path) -> None:
        self._file, self._path = file, path
        self._state = np.zeros(4, dtype=np.int64)
        self._ahead = b""
        """The byte behind those that were rewritten, which tells a name at their end."""

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        if not len(room):
            return 0
        piece, given = memoryview(room), len(self._ahead)
        piece[:given] = self._ahead
        length = given + self._file.readinto(piece[given:])
        self._ahead = self._file.read(1)
        if not length and (self._state[_DEPTH] or self._state[_IN_STRING]):
            raise InputError(f"{self._path} is cut short: the JSON list in it does not end; fetch it again.")
        _rewrite(np.frombuffer(room, dtype=np.uint8)[:length], ord(self._ahead or b" "), self._state)
        return length

    def close(self) -> None:
        self._file.close()
        super().close()


@njit(nogil=True, cache=True)
def _rewrite(text, ahead, state):  # type: ignore[no-untyped-def]
    """Rewrite a piece of a list in place, given the state at its beginning, which becomes that at its end.

    `ahead` is the byte behind the piece.
    """
    depth, in_string, escaped, in_name = state
    for place in range(len(text)):
        byte = text[place]
        if in_string:
            if byte in (_NEWLINE, _RETURN):
                text[place] = _SPACE
            in_string = escaped or byte != _QUOTE
            escaped = not escaped and byte == _BACKSLASH
        elif in_name:
            in_name = byte != _BRACKET
            text[place] = _SPACE
        elif byte == _QUOTE:
            in_string = True
        elif byte in (_OPEN_LIST, _OPEN):
            if byte == _OPEN_LIST and depth == 0:
                text[place] = _SPACE
            depth += 1
        elif byte in (_CLOSE_LIST, _CLOSE):
            if byte == _CLOSE_LIST and depth == 1:
                text[place] = _NEWLINE
            depth = max(depth - 1, 0)
        elif byte == _COMMA and depth == 1:
            text[place] = _NEWLINE
        elif byte == _END_BRACKET or ((byte in (_NEWLINE, _RETURN)) and depth > 0):
            text[place] = _SPACE
        elif byte in (_NUMBER, _OBJECT_ID, _ISO_DATE):
            after = text[place + 1] if place + 1 < len(text) else ahead  # NaN and Infinity are no names
            in_name = byte == _OBJECT_ID or after in (_U, _S)
            if in_name:
                text[place] = _SPACE
    state[_DEPTH], state[_IN_STRING], state[_ESCAPED], state[_IN_NAME] = depth, in_string, escaped, in_name
