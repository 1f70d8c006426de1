"""Who is scored, in the order that people read: models as configured, untrained encoders, baselines.

A run is a model, or what stands in for one, and its training seed; what is not trained has the seed 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cocite.tasks import Task

BASELINES = ("bm25", "random")
BM25 = "bm25-0"


def untrained(config: Mapping[str, Any]) -> list[str]:
    """What the encoders are called as they are before fine-tuning."""
    return [f"untrained_{name}" for name in config["encoders"]]


def names_in_order(config: Mapping[str, Any]) -> list[str]:
    """The names of all that are scored."""
    return [*config["models"], *untrained(config), *BASELINES]


def runs_of(config: Mapping[str, Any]) -> list[str]:
    """All runs that are scored."""
    trained = [f"{name}-{seed}" for name, entry in config["models"].items() for seed in entry["seeds"]]
    return [*trained, *(f"{name}-0" for name in (*untrained(config), *BASELINES))]


def scored_runs(suites: Mapping[str, Sequence[Task]], runs: Iterable[str]) -> list[tuple[str, str]]:
    """Each suite of a benchmark with the runs that have scores on it.

    BM25 compares words: it ranks, and does nothing else.
    """
    return [
        (suite, run)
        for suite, tasks in suites.items()
        for run in runs
        if run != BM25 or any(task.is_ranking for task in tasks)
    ]
