"""State that survives a kill: a folder that belongs to one piece of work, and files in it that are whole or not there.

`fingerprint.json` records what the work depends on: its settings and a fingerprint of its inputs. The state of other
work is removed, and the log says what has changed. A fingerprint depends on content, never on times: inputs that were
made again with the same content are the same.

Each file of the state has a checksum (see `checksums.py`), which is compared before work resumes. A file that a disk
has spoilt is moved to `<state>.spoilt`, where it stays until the work is done. A file without a checksum was never
finished, and is removed.
"""

import hashlib
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from cocite.ground.atomic import json_text, read_json
from cocite.ground.checksums import checked_path, is_whole, marked_files, remove_checked, remove_marks
from cocite.ground.progress import report

OWNER = "fingerprint.json"
READ_WHOLE = 256 << 20
"""Bytes of the largest file that `sampled_fingerprint` reads whole."""
BLOCK, BLOCKS = 1 << 20, 64
"""Bytes of a block of a larger one, and how many of them are read."""
PARQUET = b"PAR1"


def open_state(
    state: Path,
    fingerprint: dict[str, Any],
    *,
    work: str,
    independent: bool = False,
    checked_by_work: Collection[str] = (),
) -> bool:
    """Make the folder ready for work with this fingerprint; return whether the work can resume from what is there.

    The fingerprint holds values that JSON can hold. `work` is its name in the log: "training", "search". With a spoilt
    file, the work starts afresh; if its files are `independent` of each other, it resumes without the spoilt ones.
    Files named in `checked_by_work` are changed in place, and the work compares checksums of its own.
    """
    before = _owner_of(state)
    if before == fingerprint:
        spoilt = _spoilt_files(state, checked_by_work)
        if spoilt and not independent:
            remove_checked(state / OWNER)
        for path in spoilt:
            set_aside(path, state)
        if not spoilt or independent:
            return True
        report(f"{state}: the {work} starts afresh")
    elif before is not None:
        changed = sorted(key for key in before | fingerprint if before.get(key) != fingerprint.get(key))
        report(f"{state}: {', '.join(changed)} changed since the {work} that was killed; starting afresh")
    _empty(state)
    write_checked_json(state / OWNER, fingerprint)
    return False


def remove_state(state: Path) -> None:
    """Remove the folder, and what was set aside from it."""
    _empty(state)
    shutil.rmtree(_spoilt_folder(state), ignore_errors=True)


@contextmanager
def open_whole(path: Path) -> Iterator[BinaryIO]:
    """A file of the state to write; it appears under its name once it is whole, on the disk and has its checksum."""
    with checked_path(path) as temporary, temporary.open("wb") as file:
        yield file


def write_checked_json(path: Path, content: Any) -> None:
    """Write a JSON file of the state."""
    with checked_path(path) as temporary:
        temporary.write_text(json_text(content), encoding="utf-8")


def set_aside(path: Path, state: Path) -> None:
    """Move a spoilt file out of the state, and name it in the log."""
    aside = _spoilt_folder(state) / path.relative_to(state)
    if path.exists():
        report(f"{path}: its content is not what was written; it is set aside as {aside}")
        aside.parent.mkdir(parents=True, exist_ok=True)
        path.replace(aside)
    else:
        report(f"{path}: is gone")
    remove_marks(path)


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
    if not (state / OWNER).exists():
        return None
    if not is_whole(state / OWNER):
        set_aside(state / OWNER, state)
        return None
    owner: dict[str, Any] = read_json(state / OWNER)
    return owner


def _spoilt_files(state: Path, checked_by_work: Collection[str]) -> list[Path]:
    """The files of the state that do not hold what was written, or are gone; unfinished files are removed."""
    paths = [path for path in state.rglob("*") if path.is_symlink() or not path.is_dir()]
    marked = marked_files(paths)
    kept = {*marked, *chain.from_iterable(marked.values())}
    for path in paths:
        if path not in kept and path.name not in checked_by_work:
            path.unlink()
    return sorted(path for path in marked if not is_whole(path))


def _spoilt_folder(state: Path) -> Path:
    return state.with_name(f"{state.name}.spoilt")


def _empty(state: Path) -> None:
    """Remove the folder, its fingerprint first: what is half removed then belongs to no work."""
    (state / OWNER).unlink(missing_ok=True)
    shutil.rmtree(state, ignore_errors=True)


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
