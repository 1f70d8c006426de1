"""The benchmark `holdout`."""

from collections.abc import Sequence
from typing import Literal

from cocite.config.benchmark import Benchmark, HoldoutSettings
from cocite.config.tasks import Task

TITLE_SEARCH = Task(
    name="title_search",
    kind="retrieval",
    group="title-search",
    metrics=("ndcg_cut_10", "recip_rank_10", "recall_100"),
    similarity="cosine",
)


class Holdout(Benchmark, HoldoutSettings):
    """What held-out papers of our own corpus cite, and what they are cited with."""

    kind: Literal["holdout"]
    made_by = HoldoutSettings
    declared = (
        Task(name="cite", kind="ranking", group="holdout", metrics=("map", "ndcg")),
        Task(name="cocite", kind="ranking", group="holdout", metrics=("map", "ndcg")),
        TITLE_SEARCH,
    )

    @property
    def scored_tasks(self) -> Sequence[Task]:
        """Its tasks; the search only if it has settings."""
        return [task for task in self.declared if task is not TITLE_SEARCH or self.search is not None]
