"""Each model as a point: its score on short queries against its score on documents.

Labels are next to the points, and cover neither each other nor a point. Their size is estimated: browsers have other
fonts than matplotlib.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from matplotlib.axes import Axes

from cocite.config.benchmarks import sides_of
from cocite.config.configuration import Configuration
from cocite.config.runs import baselines_on, beside_models, model_of, untrained
from cocite.config.sampler import oracle_models
from cocite.report.canvas import COLOURS, SERIES, SMALL, Entry, Titles, canvas
from cocite.report.labels import mean_cell, metric_in_words

SIZE = (5.2, 3.6)
"""Width and height of the axes, inches."""
LETTER, LINE = 0.073, 0.15
"""Width and height of a letter of a label, inches, rather too large than too small."""
POINT = 0.06
"""From the middle of a point to its edge, and half the width of an error bar with what surrounds it, inches."""
DISTANCES = (0.04, 0.16, 0.3, 0.45, 0.65, 0.9)
"""From a point to its label, inches; from the second on, a line joins them."""
SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))
"""The places of a label, in order of preference: right of the point first."""
GROUPS = {
    "trained": Entry("trained", COLOURS[0], marker="o"),
    "untrained": Entry("before fine-tuning", COLOURS[1], marker="s"),
    "oracle": Entry("oracle", COLOURS[3], marker="^"),
    "baseline": Entry("baseline", COLOURS[6], marker="s"),
}

Side = Mapping[tuple[str, str], str]
"""The metric that counts of each task of a side, by benchmark and task."""
Limits = tuple[tuple[float, float], tuple[float, float]]


class Box(NamedTuple):
    """A rectangle, inches from the lower left corner of the axes."""

    left: float
    bottom: float
    right: float
    top: float

    def meets(self, other: "Box") -> bool:
        """Whether the two have a place in common."""
        beside = self.right <= other.left or other.right <= self.left
        return not (beside or self.top <= other.bottom or other.top <= self.bottom)


class Point(NamedTuple):
    """The scores of a model on either side: mean and deviation over its training seeds; none of one seed."""

    model: str
    short: float
    documents: float
    short_deviation: float | None
    documents_deviation: float | None


class Label(NamedTuple):
    """The place of a label: its box, and the side of its point."""

    box: Box
    side: tuple[int, int]
    is_far: bool


def draw_trade(scores: pl.DataFrame, configuration: Configuration, output: Path) -> None:
    """Draw the models, the encoders before fine-tuning and the baselines but for chance, which is far away from all. A
    value is the mean over the tasks of a side on which all models have scores, of the first metric of each."""
    sides = sides_of(configuration)
    points = [*points_of(scores, sides, configuration)]
    in_groups = {group: [point for point in points if _group(point.model, configuration) == group] for group in GROUPS}
    entries = {GROUPS[group].name: GROUPS[group] for group, members in in_groups.items() if members}
    titles: Titles = {}
    with canvas(output, panels=1, size=SIZE, entries=entries, titles=titles) as [axis]:
        metrics = [" or ".join(dict.fromkeys(map(metric_in_words, side.values()))) for side in sides]
        tasks = ["1 task" if len(side) == 1 else f"mean over {len(side)} tasks" for side in sides]
        axis.set(xlabel=f"short queries: {metrics[0]}, {tasks[0]}")
        axis.set(title=f"documents as queries: {metrics[1]}, {tasks[1]}")
        of_short = _limits([(point.short, point.short_deviation) for point in points])
        limits = of_short, _limits([(point.documents, point.documents_deviation) for point in points])
        axis.set(xlim=limits[0], ylim=limits[1])
        for place, (entry, members) in enumerate(zip(entries.values(), filter(None, in_groups.values()), strict=True)):
            bar: dict[str, Any] = {"fmt": "none", "ecolor": entry.colour, "elinewidth": 1, "alpha": 0.6}
            for _, short, documents, across, up in members:
                if across is not None and up is not None:
                    axis.errorbar(short, documents, xerr=across, yerr=up, **bar)
            x, y = [point.short for point in members], [point.documents for point in members]
            drawn = axis.scatter(x, y, s=26, color=entry.colour, marker=entry.marker, linewidths=0, zorder=3)
            identity = f"{SERIES}{place}-trade"
            drawn.set_gid(identity)
            titles[identity] = [
                f"{model}: short queries {mean_cell(short, across)}, documents {mean_cell(documents, up)}"
                for model, short, documents, across, up in members
            ]
        for point, label in zip(points, placed(points, limits), strict=True):
            if label is not None:
                _write(axis, point, label, limits)


def points_of(scores: pl.DataFrame, sides: Sequence[Side], configuration: Configuration) -> Iterator[Point]:
    """The point of each model that is shown, in their order, over the tasks that all of them have scores on."""
    # A baseline that is not scored on all benchmarks is not shown: the others would lose tasks by it.
    everywhere = [baselines_on(configuration, benchmark) for side in sides for benchmark, _ in side]
    baselines = [name for name in beside_models(configuration) if all(name in scored for scored in everywhere)]
    shown = [*configuration.models, *untrained(configuration), *baselines]
    found = scores.filter(pl.col("model").is_in(shown))
    runs = [_runs(found, side) for side in sides]
    for model in shown:
        short, documents = (of_side.filter(model=model)["value"] for of_side in runs)
        if len(short) and len(documents):
            yield Point(model, short.mean(), documents.mean(), short.std(), documents.std())  # type: ignore[arg-type]


def _runs(scores: pl.DataFrame, side: Side) -> pl.DataFrame:
    """The mean of each model and seed over the tasks of a side that all of them have."""
    keys = ["benchmark", "task"]
    asked = pl.DataFrame([(*task, metric) for task, metric in side.items()], schema=[*keys, "metric"], orient="row")
    of_side = scores.join(asked, on=[*keys, "metric"]).group_by(*keys, "model", "seed").agg(pl.col("value").mean())
    everyone = of_side.select("model", "seed").unique().height
    whole = of_side.filter(pl.len().over(keys) == everyone)
    return whole.group_by("model", "seed").agg(pl.col("value").mean()).sort("model", "seed")


def _group(model: str, configuration: Configuration) -> str:
    if (name := model_of(model)) in configuration.models:
        return "oracle" if name in oracle_models(configuration) else "trained"
    return "baseline" if model in beside_models(configuration) else "untrained"


def _limits(values: Sequence[tuple[float, float | None]]) -> tuple[float, float]:
    """Limits of an axis that has room for all points, their error bars and some labels."""
    ends = [mean + sign * (deviation or 0) for mean, deviation in values for sign in (-1, 1)] or [0.0]
    span = max(max(ends) - min(ends), 2.0)  # so that a small difference does not look large
    middle, half = (min(ends) + max(ends)) / 2, 0.68 * span
    return middle - half, middle + half


def _write(axis: Axes, point: Point, label: Label, limits: Limits) -> None:
    left, bottom, right, top = label.box
    share: dict[str, Any] = {"transform": axis.transAxes}
    x, aligned = {1: (left, "left"), 0: ((left + right) / 2, "center"), -1: (right, "right")}[label.side[0]]
    place = x / SIZE[0], (bottom + top) / 2 / SIZE[1]
    axis.text(*place, point.model, fontsize=SMALL, ha=aligned, va="center_baseline", **share)
    if label.is_far:
        middle = _in_inches(point, limits)
        near = x, min(max(middle[1], bottom), top)
        xs, ys = ([one / size, other / size] for one, other, size in zip(middle, near, SIZE, strict=True))
        axis.plot(xs, ys, color=COLOURS[-1], linewidth=0.6, zorder=1, **share)


def placed(points: Sequence[Point], limits: Limits) -> list[Label | None]:
    """The place of each label, by the limits of either axis; None if there is no room for it."""
    covered = [_covered(point, limits) for point in points]
    taken = [box for boxes in covered for box in boxes]
    labels: list[Label | None] = []
    for point, (wide, high) in zip(points, covered, strict=True):
        labels.append(None)
        for distance, side in product(DISTANCES, SIDES):
            box = _beside(len(point.model) * LETTER, wide, high, side, distance)
            is_within = min(box) >= 0 and box.right <= SIZE[0] and box.top <= SIZE[1]
            if is_within and not any(box.meets(other) for other in taken):
                labels[-1] = Label(box, side, distance > DISTANCES[0])
                taken.append(box)
                break
    return labels


def _beside(width: float, wide: Box, high: Box, side: tuple[int, int], distance: float) -> Box:
    """The box of a label on one side of a point, at a distance from it, and from its error bar if straight away."""
    right, up = side
    around = wide if up == 0 else high  # Beyond the end of the bar, to avoid overlap.
    middle, centre = (wide.left + wide.right) / 2, (wide.bottom + wide.top) / 2
    east, west = (around.right, around.left) if up == 0 else (middle, middle)
    north, south = (around.top, around.bottom) if right == 0 else (centre, centre)
    left = {0: middle - width / 2, 1: east + distance, -1: west - distance - width}[right]
    bottom = {0: centre - LINE / 2, 1: north + distance, -1: south - distance - LINE}[up]
    return Box(left, bottom, left + width, bottom + LINE)


def _covered(point: Point, limits: Limits) -> tuple[Box, Box]:
    """The boxes of a point with its error bar along either axis."""
    x, y = _in_inches(point, limits)
    bars = zip((point.short_deviation, point.documents_deviation), SIZE, limits, strict=True)
    wide, high = (max(POINT, (bar or 0) * size / (last - first)) for bar, size, (first, last) in bars)
    return Box(x - wide, y - POINT, x + wide, y + POINT), Box(x - POINT, y - high, x + POINT, y + high)


def _in_inches(point: Point, limits: Limits) -> tuple[float, float]:
    places = zip((point.short, point.documents), SIZE, limits, strict=True)
    x, y = ((value - first) / (last - first) * size for value, size, (first, last) in places)
    return x, y
