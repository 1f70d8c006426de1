"""Options that several commands of this stage have."""

from pathlib import Path
from typing import Annotated, Literal

import typer

Seeds = Annotated[list[int], typer.Argument(help="Evaluation seeds; supervised tasks are scored once with each.")]
Modes = Literal["compat", "correct"]
Mode = Annotated[
    Literal[Modes, "both"],
    typer.Option(help="compat fits as published; correct fits an intercept to standardised inputs; both does both."),
]
LargestMissing = Annotated[
    float, typer.Option(help="Share of a task's documents that may be without a vector; with more there is no score.")
]
Scores = Annotated[Path, typer.Option(help="Table scores, written.")]
Outcomes = Annotated[Path, typer.Option(help="Table outcomes, written.")]
Failures = Annotated[Path, typer.Option(help="Table failures, written: a row where the data make a score impossible.")]
Tasks = Annotated[
    str, typer.Option(help="Names of tasks with commas between them, each of which must be there; empty for all.")
]
TaskNames = Annotated[str, typer.Option(help="Names of the tasks that are scored, with commas between them.")]
Suites = Annotated[
    str,
    typer.Option(help='JSON object: the names of the tasks of each suite, as {"small": ["fos"]}.'),
]
Runs = Annotated[
    str, typer.Option(help="Models and baselines with a seed, such as cocite-1, with commas between them.")
]
Tables = Annotated[Path, typer.Option(help="Folder of a benchmark's tables, whose name is the benchmark's.")]
