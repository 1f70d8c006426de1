"""Fetch brought queries and documents from the Hugging Face hub, once; all that follows is offline.

What is fetched is pinned by its commit, and only tables are taken: JSON, text and Parquet, no pickle. Each part of a
layout (its pairs, its collection, its scores or judgements) has a folder of its own.
"""

import shutil
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from cocite.config.settings import GivenAsJson
from cocite.core.errors import InputError
from cocite.core.hub import fetch_files
from cocite.core.options import Output, State
from cocite.core.progress import report
from cocite.core.tables.files import atomic_path


def fetch_parts(
    *,
    parts: Annotated[
        GivenAsJson[Mapping[str, tuple[str, str, Sequence[str]]]],
        typer.Option(
            help="What is fetched, as JSON: for each part, such as pairs, its dataset on the Hugging Face hub, the "
            "revision and patterns of its files."
        ),
    ],
    state: State,
    output: Output,
) -> None:
    """Fetch brought queries and documents from the Hugging Face hub, pinned by commit; a killed fetch resumes.

    Each part is a folder in the output. Raises `InputError` if a part cannot be had, or has no file that fits.
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
