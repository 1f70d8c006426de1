"""Fetch brought queries and documents from the Hugging Face hub, once; all that follows is offline.

What is fetched is pinned by its commit, and only tables are taken: JSON, text and Parquet, no pickle. Each part of a
layout (its pairs, its collection, its scores or judgements) has a folder of its own.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from cocite.ground.errors import InputError
from cocite.ground.hub import fetch_files
from cocite.ground.progress import report
from cocite.tables.files import atomic_path


def fetch_parts(parts: Mapping[str, tuple[str, str, Sequence[str]]], *, state: Path, output: Path) -> None:
    """Write a folder with a folder for each part: the files of a dataset, at a revision, that fit some patterns.

    A killed fetch goes on from the files in `state`. Raises `InputError` if a part cannot be had, or has no such file.
    """
    for part, (dataset, revision, patterns) in parts.items():
        fetched = state / part / revision
        fetch_files(dataset, revision, patterns, fetched, kind="dataset")
        if not any(path.is_file() for path in fetched.rglob("*") if ".cache" not in path.relative_to(fetched).parts):
            raise InputError(f"{dataset} at {revision} holds no files that fit {', '.join(patterns)}.")
    with atomic_path(output) as folder:
        folder.mkdir()
        for part, (_, revision, _) in parts.items():
            shutil.rmtree(state / part / revision / ".cache", ignore_errors=True)  # what the hub's client notes
            shutil.move(state / part / revision, folder / part)
    shutil.rmtree(state)
    report(f"Fetched {', '.join(parts)}.")
