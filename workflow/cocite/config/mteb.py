"""The library mteb, as it is known without it: the folders of its results, its metrics, and when a task is the same.

mteb writes a file of JSON a task, `results/<model>/<revision>/<task>.json`, with `model_meta.json` beside them.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cocite.config.tasks import InMteb
from cocite.core.errors import InputError

META = "model_meta.json"
"""What lies beside the results of a model and says which one it is."""
SPLIT, SUBSET = "test", "default"
"""The split of mteb's retrieval tasks that counts, and the only part of a task that is not cut further."""
CUT = re.compile(r"(ndcg_cut|map_cut|recip_rank|recall|P)_(\d+)")
"""A metric at a depth, as trec_eval names it."""
MEASURES = {"ndcg_cut": "ndcg", "map_cut": "map", "recip_rank": "mrr", "recall": "recall", "P": "precision"}
"""What mteb calls the measures of trec_eval."""


def name_in_mteb(metric: str) -> str:
    """What mteb calls a metric; others keep their name."""
    cut = CUT.fullmatch(metric)
    return f"{MEASURES[cut[1]]}_at_{cut[2]}" if cut else metric


def is_same_test(task: InMteb, entry: Any, queries: int, searched: int | None) -> bool:
    """Whether a benchmark with so many queries, searched in so many documents, can make the test that mteb makes. A
    sample of the queries or of the documents is another test. So is another split, one without the judgements of
    documents that are missing, and one where other queries find the document with their own id. `entry` holds the
    settings of the benchmark. `searched` is None where it is not known."""
    return (
        getattr(entry, "split", SPLIT) == SPLIT
        and getattr(entry, "missing_documents", "keep") == "keep"
        and getattr(entry, "ignore_identical_ids", "auto") in ("auto", task.ignores_identical_ids)
        and queries == task.queries
        and searched in (None, task.documents)
    )


def result_files(path: Path) -> list[Path]:
    """The results of one model in a file, its folder, or a folder above it. Raises `InputError` where there are none,
    or those of several models or revisions."""
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
