"""The benchmark `csfcube`."""

from typing import Literal

from cocite.config.benchmark import FolderBenchmark
from cocite.config.tasks import Task

FACETS = ("background", "method", "result")


class CsfCube(FolderBenchmark):
    """CSFCube, papers that are similar to a query paper in one facet, with graded relevance (Mysore et al., 2021).

    "CSFCube - A Test Collection of Computer Science Research Articles for Faceted Query by Example". Candidates of the
    grades 2 and 3 are relevant to the metrics that know no grades.
    """

    kind: Literal["csfcube"]
    by_aspect = True
    declared = tuple(
        Task(
            name=f"csfcube_{facet}",
            kind="ranking",
            group="csfcube",
            metrics=("map", "Rprec", "P_20", "recall_20", "ndcg", "Rprec_csfcube", "ndcg_csfcube", "ndcg_20%_csfcube"),
            test=facet,
            relevant_from=2,
        )
        for facet in FACETS
    )
