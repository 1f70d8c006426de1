"""The library mteb, as it is known without it: the folders of its results, its metrics, and when a task is the same.

mteb writes a file of JSON a task, `results/<model>/<revision>/<task>.json`, with `model_meta.json` beside them.
"""

from collections.abc import Iterable
from pathlib import Path

from cocite.config.tasks import InMteb
from cocite.ground.errors import InputError

META = "model_meta.json"
"""What lies beside the results of a model and says which one it is."""
SPLIT, SUBSET = "test", "default"
"""The split of mteb's retrieval tasks that counts, and the only part of a task that is not cut further."""
METRICS = {"ndcg_cut_10": "ndcg_at_10", "recip_rank_10": "mrr_at_10", "recall_100": "recall_at_100"}
"""Metrics as trec_eval names them, which are those of searches here, and what mteb calls them."""
LARGEST_DIFFERENCE = 0.01
"""Share by which the number of queries may differ from mteb's: some have no document that is there."""


def is_same_test(task: InMteb, split: str, queries: int) -> bool:
    """Whether so many queries of a split can be those that mteb asks: a sample or another split is another test."""
    return split == SPLIT and abs(queries - task.queries) <= LARGEST_DIFFERENCE * task.queries


def result_files(path: Path) -> list[Path]:
    """The results of one model in a file, its folder, or a folder above it.

    Raises `InputError` where there are none, or those of several models or revisions.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError(f"{path} does not exist.")
    files = _results_in(path.glob("*.json")) or _results_in(path.rglob("*.json"))
    folders = sorted({file.parent for file in files})
    if not folders:
        raise InputError(f"{path} holds no results of mteb: there is no <task>.json.")
    if len(folders) > 1:
        raise InputError(
            f"{path} holds results of {len(folders)} models or revisions ({folders[0].relative_to(path)}, "
            f"{folders[1].relative_to(path)}{', …' if len(folders) > 2 else ''}); name the folder of one."
        )
    return files


def _results_in(files: Iterable[Path]) -> list[Path]:
    return sorted(file for file in files if file.name != META)
