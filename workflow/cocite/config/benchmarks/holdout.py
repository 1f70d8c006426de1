"""The benchmark `holdout`."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from cocite.config.benchmark import Benchmark, HoldoutSettings
from cocite.config.entries import Whole
from cocite.config.tasks import Task

TITLE_METRICS = ("ndcg_cut_10", "recip_rank_10", "recall_100")
TITLE_SEARCH = Task(
    name="title_search", kind="retrieval", group="title-search", metrics=TITLE_METRICS, similarity="cosine"
)
MATCHED = "_matched"  # what follows the name of a task whose random candidates are cited as often as the relevant ones
SEARCHED = "_search"  # what follows the name of a task that searches the whole corpus
CITATION_CLASSES = {"0": (0, 0), "1-3": (1, 3), "4-10": (4, 10), "over 10": (11, math.inf)}  # times cited
MOST_CITED = "top 1%"  # the class of the most cited papers, at most 1% of those that are searched
OF_KNOWN_AUTHORS = "task {}: relevant papers whose authors are known, and the query's (kept)"
OF_AN_AUTHOR = "task {}: relevant papers by an author of the query (kept)"  # both only with authors' names
SEARCH_METRICS = ("recall_cap_20", "recall_cap_50", "recall_cap_100", "ndcg_cut_10", "map", "recip_rank")


def _tasks(suffix: str, **shared: Any) -> list[Task]:
    return [Task(name=f"{name}{suffix}", **shared) for name in ("cite", "cocite")]


class Holdout(Benchmark, HoldoutSettings):
    """Papers that held-out papers of this run's corpus cite, and papers that they are co-cited with."""

    kind: Literal["holdout"]
    made_by = HoldoutSettings
    declared = (
        *_tasks("", kind="ranking", group="holdout", metrics=("map", "ndcg")),
        *_tasks(MATCHED, kind="ranking", group="holdout-matched", metrics=("map", "ndcg")),
        *_tasks(SEARCHED, kind="corpus", group="holdout-search", metrics=SEARCH_METRICS),
        TITLE_SEARCH,
    )

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A sentence if the run has no cut for a split by time, or its citations lack the marks for grades."""
        yield from super().check_environment(key, config)
        if self.by_time and config.queries.holdout_from is None:
            yield f"{key}.by_time needs the first year that is held out; set queries.holdout_from."
        if self.graded is not None:
            if not self.graded.in_sql():
                yield f"{key}.graded gives all citations one grade; set one of its keys, or leave it out."
            yield from self.graded.lacking(f"{key}.graded", config)

    @property
    def scored_tasks(self) -> Sequence[Task]:
        """Its tasks; searches only if configured."""
        asked = {"corpus": self.search, "retrieval": self.title_search is not None}
        return [task for task in self.declared if asked.get(task.kind, True)]
