"""Folders that a run writes to: whether it can, found out before the first job."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cocite.core.errors import InputError

FOLDERS = ("results", "logs", "benchmarks")  # that a run writes to: the keys of `pathvars` and their defaults
OF_PATTERNS = "*?[]\\"  # characters by which DuckDB and Polars take a path for a pattern, and may read other files


def folders_of(config: Mapping[str, Any]) -> dict[str, Path]:
    """The folders that a run writes to, by key, resolved or not. Raises `InputError` if one is not a path."""
    named = config.get("pathvars") or {}
    paths = {name: named.get(name, name) for name in FOLDERS} if isinstance(named, Mapping) else {}
    if not paths or not all(isinstance(path, str) and path for path in paths.values()):
        raise InputError("Configuration key pathvars must contain paths, as in pathvars: {results: results/mine}.")
    return {name: Path(path) for name, path in paths.items()}


def make_folders(config: Mapping[str, Any]) -> None:
    """Make the folders of a run. Raises `InputError` that names the first that cannot be made or written to."""
    for name, folder in folders_of(config).items():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except (OSError, ValueError) as error:
            reason = obstacle(folder) or getattr(error, "strerror", None) or str(error)
            raise InputError(
                f"Configuration key pathvars.{name}: nothing can be written to the folder {folder} ({reason}); mend "
                "that, or name another."
            ) from None


def obstacle(folder: Path) -> str:
    """What keeps this user from writing to a folder, there or not yet there; empty if nothing does."""
    there = nearest(folder)
    if not there.is_dir():
        return f"{there} is a {'file' if there.exists() else 'link that leads nowhere'}"
    if os.statvfs(there).f_flag & os.ST_RDONLY:
        return f"{there} is on a disk that can only be read"
    return "" if os.access(there, os.W_OK | os.X_OK) else f"this user may not write to {there}"


def nearest(folder: Path) -> Path:
    """The folder itself or the nearest above it that exists; a file or a broken link in its place counts."""
    above: Iterable[Path] = (folder.absolute(), *folder.absolute().parents)
    return next(path for path in above if os.path.lexists(path))


def files_in(folder: str | Path) -> list[str]:
    """All files of a user-supplied folder, since Snakemake does not detect changes by the folder's time."""
    found = (path for path in Path(folder).rglob("*") if path.is_file())
    return sorted(str(path) for path in found if not any(name[0] == "." for name in path.relative_to(folder).parts))


def is_literal(path: str) -> bool:
    """Whether a path names one folder as it stands: no ~, no variable, no pattern, no option, nothing to shorten."""
    is_plain = path == os.path.normpath(path) and path not in (".", "/") and path[0] not in "~-"
    return is_plain and not {*path} & {"$", *OF_PATTERNS}
