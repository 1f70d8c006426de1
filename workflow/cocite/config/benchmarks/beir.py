"""The benchmark `beir`."""

from typing import Literal

from cocite.config.benchmark import FolderBenchmark
from cocite.config.tasks import Task


class Beir(FolderBenchmark):
    """The scientific part of BEIR (Thakur et al., 2021)."""

    kind: Literal["beir"]
    declared = tuple(
        Task(
            name=f"beir_{dataset.replace('-', '_')}",
            kind="retrieval",
            group="beir",
            metrics=("ndcg_cut_10", "recall_100"),
            test=dataset,
        )
        for dataset in ("scifact", "nfcorpus", "trec-covid", "arguana", "scidocs")
    )
