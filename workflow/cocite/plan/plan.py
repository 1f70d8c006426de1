"""The plan of a run: what follows from its configuration for all stages.

The Snakefile makes one `Plan`. Each stage has a part of it, whose methods are input functions, parameters and resources
of the stage's rules; a rule keeps its literal paths and asks for the rest.
"""

import json
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from cocite.config.configuration import Configuration
from cocite.config.entries import as_json
from cocite.config.settings import settings_of
from cocite.plan.baselines import BaselinePlan
from cocite.plan.corpus import CorpusPlan
from cocite.plan.encoder import EncoderPlan
from cocite.plan.evaluation import EvaluationPlan
from cocite.plan.files import expand
from cocite.plan.graph import GraphPlan
from cocite.plan.neighbours import NeighbourPlan
from cocite.plan.report import ReportPlan
from cocite.plan.triplets import TripletPlan


class Plan:
    """What follows from a configuration."""

    def __init__(self, config: Configuration, *, with_gpu: bool = False) -> None:
        """`with_gpu` says whether jobs that can use a GPU have one."""
        self.config, self.with_gpu = config, with_gpu
        self.results = str(config.folders["results"])
        self.bucket_numbers = range(config.corpus.buckets)
        self.corpus = CorpusPlan(self)
        self.graph = GraphPlan(self)
        self.neighbours = NeighbourPlan(self)
        self.triplets = TripletPlan(self)
        self.encoder = EncoderPlan(self)
        self.baselines = BaselinePlan(self)
        self.evaluation = EvaluationPlan(self)
        self.report = ReportPlan(self)

    @cached_property
    def resolved(self) -> dict[str, Any]:
        """The configuration as plain values."""
        values: dict[str, Any] = as_json(self.config)
        return values

    def buckets(self, path: str, **wildcards: Any) -> list[str]:
        """A file for each bucket of a table."""
        return expand(path, bucket=self.bucket_numbers, **wildcards)

    def state(self, folder: str) -> str:
        """A folder that Snakemake does not know and never deletes, where a killed step keeps what it resumes from."""
        return f"{self.results}/.state/{folder}"

    def named(self, section: str, **having: Any) -> str:
        """Regular expression that matches the names of the entries of a section that have these values."""
        entries = getattr(self.config, section).items()
        return either(name for name, entry in entries if all(getattr(entry, k) == v for k, v in having.items()))

    def value(self, section: str, wildcard: str, field: str) -> Callable[[Any], Any]:
        """A field, or what follows from the fields, of the entry that a wildcard names."""
        return lambda wildcards: getattr(getattr(self.config, section)[wildcards[wildcard]], field)

    def settings(self, section: str, wildcard: str, kind: Any) -> Callable[[Any], str]:
        """What the entry that a wildcard names holds of the settings of a step, as JSON for `--settings`. A step is
        given the keys that it uses and no others: an edit of another key does not make its result again."""

        def as_text(wildcards: Any) -> str:
            entry = getattr(self.config, section)[wildcards[wildcard]]
            return json.dumps(settings_of(entry, kind), sort_keys=True)

        return as_text


def either(names: Iterable[str]) -> str:
    """Regular expression that matches one of these names; without names it matches nothing."""
    return "|".join(names) or "(?!)"
