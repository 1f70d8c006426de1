"""The benchmark `scidocs`."""

from typing import Literal

from cocite.config.benchmark import FolderBenchmark
from cocite.config.benchmarks.scirepeval import TASKS as SCIREPEVAL
from cocite.config.tasks import Task

GRID = (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0)


class SciDocs(FolderBenchmark):
    """SciDocs in its own layout (Cohan et al., 2020, "SPECTER")."""

    kind: Literal["scidocs"]
    has_hashes = True
    declared = (
        Task(name="mag", kind="multiclass", group="scidocs", metrics=("f1_macro",), grid=GRID),
        Task(name="mesh", kind="multiclass", group="scidocs", metrics=("f1_macro",), grid=GRID),
        *(task for task in SCIREPEVAL if task.texts == "scidocs_view_cite_read"),
        Task(
            name="recomm",
            kind="clicks",
            group="scidocs",
            metrics=("ndcg_adjusted", "P_1_adjusted"),
            similarity="cosine",
        ),
    )
