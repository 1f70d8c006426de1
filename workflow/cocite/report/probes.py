"""The probes of a run as a table and a figure: which triplets and which losses are worth a training."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl
from matplotlib.axes import Axes

from cocite.report.canvas import COLOURS, SMALL, Entry, canvas
from cocite.report.labels import mean_cell, rows_or

ALL = "all"
UNTRAINED = "untrained"
WIDTH, ROW = 6.4, 0.21
"""Width of a panel and height of a row, inches."""
NAMES = 0.42
"""Share of the width that the names of the sets take."""
SELECTION = Entry("on the selection queries", COLOURS[-1], marker="s")

Scores = Mapping[str, pl.DataFrame]


def probes_table(scores: Scores) -> pl.DataFrame:
    """A row for each set and training, the best first by the selection queries, with the values of the test queries."""
    rows = []
    for probe, table in scores.items():
        for point in _points(table).iter_rows(named=True):
            of_point = table.filter(*(pl.col(name) == point[name] for name in ("triplets", "loss", "batch_size")))
            test = of_point.filter(pl.col("part") == "test", pl.col("task") != ALL).sort("task")
            [selection] = of_point.filter(part="selection", task=ALL)["value"]
            [mean] = of_point.filter(part="test", task=ALL).to_dicts()
            difference = "{difference:+.1f} ({difference_low:+.1f} to {difference_high:+.1f})".format_map(mean)
            is_trained = point["triplets"] != UNTRAINED
            row = {
                **({"probe": probe} if len(scores) > 1 else {}),
                "triplets": point["triplets"],
                "loss": point["loss"] if is_trained else "",
                "batch size": str(point["batch_size"]) if is_trained else "",
                "selection": f"{selection:.1f}",
                **{of["task"]: mean_cell(of["value"], of["deviation"]) for of in test.iter_rows(named=True)},
                "from the best": "" if mean["rank"] == 1 else difference,
            }
            rows.append(row)
    return rows_or(rows, "triplets", "selection")


def draw_probes(scores: Scores, output: Path) -> None:
    """A panel for each probe, a row for each set and training: the mean over the tasks with its interval over queries.
    The best are on top by the selection queries; a dotted line marks the vectors before any training."""
    points = [_points(table) for table in scores.values()]
    losses = dict.fromkeys(loss for each in points for loss in each["loss"] if loss != UNTRAINED)
    entries = {loss: Entry(loss, colour, marker="o") for loss, colour in zip(losses, COLOURS * 9, strict=False)}
    rows = max(map(len, points), default=1)
    shown = {**entries, SELECTION.name: SELECTION}
    with canvas(output, panels=len(scores), size=(WIDTH, ROW * (rows + 1)), entries=shown) as axes:
        for axis, (probe, table) in zip(axes, scores.items(), strict=True):
            axis.set(title=probe if len(scores) > 1 else "", xlabel="MAP, mean over the tasks")
            axis.set(ylim=(rows, -1))
            _draw(axis, table, entries)


def _points(table: pl.DataFrame) -> pl.DataFrame:
    return table.select("triplets", "loss", "batch_size", "rank").unique().sort("rank")


def _draw(axis: Axes, table: pl.DataFrame, entries: Mapping[str, Entry]) -> None:
    test, selection = (table.filter(task=ALL, part=part).sort("rank") for part in ("test", "selection"))
    before = float(test.filter(triplets=UNTRAINED)["value"][0])
    high = float(max([*test["high"], *selection["value"]]))
    # To the left of the vectors before training, a panel reaches twice as far as to their right.
    low = max(float(min([*test["low"], *selection["value"]])), before - 2 * (high - before))
    span = (high - low) / (1 - NAMES) or 1.0
    left = high - span
    axis.set(xlim=(left - 0.02 * span, high + 0.02 * span), yticks=[])
    axis.set_xticks([tick for tick in axis.get_xticks() if low <= tick <= high])
    axis.axvline(before, color=SELECTION.colour, linestyle=":", linewidth=1)
    has_sizes = test.filter(pl.col("triplets") != UNTRAINED)["batch_size"].n_unique() > 1
    for row, (point, chose) in enumerate(zip(test.to_dicts(), selection["value"], strict=True)):
        colour = entries.get(point["loss"], SELECTION).colour
        if point["value"] < low:  # far behind: an arrow at the edge, so that the others can be told apart
            axis.plot(low, row, "<", color=colour, markersize=5)
        else:
            axis.plot([max(low, point["low"]), point["high"]], [row, row], color=colour, linewidth=1.5)
            axis.plot(point["value"], row, "o", color=colour, markersize=5)
        if chose >= low:
            axis.plot(chose, row, SELECTION.marker, color=SELECTION.colour, markersize=3.5, markerfacecolor="none")
        name = point["triplets"] + (f", {point['batch_size']}" if has_sizes and point["batch_size"] else "")
        axis.text(left, row, name, ha="left", va="center", fontsize=SMALL)
