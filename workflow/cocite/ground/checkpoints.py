"""State that survives a kill: a folder that belongs to one piece of work, and files in it that are whole or not there.

`fingerprint.json` records what the work depends on: its settings and a fingerprint of its inputs. The state of other
work is removed, and the log says what has changed. A fingerprint depends on content, never on times: inputs that were
made again with the same content are the same.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from cocite.ground.atomic import atomic_path, read_json, write_json
from cocite.ground.errors import InputError
from cocite.ground.progress import report

OWNER = "fingerprint.json"
READ_WHOLE = 256 << 20
"""Bytes of the largest file that `sampled_fingerprint` reads whole."""
BLOCK, BLOCKS = 1 << 20, 64
"""Bytes of a block of a larger one, and how many of them are read."""
PARQUET = b"PAR1"


def open_state(state: Path, fingerprint: dict[str, Any], *, work: str) -> bool:
    """Make the folder ready for work with this fingerprint; return whether the work can resume from what is there.

    The fingerprint holds values that JSON can hold. `work` is its name in the log: "training", "search".
    """
    before = _owner_of(state)
    if before == fingerprint:
        return True
    if before is not None:
        changed = sorted(key for key in before | fingerprint if before.get(key) != fingerprint.get(key))
        report(f"{state}: {', '.join(changed)} changed since the {work} that was killed; starting afresh")
    remove_state(state)
    write_json(state / OWNER, fingerprint)
    return False


def remove_state(state: Path) -> None:
    """Remove the folder, its fingerprint first: what is half removed then belongs to no work."""
    (state / OWNER).unlink(missing_ok=True)
    shutil.rmtree(state, ignore_errors=True)


@contextmanager
def open_whole(path: Path) -> Iterator[BinaryIO]:
    """A file of the state to write; it appears under its name once it is whole and on the disk."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def fingerprint_of(paths: Iterable[Path]) -> str:
    """A hash of the contents of files, and of all files in folders with their names there; 32 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    for name, path in _files_of(paths):
        with path.open("rb") as file:
            digest.update(f"{name} {hashlib.file_digest(file, 'blake2b').hexdigest()}\n".encode())
    return digest.hexdigest()


def sampled_fingerprint(paths: Iterable[Path]) -> str:
    """The same for files that may be too large to be read whole: their size and evenly spaced blocks are hashed.

    The footer of a Parquet file is hashed as well; it holds the size and the bounds of each column in each row group.
    Files that were made from other inputs differ in it. A change of a few bytes in a large file may go unnoticed.
    """
    digest = hashlib.blake2b(digest_size=16)
    for name, path in _files_of(paths):
        size = path.stat().st_size
        digest.update(f"{name} {size}\n".encode())
        with path.open("rb") as file:
            for start, length in _sampled(file, size):
                file.seek(start)
                digest.update(hashlib.blake2b(file.read(length)).digest())
    return digest.hexdigest()


def _owner_of(state: Path) -> dict[str, Any] | None:
    try:
        owner: dict[str, Any] = read_json(state / OWNER)
    except InputError:
        return None
    return owner


def _files_of(paths: Iterable[Path]) -> Iterator[tuple[Path, Path]]:
    """Files with their names in the folders that are given; a file that is given itself has no name but its place.

    Hidden files are no content: Snakemake leaves one with the time in each folder that a rule makes.
    """
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            name = file.relative_to(path)
            if not file.is_dir() and not any(part.startswith(".") for part in name.parts):
                yield name, file


def _sampled(file: BinaryIO, size: int) -> Iterator[tuple[int, int]]:
    """Where the parts of a file begin that are hashed, and how long they are."""
    if size <= READ_WHOLE:
        yield from ((start, BLOCK) for start in range(0, size, BLOCK))
        return
    yield from ((number * (size - BLOCK) // (BLOCKS - 1), BLOCK) for number in range(BLOCKS))
    file.seek(size - 8)
    length, end = int.from_bytes(file.read(4), "little"), file.read(4)
    if end == PARQUET:
        yield max(0, size - 8 - length), length
