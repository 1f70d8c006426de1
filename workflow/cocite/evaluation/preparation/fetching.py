"""Fetching SciRepEval from the Hugging Face hub, one config of one dataset at a time; offline after that.

`allenai/scirepeval` holds the texts, `allenai/scirepeval_test` the labels. Only files of rows are taken, never a
script: a revision that has nothing else is refused. What is fetched lies in the layout that `layout.py` reads.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from cocite.evaluation.preparation.layout import files_of_split, patterns_of_split
from cocite.ground.errors import InputError
from cocite.ground.hub import fetch_files
from cocite.tables.files import atomic_path


def fetch_config(dataset: str, revision: str, config: str, splits: Sequence[str], *, state: Path, output: Path) -> None:
    """Write the folder of a config with these splits; a killed fetch goes on from the files in `state`.

    Raises `InputError` where the hub cannot be reached, and where it has no files of a split at the revision.
    """
    fetched = state / revision
    patterns = [f"{config}/{pattern}" for split in splits for pattern in patterns_of_split(split)]
    try:
        fetch_files(dataset, revision, patterns, fetched, kind="dataset")
    except InputError as error:
        raise InputError(
            f"{str(error).rstrip('.')}. A benchmark is fetched once: run that step where there is a network, on a "
            "login node for example (snakemake --until fetch_benchmark), or name a local folder in place of hub."
        ) from error
    for split in splits:
        if not files_of_split(fetched / config, split):
            raise InputError(
                f"{dataset} at {revision} has no Parquet or JSON Lines files of {config}, split {split}; pin a commit "
                "that has them, such as the last one of its branch refs/convert/parquet."
            )
    with atomic_path(output) as folder:
        shutil.move(fetched / config, folder)
    shutil.rmtree(state)
