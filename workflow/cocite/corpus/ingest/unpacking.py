"""Unpack a shard in blocks of whole lines, ahead of the reader, and never to disk.

Gzip cannot be unpacked in parallel. So ISA-L's igzip does it, several times as fast as zlib, and, if the job has a
second processor, in a thread that never waits for the reader. A file that is one JSON list is rewritten in place to one
item per line, for readers of lines.
"""

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from isal import igzip, igzip_lib
from numba import njit
from numpy.typing import NDArray

from cocite.config.release_folder import unpacked
from cocite.core.errors import InputError
from cocite.core.progress import ahead

BYTES_IN_BLOCK = 1 << 21
"""Small enough to stay in the processor's cache until the reader takes it from the unpacking thread."""
BYTES_IN_READ = 1 << 20
"""The gzip reader copies what it unpacks, and copies that do not stay in the cache cost a tenth of the time."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""What some editors put before the first line; it is no part of it."""
LONGEST_LINE = 32_000_000
"""Bytes of a line: a record is far shorter, and DuckDB needs several times as many for one in the memory of a job."""
MOST_BLANK = 4_000_000
"""Limit on bytes of blocks that are mostly blank lines: 100 kB of gzip can contain 100 million blank lines."""
SHARE_BLANK, SAMPLED = 15 / 16, 64
"""Share of blank bytes from which a block counts as mostly blank; one in 64 bytes is sampled."""
PADDING = 64
"""Bytes after a block's text that may be read: scanners take words of eight bytes, some ahead of their position."""

Sized = TypeVar("Sized", bound=Any)
BYTES_AT_ONCE = 1 << 20
_BYTES_OF_START = 1 << 12
_DEPTH, _IN_STRING, _ESCAPED, _IN_NAME = range(4)
"""Places in the state of a rewriting."""
_SPACE, _NEWLINE, _RETURN, _QUOTE, _BACKSLASH, _COMMA = map(ord, ' \n\r"\\,')
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST, _BRACKET, _END_BRACKET = map(ord, "{}[]()")
_NUMBER, _OBJECT_ID, _ISO_DATE, _U, _S = map(ord, "NOIuS")


@dataclass(frozen=True, kw_only=True)
class Block:
    """Whole lines of a shard."""

    text: NDArray[np.uint8]
    """The bytes, with `PADDING` more at the end."""
    length: int
    """Bytes that count; the last one is a newline."""


def unpack(path: Path, *, blocks_ahead: int = 0) -> Iterator[Block]:
    """The lines of a shard, or the items of one that is a JSON list, in blocks, some of them unpacked ahead. Raises
    `InputError`, with the first block or a later one, if the file is cut short or not gzip, a line is longer than
    `LONGEST_LINE`, or there are more than `MOST_BLANK` bytes of blank lines."""
    return ahead(_blocks(path), blocks_ahead) if blocks_ahead else _blocks(path)


def _blocks(path: Path) -> Iterator[Block]:
    rest, before, blank = b"", 0, 0
    with explained(path), open_lines(path) as file:
        while True:
            # The buffer grows with a line that hardly fits.
            longer = min(4 * len(rest), LONGEST_LINE + BYTES_IN_BLOCK) if len(rest) > BYTES_IN_BLOCK // 2 else 0
            buffer = bytearray(max(BYTES_IN_BLOCK, longer) + PADDING)
            buffer[: len(rest)] = rest
            filled, room = len(rest), memoryview(buffer)[:-PADDING]
            while filled < len(room) and (read := file.readinto(room[filled : filled + BYTES_IN_READ])):
                filled += read
            if filled == len(rest):
                break
            if not before and not rest and buffer.startswith(BYTE_ORDER_MARK):
                buffer[: len(BYTE_ORDER_MARK)] = b" " * len(BYTE_ORDER_MARK)
            length = buffer.rfind(b"\n", 0, filled) + 1
            rest = bytes(room[length:filled])
            before += length
            if len(rest) > LONGEST_LINE:
                raise _too_long(path, before)
            text = np.frombuffer(buffer, dtype=np.uint8)
            sampled = text[:length:SAMPLED] <= ord(" ")
            blank += length if np.count_nonzero(sampled) > SHARE_BLANK * len(sampled) else 0
            if blank > MOST_BLANK:
                most = f"{MOST_BLANK / 1e6:.0f} MB"
                raise InputError(f"{path}: more than {most} of it are blank lines; a shard has one record per line.")
            if length:
                yield Block(text=text, length=length)
    if rest:
        # A last line that no newline ends.
        yield Block(text=np.frombuffer(bytearray(rest + b"\n" + bytes(PADDING)), dtype=np.uint8), length=len(rest) + 1)


def gather(items: Iterable[Sized], size: float) -> Iterator[list[Sized]]:
    """Lists of items that have so many bytes together; the last list may have fewer."""
    some: list[Sized] = []
    for item in items:
        some.append(item)
        if sum(part.nbytes for part in some) >= size:
            yield some
            some = []
    if some:
        yield some


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the error of a file that is cut short, or packed otherwise, into an `InputError`."""
    try:
        yield
    except (EOFError, igzip.BadGzipFile, igzip_lib.IsalError) as error:  # type: ignore[misc]
        raise InputError(f"{path} is cut short or not a gzip file ({error}); fetch or pack it again.") from None


def _too_long(path: Path, before: int) -> InputError:
    """The error for the line that begins after `before` bytes."""
    line = 1
    with open_lines(path) as file:
        while before:
            text = file.read(min(before, BYTES_IN_BLOCK))
            line, before = line + text.count(b"\n"), before - len(text)
    longest = f"{LONGEST_LINE / 1e6:.0f} MB"
    return InputError(f"{path}, line {line}: is longer than {longest}; a shard has one record per line, or is a list.")


def open_lines(path: Path) -> io.BufferedIOBase:
    """Open a shard; a JSON list is read as lines of its items. Reading raises `InputError` if a list does not end."""
    file = unpacked(path)
    start = file.read(_BYTES_OF_START).removeprefix(BYTE_ORDER_MARK)
    while start and not start.strip():
        start = file.read(_BYTES_OF_START)
    file.seek(0)
    is_list = start.lstrip().startswith(b"[")
    return io.BufferedReader(_Items(file, path), BYTES_AT_ONCE) if is_list else file


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
    """Rewrite a piece of a list in place and move the state on; `ahead` is the byte behind the piece."""
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
