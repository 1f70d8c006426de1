"""Files that are written whole or not at all: under a temporary name, which is renamed at the end.

The checksum of a file is in the name of an empty file next to it, its mark, such as `weights.npy.1b2c3d4e.crc32`. A new
mark ends in `.crc32-new` until the file is renamed; then older marks are removed. So a kill at any moment leaves each
file with its mark, and a mark that is not new has a file unless the file was lost.
"""

import json
import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import Any

from isal import isal_zlib

from cocite.core.errors import TEMPORARY, InputError, explain_full_disk

SUFFIX, NEW = ".crc32", ".crc32-new"
MARK = re.compile(rf"(.+)\.[0-9a-f]{{8}}({SUFFIX}|{NEW})", re.DOTALL)
BLOCK = 1 << 20


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary name next to `path`, a file or folder, after removing leftovers of a kill; then rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{escape(path.name)}.*{TEMPORARY}"):
        remove(left)
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        with explain_full_disk(path.parent):
            yield temporary
            if path.is_symlink() and path.is_dir():
                raise InputError(f"{path} is a link to a folder, which a step would replace by a folder; remove it.")
            if path.is_dir():
                remove(path)
            temporary.replace(path)
    finally:
        remove(temporary)


def write_text(path: Path, text: str) -> None:
    """Write a text file."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
        sync(temporary)


def write_json(path: Path, content: Any) -> None:
    """Write JSON, indented and with sorted keys, so that equal content gives equal files."""
    write_text(path, json_text(content))


def json_text(content: Any) -> str:
    """The text of a JSON file."""
    return json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def read_json(path: Path) -> Any:
    """Read JSON, with or without a byte order mark. Raises `InputError` if the file is missing or is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist.") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: not JSON ({error.msg}).") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}, and so not JSON.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).") from None


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object. Raises `InputError` if the file contains anything else."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise InputError(f"{path}: contains {type(content).__name__}; it must be a JSON object.")
    return content


def sync(path: Path) -> None:
    """Flush a file to the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def begin_sync(path: Path) -> None:
    """Start flushing a file to the disk, so that `sync` has less to wait for."""
    if hasattr(os, "posix_fadvise"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def remove(path: Path, *, ignore_errors: bool = False) -> None:
    """Remove a file, a link or a folder, if there is one; of a folder, perhaps only what can be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=ignore_errors)
    else:
        path.unlink(missing_ok=True)


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
    """Whether the file matches its checksum. False if it is missing, has no mark or cannot be read."""
    try:
        checksum = checksum_of(path)
    except OSError:
        return False
    return any(_mark(path, checksum, suffix).exists() for suffix in (SUFFIX, NEW))


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
