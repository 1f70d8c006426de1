"""The benchmark `aspects`."""

from typing import Literal

from cocite.config.benchmark import AspectSettings, Benchmark
from cocite.config.graphs import INTENTS
from cocite.config.tasks import Task


class Aspects(Benchmark, AspectSettings):
    """What held-out papers of our own corpus are linked with by each aspect of citations."""

    kind: Literal["aspects"]
    by_aspect = True
    declared = tuple(Task(name=name, kind="ranking", group="aspects", metrics=("map", "ndcg")) for name in INTENTS)
    made_by = AspectSettings
