"""Splits of the configs of a dataset, as the Hugging Face hub has them: fetching them, and reading them from a folder.

A config is a folder. A split of it is `<split>.jsonl`, `<split>.parquet` or, as the hub has it,
`<split>-00000-of-00002.parquet` or `<split>/0000.parquet`.

One config is fetched at a time, and read offline after that. Only files of rows are taken, never a script: a revision
that has nothing else is refused.
"""

import shutil
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from cocite.config.benchmarks import names
from cocite.core.errors import InputError
from cocite.core.hub import fetch_files
from cocite.core.options import Output, State
from cocite.core.rows import Row, read_lines, read_parquet
from cocite.core.tables.files import atomic_path


def fetch_config(
    config: Annotated[str, typer.Argument(help="Name of the config: a folder of the dataset.")],
    *,
    dataset: Annotated[str, typer.Option(help="Dataset on the Hugging Face hub.")],
    revision: Annotated[str, typer.Option(help="Commit of the dataset.")],
    splits: Annotated[str, typer.Option(help="Names of its splits, with commas between them.")],
    state: State,
    output: Output,
) -> None:
    """Fetch a config of a benchmark from the hub; a killed fetch goes on from the files in `state`.

    Raises `InputError` where the hub cannot be reached, and where it has no files of a split at the revision.
    """
    fetched = state / revision
    patterns = [f"{config}/{pattern}" for split in names(splits) for pattern in patterns_of_split(split)]
    try:
        fetch_files(dataset, revision, patterns, fetched, kind="dataset")
    except InputError as error:
        raise InputError(
            f"{str(error).rstrip('.')}. A benchmark is fetched once: run that step where there is a network, on a "
            "login node for example (snakemake --until fetch_benchmark), or name a local folder in place of hub."
        ) from error
    for split in names(splits):
        if not files_of_split(fetched / config, split):
            raise InputError(
                f"{dataset} at {revision} has no Parquet or JSON Lines files of {config}, split {split}; pin a commit "
                "that has them, such as the last one of its branch refs/convert/parquet."
            )
    with atomic_path(output) as folder:
        shutil.move(fetched / config, folder)
    shutil.rmtree(state)


def read_split(folder: Path, split: str, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """The rows of a split of a config's folder; of Parquet, those of these columns that are there.

    Raises `InputError` where it has no files, or no rows.
    """
    files = files_of_split(folder, split)
    if not files:
        raise InputError(f"{folder}: holds neither {split}.jsonl nor {split}.parquet, nor shards of it.")
    rows = chain.from_iterable(
        read_lines(file) if file.suffix == ".jsonl" else read_parquet(file, columns) for file in files
    )
    first = next(rows, None)
    if first is None:
        raise InputError(f"{files[0]}: has no rows.")
    return chain([first], rows)


def files_of_split(folder: Path, split: str) -> list[Path]:
    """The files of a split, in the first of the layouts that has any."""
    found = (sorted(folder.glob(pattern)) for pattern in patterns_of_split(split))
    return next(filter(None, found), [])


def patterns_of_split(split: str) -> tuple[str, ...]:
    """The names of the files of a split, in a folder put together by hand and on the hub."""
    return f"{split}.jsonl", f"{split}.parquet", f"{split}-*-of-*.parquet", f"{split}/*.parquet"
