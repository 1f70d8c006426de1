"""The baseline `reported`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from cocite.config.baseline import Baseline
from cocite.config.entries import GivenPath, Whole
from cocite.config.tasks import result_files
from cocite.core.errors import InputError


class ReportedScores(Baseline):
    """Scores that others reported, in files of the library mteb; they stand in the report and nothing is computed.

    They count for the tasks that mteb has as well: SciFact, NFCorpus, TRECCOVID, ArguAna and SCIDOCS.
    """

    kind: Literal["reported"]
    path: GivenPath
    """A file of results that mteb wrote, or the folder of one revision of a model. Variables of the environment are
    filled in."""
    is_reported = True

    @property
    def files(self) -> tuple[str, ...]:
        """The file or folder."""
        return (self.path,)

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A folder without results or with those of several models, or a run that has no task of mteb."""
        yield from super().check_environment(key, config)
        try:
            result_files(Path(self.path))
        except InputError as error:
            yield f"{key}.path: {error}"
        if not any(task.mteb for entry in config.benchmarks.values() for task in entry.scored_tasks):
            yield f"{key}: no benchmark has a task of mteb, which kind: beir has with the dataset scifact, for example."
