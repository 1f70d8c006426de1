"""A release in a folder: its shards, how they are opened, and its own metadata.

The configuration check, the DAG, the plan and the jobs all use this module, so that they read the same files. Files
that are neither shards nor known to contain no records are an error, so that no records are dropped silently.
"""

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from cocite.core.atomic import read_json
from cocite.core.errors import InputError

DATASETS = ("papers", "abstracts", "citations")
WORKS = "works"  # the only dataset of a copy of OpenAlex, which has all three
PACKED = ".gz"
PLAIN = (".jsonl", ".ndjson", ".json")  # suffixes of gzipped and of plain shards, case-insensitive
MANIFESTS = ("release", "manifest", "metadata", "schema", "dataset_info", "checksums")  # no shards
NOTES = (
    *("readme*", "licen[cs]e*", "copying*", "notice*", "attribution*", "changelog*", "citation.cff", "*.md", "*.bib"),
    *("*.md5", "*.sha1", "*.sha256", "*.sha512", "md5sum*", "sha*sum*", "checksum*", "_success", "thumbs.db"),
)
"""Names, in lowercase, of further files without records."""
ENDINGS = f"{PACKED}, {', '.join(PLAIN[:-1])} or {PLAIN[-1]}"
MAGIC = b"\x1f\x8b"  # the first bytes of a gzip file


def find_shards(folder: Path) -> list[Path]:
    """The shards in the folder of a dataset, by name; empty if there is no such folder. Raises `InputError` for any
    other file, unless it is known to contain no records."""
    if not folder.is_dir():
        return []
    if not os.access(folder, os.R_OK | os.X_OK):
        raise InputError(f"{folder} may not be read by this user; grant the right to read it.")
    shards = [path for path in sorted(folder.iterdir()) if _may_be_shard(path.name)]
    for path in shards:
        if not path.is_file():
            raise InputError(f"{path} is no file; remove it, or move the shards in it to {path.parent}.")
        if not path.name.lower().endswith((PACKED, *PLAIN)):
            raise InputError(
                f"{path} would not be read: a shard ends in {ENDINGS}; rename it, gzip it or move it elsewhere."
            )
        if not path.name.isprintable() or set(path.name) & set("{}"):
            bad = "has a brace in its name, or a character that cannot be printed"
            raise InputError(f"{str(path)!r} {bad}; rename it.")
        if not os.access(path, os.R_OK):
            raise InputError(f"{path} may not be read by this user; grant the right to read it.")
    return shards


def is_packed(name: str) -> bool:
    """Whether a shard of this name is gzipped."""
    return name.lower().endswith(PACKED)


def unpacked(path: Path) -> BufferedIOBase:
    """Open a shard for reading its text as bytes, gzipped or plain; one that is gzipped may be named as a plain one."""
    from isal import igzip

    with path.open("rb") as file:
        packed = is_packed(path.name) or file.read(len(MAGIC)) == MAGIC
    return igzip.open(path, "rb") if packed else path.open("rb")


def stated_by(folder: Path) -> Mapping[str, Any]:
    """The metadata in `release.json`; empty without it. Raises `InputError` if the file is not a JSON object."""
    file = folder / "release.json"
    if not file.exists() and not file.is_symlink():
        return {}
    if not file.is_file():
        raise InputError(f"{file} is no file that can be read; mend or remove it.")
    stated = read_json(file)
    if not isinstance(stated, dict):
        raise InputError(f'{file}: must be a JSON object, such as {{"release_id": "2026-01-06"}}.')
    return stated


def readme_of(folder: Path) -> str:
    """The README of a dataset; empty if it has none. Bytes that are not UTF-8 are replaced."""
    files = sorted(path for path in folder.glob("README*") if path.is_file())
    return files[0].read_text(encoding="utf-8-sig", errors="replace") if files else ""


def _may_be_shard(name: str) -> bool:
    """Whether a name is a shard's, or one that is not known; systems and programs leave hidden files behind."""
    name = name.lower()
    if name.startswith("."):
        return False
    if name.endswith((PACKED, *PLAIN)):
        return name not in [f"{manifest}.json" for manifest in MANIFESTS]
    return not any(fnmatchcase(name, note) for note in NOTES)
