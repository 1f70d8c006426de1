"""Folders that a run writes to: whether it can, found out before the first job."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cocite.core.errors import InputError

FOLDERS = ("results", "logs", "benchmarks")
"""The folders that a run writes to: the keys of `pathvars` and their defaults."""
LONGEST_NAME, LONGEST_PATH = 255, 1000
"""Bytes that a name in a path can have, and characters that the folder of results can; the paths in it are longer."""
OF_PATTERNS = "*?[]\\"
"""Characters by which DuckDB and Polars take a path for a pattern, and may read other files."""


def folders_of(config: Mapping[str, Any]) -> dict[str, Path]:
    """The folders that a run with this configuration, resolved or not, writes to, by key. Raises `InputError` if one is
    not a path."""
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


def in_the_way(folder: Path) -> str:
    """The file that blocks the creation of a folder; empty if none does, or if the folder exists."""
    there = nearest(folder)
    if there.is_dir():
        return ""
    return f"{there} is a file" if there.exists() else f"{there} is a link that leads nowhere"


def obstacle(folder: Path) -> str:
    """What keeps this user from writing to a folder, there or not yet there; empty if nothing does."""
    there, reason = nearest(folder), in_the_way(folder)
    if reason:
        return reason
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


def is_as_it_stands(path: str) -> bool:
    """Whether a path is literal and normalised: no ~, no variables, nothing to shorten."""
    return not path.startswith("~") and "$" not in path and path == os.path.normpath(path)


def unusable(path: str) -> str:
    """Why a path, or files under it, cannot be passed to steps; empty if they can."""
    if path in (".", "/"):
        return "results need a folder to themselves"
    if path.startswith("-"):
        return "commands take a name that begins with a hyphen for an option"
    if any(len(os.fsencode(part)) > LONGEST_NAME for part in Path(path).parts) or len(path) > LONGEST_PATH:
        return f"a name has at most {LONGEST_NAME} bytes, and this path at most {LONGEST_PATH} characters"
    for character in path:
        if character in OF_PATTERNS:
            return f"with {character!r}, DuckDB and Polars take a path for a pattern"
    return ""
