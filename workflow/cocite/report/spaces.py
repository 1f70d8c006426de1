"""The heat map of spaces by aspects: which space of a model finds what papers are linked with by which aspect."""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.patches import Rectangle

from cocite.config.benchmarks import tasks_of, tells_spaces_apart
from cocite.config.runs import names_in_spaces
from cocite.config.tasks import Task
from cocite.core.options import Output, Results
from cocite.report.canvas import COLOURS, canvas
from cocite.report.labels import over_seeds
from cocite.report.page_tables import number_in
from cocite.report.results import Provenance, configuration_in, read_scored

WIDTH, HEIGHT = 0.82, 0.42
"""Width and height of a cell, inches."""
SPACES, ASPECTS = 1.1, 0.6
"""Room for the names of the spaces and of the aspects, in widths and heights of a cell."""
GAP = 0.02
"""From the ground of a cell to its edge."""
SMALL = 8.5
"""Size of letters, points."""
LETTERS = "black"
SCALE = LinearSegmentedColormap.from_list("scale", ["#f1f6fa", COLOURS[5]])
"""From low to high; black letters have a contrast of 9 to 1 or more on all of it."""

Cells = Mapping[tuple[str, str], str]
"""Mean and deviation, as text, by the name of a model in a space and that of a task."""


def write_figure(*, results: Results, provenance: Provenance, output: Output) -> None:
    """Draw what each space of a model scores on each aspect, as a heat map."""
    configuration = configuration_in(provenance)
    asked = {name: entry for name, entry in configuration["benchmarks"].items() if tells_spaces_apart(entry)}
    draw_spaces(read_scored(results, {**configuration, "benchmarks": asked}, "scores"), configuration, output)


def draw_spaces(scores: pl.DataFrame, configuration: Mapping[str, Any], output: Path) -> None:
    """A panel for each benchmark by aspect and each model with several spaces: a row a space, a column a task.

    A cell has the first metric of the task, as the mean over the training seeds with the deviation where there are
    several. Colours go from the lowest to the highest value of a benchmark.
    """
    models = {name: names_in_spaces(name, entry) for name, entry in configuration["models"].items() if entry["spaces"]}
    benchmarks = {
        name: tasks_of(entry) for name, entry in configuration["benchmarks"].items() if tells_spaces_apart(entry)
    }
    rows, columns = (max(map(len, shown.values()), default=0) for shown in (models, benchmarks))
    size = ((SPACES + columns) * WIDTH, (ASPECTS + rows) * HEIGHT)
    panels = list(product(benchmarks, models))
    with canvas(output, panels=len(panels), size=size, entries={}) as axes:
        for axis, (benchmark, model) in zip(axes, panels, strict=True):
            axis.set(xlim=(-SPACES, columns), ylim=(rows, -ASPECTS))
            axis.set_axis_off()
            axis.set_title(model if len(benchmarks) == 1 else f"{benchmark}: {model}")
            cells = _cells(scores.filter(benchmark=benchmark), models, benchmarks[benchmark])
            _draw(axis, cells, models[model], {_aspect(task): task.name for task in benchmarks[benchmark]})


def _cells(scores: pl.DataFrame, models: Mapping[str, Mapping[str, str]], tasks: Sequence[Task]) -> Cells:
    """All cells of a benchmark."""
    named = [name for spaces in models.values() for name in spaces.values()]
    metrics = pl.DataFrame({"task": [task.name for task in tasks], "metric": [task.main_metric for task in tasks]})
    shown = scores.filter(pl.col("model").is_in(named)).join(metrics, on=["task", "metric"])
    return {(model, task): cell for model, task, cell in over_seeds(shown, ["model", "task"]).iter_rows()}


def _aspect(task: Task) -> str:
    """What a column is called: the name of a task may begin with that of its benchmark."""
    return task.name.removeprefix(f"{task.group}_")


def _draw(axis: Axes, cells: Cells, spaces: Mapping[str, str], aspects: Mapping[str, str]) -> None:
    """The names of rows and columns, and the cells of one model."""
    values = [value for cell in cells.values() if (value := number_in(cell)) is not None]
    norm = Normalize(min(values, default=0), max(values, default=1))
    for column, aspect in enumerate(aspects):
        axis.text(column + 0.5, -0.15, aspect, ha="center", va="bottom", fontsize=SMALL)
    for row, (space, model) in enumerate(spaces.items()):
        axis.text(-0.1, row + 0.5, space, ha="right", va="center", fontsize=SMALL)
        for column, task in enumerate(aspects.values()):
            _draw_cell(axis, row, column, cells.get((model, task)), norm)


def _draw_cell(axis: Axes, row: int, column: int, cell: str | None, norm: Normalize) -> None:
    """A value on its colour, the deviation below it; a dash on the page's own ground where there is no score."""
    value = number_in(cell)
    if cell is None or value is None:
        axis.text(column + 0.5, row + 0.5, "–", ha="center", va="center")
        return
    side = 1 - 2 * GAP
    axis.add_patch(Rectangle((column + GAP, row + GAP), side, side, facecolor=SCALE(norm(value)), linewidth=0))
    mean, _, deviation = cell.partition(" ± ")
    middle: dict[str, Any] = {"color": LETTERS, "ha": "center", "va": "center"}
    axis.text(column + 0.5, row + (0.35 if deviation else 0.5), mean, **middle)
    if deviation:
        axis.text(column + 0.5, row + 0.73, f"± {deviation}", fontsize=SMALL, **middle)
