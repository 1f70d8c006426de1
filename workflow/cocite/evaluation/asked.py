"""What several steps of the evaluation are asked for: their options, and the tasks and tables that these name."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from cocite.config.benchmarks import declared, names
from cocite.config.runs import scored_runs
from cocite.config.tasks import Task

Tables = Annotated[Path, typer.Option(help="Folder of a benchmark's tables, whose name is the benchmark's.")]
TaskNames = Annotated[
    str, typer.Option(help="Names of tasks with commas between them, each of which must be there; empty for all.")
]
KindName = Annotated[str, typer.Option(help="Kind of the benchmark: a module of cocite.config.benchmarks.")]
Metrics = Annotated[
    str,
    typer.Option(help="Metrics of the tasks instead of the declared ones, with commas between them; empty for those."),
]
Suites = Annotated[str, typer.Option(help='JSON object: the names of the tasks of each suite, as {"small": ["fos"]}.')]
RunNames = Annotated[
    str, typer.Option(help="Models and baselines with a seed, such as cocite-1, with commas between them.")
]
RankAlone = Annotated[
    str,
    typer.Option(help="Those of the runs that only rank, and have scores on ranking tasks alone; commas between them."),
]


def tasks_named(tasks: str, metrics: str = "") -> list[Task]:
    """The tasks of these names, with the declared metrics or these."""
    found = [declared(name) for name in names(tasks)]
    return [replace(task, metrics=tuple(names(metrics))) for task in found] if metrics else found


def tasks_of_suites(suites: str, metrics: str = "") -> dict[str, list[Task]]:
    """The tasks of each suite."""
    return {suite: tasks_named(",".join(tasks), metrics) for suite, tasks in json.loads(suites).items()}


def files_of_runs(folder: Path, suites: Mapping[str, Sequence[Task]], runs: str, rank_alone: str) -> list[Path]:
    """The table of each run on each suite that it can be scored on."""
    return [folder / suite / f"{run}.parquet" for suite, run in scored_runs(suites, names(runs), names(rank_alone))]
