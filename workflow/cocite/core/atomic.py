"""Files that are written whole or not at all: under a temporary name, which is renamed at the end.

Apart from `tables/files.py`, so that what runs before any job, the Snakefile for one, need not import Arrow.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import Any

from cocite.core.errors import InputError
from cocite.core.space import TEMPORARY, explain_full_disk


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside `path` (a file, or a folder that the caller makes); rename it at the end.

    What a killed process has left of `path` is removed first. Raises `InputError` where the disk is full.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{escape(path.name)}.*{TEMPORARY}"):
        _remove(left)
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        with explain_full_disk(path.parent):
            yield temporary
            if path.is_dir():
                _remove(path)
            temporary.replace(path)
    finally:
        _remove(temporary)


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
    """Read JSON, in UTF-8 with or without a byte order mark.

    Raises `InputError` where the file is missing, cannot be read or is not JSON.
    """
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
    """Read a JSON object. Raises `InputError` if the file holds anything else."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds {type(content).__name__}; it must be a JSON object.")
    return content


def sync(path: Path) -> None:
    """Have the disk hold what was written to a file."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def begin_sync(path: Path) -> None:
    """Have the system begin to write to the disk what it holds of a file, so that `sync` has less to wait for."""
    if hasattr(os, "posix_fadvise"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
