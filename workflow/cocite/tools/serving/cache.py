"""Folders of indexes outside the results: made once, and again where the files that they are made from have changed.

    <cache>/<digest of the run's path>/<name>-<digest of the files>/

The name of a folder says what it is made from, so that an index of earlier files is never taken for a current one.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from cocite.core.atomic import atomic_path, read_object, write_json
from cocite.core.errors import InputError

FORMAT = 1
"""Raised where an index of the same files is laid out otherwise."""
DIGITS = 16
"""Hexadecimal digits of a digest in a name."""
SIZES = "sizes.json"
"""The sizes of the files of an index, beside them."""


def default_cache() -> Path:
    """The folder of indexes in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cocite" / "serve"


def cache_of(results: Path, cache: Path) -> Path:
    """The folder of a run's indexes. Raises `InputError` where it would lie within the results."""
    within = results.resolve()
    if cache.resolve().is_relative_to(within):
        raise InputError(
            f"--cache {cache} lies within the results {results}, which are only read; name another folder."
        )
    return cache / _digest(str(within))


def cached(folder: Path, name: str, files: Sequence[Path], make: Callable[[Path], None]) -> Path:
    """The folder of an index of these files, which `make` fills if it is not there yet, or not whole any more.

    Folders of the same name that were made from other files are deleted.
    """
    states = [(str(path), (state := path.stat()).st_size, state.st_mtime_ns) for path in files]
    made = folder / f"{name}-{_digest(repr((FORMAT, states)))}"
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        if not _is_whole(made):
            with atomic_path(made) as temporary:
                temporary.mkdir()
                make(temporary)
                write_json(temporary / SIZES, {path.name: path.stat().st_size for path in temporary.iterdir()})
        for other in folder.glob(f"{name}-{'[0-9a-f]' * DIGITS}"):
            if other != made:
                shutil.rmtree(other)
    return made


def _is_whole(made: Path) -> bool:
    """Whether a folder has all of its files: systems delete old files of caches, and a crash leaves short ones."""
    try:
        return all((made / name).stat().st_size == size for name, size in read_object(made / SIZES).items())
    except (InputError, OSError):
        return False


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold other servers of the same run back until an index is made."""
    with (folder / ".lock").open("w") as file:
        with suppress(OSError):  # A disk without locks cannot hold them back.
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
