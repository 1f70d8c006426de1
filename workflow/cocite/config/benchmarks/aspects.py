"""The benchmark `aspects`."""

from collections.abc import Iterator
from typing import Literal

from cocite.config.aspects import INTENTS
from cocite.config.benchmark import AspectSettings, Benchmark
from cocite.config.entries import Whole
from cocite.config.tasks import Task


class Aspects(Benchmark, AspectSettings):
    """What held-out papers of our own corpus are linked with by each aspect of citations."""

    kind: Literal["aspects"]
    by_aspect = True
    declared = tuple(Task(name=name, kind="ranking", group="aspects", metrics=("map", "ndcg")) for name in INTENTS)
    made_by = AspectSettings

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """No held-out papers."""
        if config.queries.holdout == 0:
            yield f"{key} needs held-out papers; queries.holdout is 0."
