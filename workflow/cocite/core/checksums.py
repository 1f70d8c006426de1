"""Checksums of files that a later process reads: a mark next to each file holds the checksum of what was written.

The mark of `weights.npy` is an empty file such as `weights.npy.1b2c3d4e.crc32`. A new mark ends in `.crc32-new` until
the file has its name, and the marks of earlier contents are removed after that. So a kill at any moment leaves each
file with its mark, and a mark that is not new has a file unless the file was lost.
"""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

from isal import isal_zlib

from cocite.core.atomic import atomic_path, sync

SUFFIX, NEW = ".crc32", ".crc32-new"
MARK = re.compile(rf"(.+)\.[0-9a-f]{{8}}({SUFFIX}|{NEW})", re.DOTALL)
BLOCK = 1 << 20
"""Bytes that are read at a time."""


@contextmanager
def checked_path(path: Path) -> Iterator[Path]:
    """Yield a temporary name as `atomic_path` does; the file is on the disk and has its mark before it is renamed."""
    with atomic_path(path) as temporary:
        yield temporary
        sync(temporary)
        checksum = checksum_of(temporary)
        _mark(path, checksum, NEW).touch()
    kept = _mark(path, checksum, NEW).replace(_mark(path, checksum))
    for mark in _marks(path):
        if mark != kept:
            mark.unlink()


def add_mark(path: Path) -> None:
    """Mark a file that was written in another way."""
    _mark(path, checksum_of(path)).touch()


def is_whole(path: Path) -> bool:
    """Whether the file holds what was written. False if it is missing, has no mark or cannot be read."""
    try:
        checksum = checksum_of(path)
    except OSError:
        return False
    return _mark(path, checksum).exists() or _mark(path, checksum, NEW).exists()


def marked_files(paths: Collection[Path]) -> dict[Path, list[Path]]:
    """The files that marks among the paths belong to, with these marks; new marks without a file are left out."""
    found: dict[Path, list[Path]] = {}
    for path in paths:
        if mark := MARK.fullmatch(path.name):
            file = path.with_name(mark[1])
            if mark[2] == SUFFIX or file.exists():
                found.setdefault(file, []).append(path)
    return found


def remove_checked(path: Path) -> None:
    """Remove a file and its marks, these first: a file without a mark counts as never finished."""
    remove_marks(path)
    path.unlink(missing_ok=True)


def remove_marks(path: Path) -> None:
    """Remove the marks of a file."""
    for mark in _marks(path):
        mark.unlink()


def checksum_of(path: Path) -> int:
    """The CRC-32 of a file."""
    checksum, block = 0, memoryview(bytearray(BLOCK))
    with path.open("rb", buffering=0) as file:
        while size := file.readinto(block):
            checksum = isal_zlib.crc32(block[:size], checksum)
    return checksum


def _mark(path: Path, checksum: int, suffix: str = SUFFIX) -> Path:
    return path.with_name(f"{path.name}.{checksum:08x}{suffix}")


def _marks(path: Path) -> list[Path]:
    return [mark for mark in path.parent.glob(f"{escape(path.name)}.*{SUFFIX}*") if MARK.fullmatch(mark.name)]
