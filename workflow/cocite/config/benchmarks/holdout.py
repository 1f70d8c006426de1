"""The benchmark `holdout`."""

from collections.abc import Iterator
from typing import Literal

from cocite.config.benchmark import Benchmark, HoldoutSettings
from cocite.config.entries import Whole
from cocite.config.tasks import Task


class Holdout(Benchmark, HoldoutSettings):
    """What held-out papers of our own corpus cite, and what they are cited with."""

    kind: Literal["holdout"]
    made_by = HoldoutSettings
    declared = (
        Task(name="cite", kind="ranking", group="holdout", metrics=("map", "ndcg")),
        Task(name="cocite", kind="ranking", group="holdout", metrics=("map", "ndcg")),
    )

    def faults(self, key: str, config: Whole) -> Iterator[str]:
        """No held-out papers."""
        if config.queries.holdout == 0:
            yield f"{key} needs held-out papers; queries.holdout is 0."
