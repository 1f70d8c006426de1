"""The benchmark `screening`: which papers did systematic reviews include, learned while they are read?"""

import glob
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from cocite.config.benchmark import Benchmark
from cocite.config.entries import Entry, GivenPath, SomeNames, Text, Whole, inconsistent
from cocite.config.tasks import Task

CITATIONS = "_citations"  # what follows the name of the task that knows the citations among the papers of a review
FIRST_TENTH, SAVED, FOUND_EARLY = METRICS = ("recall_10%", "wss_95", "found_early")
"""Recall after a tenth of the papers, work saved at 95% recall, and 100 minus the mean time to discovery in %."""


class LabelColumns(Entry):
    """The columns of a table of labels."""

    paper: Text
    """Corpus id of a paper, also written as a work of OpenAlex, or its DOI."""
    included: Text
    """Whether the review included the paper: 1 or 0, true or false, yes or no."""
    review: Text | None = None
    """Name of the review. Left out, each file is a review and has its name."""


class ScreeningSettings(Entry):
    """Settings by which reviews are read."""

    labels: GivenPath
    """Table of labels, or a pattern of several, such as reviews/*.csv: CSV or TSV with a line of names, Parquet, or
    JSON Lines; all but Parquet may be gzipped. Environment variables are expanded."""
    columns: LabelColumns
    """The names of its columns."""

    def files(self) -> list[str]:
        """The files, in the order of their paths."""
        return sorted(glob.glob(self.labels, recursive=True))  # noqa: PTH207 (a pattern may be absolute)


class Screening(Benchmark, ScreeningSettings):
    """Screening of systematic reviews, simulated: papers are ranked by what was learned from those screened before."""

    kind: Literal["screening"]
    screens: ClassVar = True
    declared: ClassVar = tuple(
        Task(name=name, kind="screening", group=name.replace("_", "-"), metrics=METRICS)
        for name in ("screening", f"screening{CITATIONS}")
    )
    tasks: SomeNames | None = None
    """The tasks to score: screening, which knows only texts, and screening_citations, which knows the citations among
    the papers of a review as well. Default: both."""
    starts: Annotated[int, Field(ge=1, le=1000)] = 30
    """Number of random starts. A start is one included and one excluded paper that are known from the beginning; its
    number is the evaluation seed of its scores."""

    @model_validator(mode="after")
    def _has_a_seed_for_each_start(self) -> "Screening":
        seeds = tuple(range(1, self.starts + 1))
        if "seeds" in self.model_fields_set and self.seeds != seeds:
            raise inconsistent(".seeds are the numbers of the starts; leave them out, and set starts.")
        return self.model_copy(update={"seeds": seeds})

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """Tasks that there are not, or labels that are not there."""
        known = [task.name for task in self.declared]
        for task in set(self.tasks or ()).difference(known):
            yield f"{key}.tasks names {task!r}; its tasks are {' and '.join(known)}."
        if not self.files():
            yield f"{key}.labels: there is no file {self.labels}."
