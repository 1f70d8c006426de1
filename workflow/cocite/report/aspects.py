"""The figures about aspects: shares of citations by intent and of queries by aspect, and what each space finds."""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.patches import Rectangle

from cocite.config.configuration import Configuration
from cocite.config.runs import names_in_spaces
from cocite.config.tasks import Task
from cocite.report.canvas import COLOURS, SMALL, canvas
from cocite.report.labels import over_seeds, percent
from cocite.report.page_tables import number_in

ROW, LENGTH = 0.24, 1.1
"""Height of a row and length of the longest bar, inches."""
LABELS, NUMBERS = 1.0, 0.6
"""Room for the names before the bars, and for the shares behind them, inches."""
WIDTH, HEIGHT = 0.82, 0.42
"""Width and height of a cell of the heat map, inches."""
SPACES, ASPECTS = 1.1, 0.6
"""Room for the names of the spaces and of the aspects, in widths and heights of a cell."""
GAP = 0.02
"""From the ground of a cell to its edge."""
SCALE = LinearSegmentedColormap.from_list("scale", ["#f1f6fa", COLOURS[5]])
"""From low to high; black letters have a contrast of 9 to 1 or more on all of it."""
MIDDLE: Mapping[str, Any] = {"color": "black", "ha": "center", "va": "center"}


def draw_aspects(intents: Mapping[str, pl.DataFrame], checks: Mapping[str, pl.DataFrame], output: Path) -> None:
    """A panel for each graph, with a bar per intent, and for each set of examples, with a bar per aspect.

    `intents` has the table `intent_counts` of each graph, `checks` the table `triplet_checks` of each set.
    """
    panels = {}
    for graph, counts in intents.items():
        citations = max(counts["citations"].sum(), 1)
        shares = {intent: number / citations for intent, number in counts.select("intent", "citations").iter_rows()}
        panels[f"{graph}: citations"] = shares
    for name, table in checks.items():
        served = table.filter(check="served").select("part", "found", "among")
        panels[f"{name}: queries"] = {aspect: found / max(among, 1) for aspect, found, among in served.iter_rows()}
    rows = max(map(len, panels.values()), default=0)
    with canvas(output, panels=len(panels), size=(LABELS + LENGTH + NUMBERS, rows * ROW), entries={}) as axes:
        for axis, (title, shares) in zip(axes, panels.items(), strict=True):
            axis.set(xlim=(-LABELS / LENGTH, 1 + NUMBERS / LENGTH), ylim=(rows - 0.5, -0.5))
            axis.set_axis_off()
            axis.set_title(title)
            axis.barh(range(len(shares)), list(shares.values()), height=0.7, color=COLOURS[0])
            for row, (name, share) in enumerate(shares.items()):
                axis.text(-0.05, row, name, ha="right", va="center", fontsize=SMALL)
                axis.text(share + 0.04, row, percent(share), va="center", fontsize=SMALL)


def draw_spaces(scores: pl.DataFrame, configuration: Configuration, output: Path) -> None:
    """A heat map for each benchmark by aspect and each model with several spaces: a row per space, a column per task.

    A cell has the main metric of the task, mean and deviation over the training seeds. Colours go from the lowest to
    the highest value of a benchmark.
    """
    models = {name: names_in_spaces(name, entry) for name, entry in configuration.models.items() if entry.spaces}
    benchmarks = {
        name: entry.scored_tasks for name, entry in configuration.benchmarks.items() if entry.tells_spaces_apart
    }
    rows, columns = (max(map(len, shown.values()), default=0) for shown in (models, benchmarks))
    size = ((SPACES + columns) * WIDTH, (ASPECTS + rows) * HEIGHT)
    panels = list(product(benchmarks, models))
    with canvas(output, panels=len(panels), size=size, entries={}) as axes:
        for axis, (benchmark, model) in zip(axes, panels, strict=True):
            axis.set(xlim=(-SPACES, columns), ylim=(rows, -ASPECTS))
            axis.set_axis_off()
            axis.set_title(model if len(benchmarks) == 1 else f"{benchmark}: {model}")
            tasks = benchmarks[benchmark]
            metrics = pl.DataFrame([(task.name, task.main_metric) for task in tasks], ["task", "metric"], orient="row")
            named = [name for spaces in models.values() for name in spaces.values()]
            found = scores.filter(pl.col("model").is_in(named), benchmark=benchmark).join(metrics, on=metrics.columns)
            cells = {(name, task): cell for name, task, cell in over_seeds(found, ["model", "task"]).iter_rows()}
            _draw_cells(axis, cells, models[model], tasks)


def _draw_cells(
    axis: Axes, cells: Mapping[tuple[str, str], str], spaces: Mapping[str, str], tasks: Sequence[Task]
) -> None:
    """The names of rows and columns, and of one model each value on its colour with the deviation below it."""
    values = [value for cell in cells.values() if (value := number_in(cell)) is not None]
    norm = Normalize(min(values, default=0), max(values, default=1))
    for column, task in enumerate(tasks):  # the name of a task may begin with that of its benchmark
        aspect = task.name.removeprefix(f"{task.group}_")
        axis.text(column + 0.5, -0.15, aspect, ha="center", va="bottom", fontsize=SMALL)
    for row, (space, model) in enumerate(spaces.items()):
        axis.text(-0.1, row + 0.5, space, ha="right", va="center", fontsize=SMALL)
        for column, task in enumerate(tasks):
            cell = cells.get((model, task.name), "–")
            value = number_in(cell)
            if value is None:  # on the page's own ground
                axis.text(column + 0.5, row + 0.5, cell, ha="center", va="center")
                continue
            side = 1 - 2 * GAP
            axis.add_patch(Rectangle((column + GAP, row + GAP), side, side, facecolor=SCALE(norm(value)), linewidth=0))
            mean, _, deviation = cell.partition(" ± ")
            axis.text(column + 0.5, row + (0.35 if deviation else 0.5), mean, **MIDDLE)
            if deviation:
                axis.text(column + 0.5, row + 0.73, f"± {deviation}", fontsize=SMALL, **MIDDLE)
