"""State that survives a kill: a folder for one piece of work, with files that are complete or absent.

`fingerprint.json` records what the work depends on: its settings and a fingerprint of its inputs, by content and never
by time. The state of other work is removed, and the log lists the differences. Each file of the state has a checksum
(see `atomic.py`), which is verified before work resumes; a corrupt file is named in the log and removed.
"""

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from cocite.core.atomic import NEW, checked_path, is_whole, json_text, marked_files, read_object, remove, remove_marks
from cocite.core.errors import TEMPORARY, InputError
from cocite.core.progress import report

OWNER = "fingerprint.json"
READ_WHOLE = 256 << 20
"""Bytes of the largest file that `sampled_fingerprint` reads whole."""
BLOCK, BLOCKS = 1 << 20, 64
"""Bytes of a block of a larger one, and how many of them are read."""


def open_state(
    state: Path,
    fingerprint: dict[str, Any],
    *,
    work: str,
    independent: bool = False,
    checked_by_work: Collection[str] = (),
    scratch: Collection[str] = (),
    implied: Callable[[], Iterable[Path]] = tuple,
) -> bool:
    """Make the folder ready for work with this fingerprint; return whether the work can resume from it.

    The fingerprint consists of JSON values. `work` is its name in the log: "training", "search". If a file is spoilt,
    the work restarts; if its files are `independent` of each other, it resumes without the spoilt ones. Files in
    `checked_by_work` are changed in place, and the work verifies its own checksums of them. Files that match a pattern
    in `scratch` have no checksum; they are removed and made again. `implied` lists the files that must exist at the
    progress recorded in the other files; if one is missing, the work restarts. Raises `InputError` if the folder has
    files of a user, or the state of other work cannot be removed.
    """
    check_state(state)
    before = work_in(state)
    if before == fingerprint:
        spoilt = _spoilt_files(state, checked_by_work, scratch) or sorted(
            path for path in implied() if not path.exists()
        )
        if spoilt and not independent:
            remove(state / OWNER)
        for path in spoilt:
            _remove_spoilt(path)
        if not spoilt or independent:
            return True
        report(f"{state}: the {work} starts afresh")
    elif before is not None:
        changed = sorted(key for key in before | fingerprint if before.get(key) != fingerprint.get(key))
        report(f"{state}: {', '.join(changed)} changed since the {work} that was killed; starting afresh")
    elif (state / OWNER).exists():
        report(f"{state / OWNER}: its content is not what was written; it is removed")
    remove_state(state)
    if left := next((path for path in state.rglob("*") if not path.is_dir()), None):
        raise InputError(f"{left}: belongs to other work than this {work} and cannot be removed; remove {state}.")
    write_checked_json(state / OWNER, fingerprint)
    return False


def remove_state(state: Path) -> None:
    """Remove the folder: its fingerprint first, so that the rest belongs to no work; the fingerprint's marks last."""
    if state.is_dir() and not state.is_symlink():
        remove(state / OWNER, ignore_errors=True)
        for path in state.iterdir():
            if OWNER not in path.name:
                remove(path, ignore_errors=True)
    remove(state, ignore_errors=True)


def check_state(state: Path) -> None:
    """Raise `InputError` if a user's files are where the state goes, which would be removed."""
    if state.is_symlink():
        return
    if state.is_dir():
        paths = [path for path in state.rglob("*") if not path.is_dir()]
        has_owner = any(OWNER in path.name for path in state.iterdir())
        is_of_a_user = not has_owner and not {*paths} <= _with_marks(paths)
    else:
        is_of_a_user = state.is_file() and state.stat().st_size > 0
    if is_of_a_user:
        raise InputError(f"{state}: has files, and is not a state of CoCite; --state must be a new or an empty folder.")


@contextmanager
def open_whole(path: Path) -> Iterator[BinaryIO]:
    """A file of the state to write; it appears under its name once it is whole, on the disk and has its checksum."""
    with checked_path(path) as temporary, temporary.open("wb") as file:
        yield file


def write_checked_json(path: Path, content: Any) -> None:
    """Write a JSON file of the state."""
    with checked_path(path) as temporary:
        temporary.write_text(json_text(content), encoding="utf-8")


def _with_marks(paths: Collection[Path]) -> set[Path]:
    """The marks among the paths, and the files that they belong to."""
    marked = marked_files(paths)
    return {*marked, *chain.from_iterable(marked.values())}


def _remove_spoilt(path: Path, why: str = "its content is not what was written") -> None:
    report(f"{path}: {why}; it is removed" if os.path.lexists(path) else f"{path}: is gone")
    remove_marks(path)
    remove(path)


def fingerprint_of(paths: Iterable[Path]) -> str:
    """A hash of the contents of files, and of all files in folders with their names there; 32 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    for name, path in _files_of(paths):
        with path.open("rb") as file:
            digest.update(f"{name} {hashlib.file_digest(file, 'blake2b').hexdigest()}\n".encode())
    return digest.hexdigest()


def sampled_fingerprint(paths: Iterable[Path]) -> str:
    """The same for files that may be too large to be read whole: their size and evenly spaced blocks are hashed.

    So is the footer of a Parquet file, which differs between files made from other inputs: it has the size and the
    bounds of each column in each row group. A change of a few bytes in a large file may go unnoticed.
    """
    digest = hashlib.blake2b(digest_size=16)
    for name, path in _files_of(paths):
        size = path.stat().st_size
        digest.update(f"{name} {size}\n".encode())
        with path.open("rb") as file:
            parts = [(start, BLOCK) for start in range(0, size, BLOCK)]
            if size > READ_WHOLE:
                parts = [(number * (size - BLOCK) // (BLOCKS - 1), BLOCK) for number in range(BLOCKS)]
                file.seek(size - 8)
                length, end = int.from_bytes(file.read(4), "little"), file.read(4)
                parts += [(max(0, size - 8 - length), length)] if end == b"PAR1" else []
            for start, length in parts:
                file.seek(start)
                digest.update(hashlib.blake2b(file.read(length)).digest())
    return digest.hexdigest()


def work_in(state: Path) -> dict[str, Any] | None:
    """What the work in a state follows from, its fingerprint; None if there is none, or it is spoilt."""
    if is_whole(state / OWNER):
        with suppress(InputError):
            return read_object(state / OWNER)
    return None


def _spoilt_files(state: Path, checked_by_work: Collection[str], scratch: Collection[str]) -> list[Path]:
    """The files of the state that are missing or do not match their checksum; those without one are removed."""
    paths = [path for path in state.rglob("*") if path.is_symlink() or not path.is_dir()]
    kept = _with_marks(paths)
    for path in paths:
        if path in kept or path.name in checked_by_work:
            continue
        is_temporary = any(name.endswith(TEMPORARY) for name in path.relative_to(state).parts)
        if is_temporary or any(map(path.match, scratch)) or path.suffix == NEW:
            path.unlink()
        else:
            _remove_spoilt(path, "has no checksum")
    in_place = [path for path in state.rglob("*") if path.name in checked_by_work and not path.is_file()]
    return sorted([*in_place, *(path for path in marked_files(paths) if not is_whole(path))])


def _files_of(paths: Iterable[Path]) -> Iterator[tuple[Path, Path]]:
    """Files with their names in the folders that are given; a file that is given itself has the name `.`."""
    # Hidden files are no content: Snakemake leaves one with the time in each folder that a rule makes.
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            name = file.relative_to(path)
            if not file.is_dir() and not any(part.startswith(".") for part in name.parts):
                yield name, file
