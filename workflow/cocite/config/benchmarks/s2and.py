"""The benchmark `s2and`."""

from typing import Literal

from cocite.config.benchmark import FolderBenchmark
from cocite.config.tasks import Task


class S2and(FolderBenchmark):
    """S2AND, authors of one name told apart (Subramanian et al., 2021).

    "S2AND: A Benchmark and Evaluation System for Author Name Disambiguation".
    """

    kind: Literal["s2and"]
    declared = tuple(
        Task(
            name=f"s2and_{dataset}",
            kind="disambiguation",
            group="s2and",
            metrics=("b3_f1", "b3_precision", "b3_recall"),
            test=dataset,
        )
        for dataset in ("arnetminer", "inspire", "kisti", "pubmed", "qian", "zbmath")
    )
