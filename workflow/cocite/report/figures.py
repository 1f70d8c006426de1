"""The report's figures of models and graphs: validation curves, link prediction by epoch, pairs of papers by count."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import MaxNLocator, NullFormatter, StrMethodFormatter

from cocite.report.canvas import Entry, canvas, look, styles
from cocite.report.results import GRAPH_METRICS

PANEL = (2.5, 1.9)
"""Width and height of the axes, inches."""
FAINT = 0.15
"""Opacity of the band between the lowest and the highest seed."""
RAW = 0.5
"""Opacity of raw link prediction, beside that which is filtered."""


def draw_validation_curves(curves: Mapping[str, pl.DataFrame], losses: Mapping[str, str], output: Path) -> None:
    """Triplet accuracy of all models and, in a panel for each kind of loss, their loss on the common validation set.

    `curves` and `losses` hold the curves of each model's seeds and the name of its loss. A line is the mean over the
    seeds; around it is a band from the lowest to the highest.
    """
    kinds, entries = list(dict.fromkeys(losses.values())), styles(list(curves))
    with canvas(output, panels=1 + len(kinds), size=PANEL, entries=entries) as axes:
        panels = {kind: (number, axis) for number, (kind, axis) in enumerate(zip(kinds, axes[1:], strict=False), 1)}
        axes[0].set(xlabel="steps", title="share of triplets in order")
        for kind, (_, axis) in panels.items():
            axis.set(xlabel="steps", title=f"{kind} loss")
        for name, curve in curves.items():
            _curve(axes[0], 0, curve, "validation_accuracy", entries, name)
            number, axis = panels[losses[name]]
            _curve(axis, number, curve, "validation_loss", entries, name)


def draw_link_prediction(scores: Mapping[str, pl.DataFrame], output: Path) -> None:
    """Every metric of each graph embedding on its held-out edges, by epoch: filtered as full lines, raw faint."""
    entries = styles(list(scores))
    with canvas(output, panels=len(GRAPH_METRICS), size=PANEL, entries=entries) as axes:
        for number, (axis, (metric, label)) in enumerate(zip(axes, GRAPH_METRICS.items(), strict=True)):
            for name, table in scores.items():
                for filtered, opacity, panel in ((True, 1.0, f"{number}"), (False, RAW, f"{number}-raw")):
                    of_metric = table.filter(metric=metric, filtered=filtered).sort("epoch")
                    drawn = look(entries, name, panel)
                    axis.plot(of_metric["epoch"], of_metric["value"], alpha=opacity, **drawn)
            axis.set(xlabel="epoch", title=label)
            axis.xaxis.set_major_locator(MaxNLocator(integer=True))


def draw_pair_counts(counts: pl.DataFrame, tables: Mapping[str, str], output: Path) -> None:
    """How many pairs are cited together, or cite the same papers, at least so often, for each graph made of pairs.

    `counts` is the table `pair_counts`, and `tables` names what the pairs of each graph are.
    """
    names = {graph: f"{graph} ({tables[graph]})" for graph in sorted(tables)}
    entries = {name: replace(entry, marker="") for name, entry in styles(list(names.values())).items()}
    with canvas(output, panels=1, size=PANEL, entries=entries) as [axis]:
        for graph, name in names.items():
            of_graph = counts.filter(graph=graph).sort("count")
            at_least = of_graph["pairs"].cum_sum(reverse=True)
            if len(of_graph):  # A logarithmic axis cannot be laid out for a line without points.
                axis.plot(of_graph["count"], at_least, **look(entries, name, "0"))
                axis.set(xscale="log", yscale="log")
                _write_out(axis.xaxis, axis.yaxis)
        axis.set(xlabel="times that a pair occurs, at least", title="pairs")


def _curve(axis: Axes, panel: int, curve: pl.DataFrame, metric: str, entries: Mapping[str, Entry], name: str) -> None:
    """Mean of a metric over the seeds by step, with a band from the lowest to the highest where there are several."""
    value = pl.col("value")
    of_metric = (
        curve.filter(pl.col("metric") == metric)
        .group_by("step")
        .agg(value.mean().alias("mean"), value.min().alias("low"), value.max().alias("high"))
        .sort("step")
    )
    axis.plot(of_metric["step"], of_metric["mean"], **look(entries, name, f"{panel}"))
    if curve["seed"].n_unique() > 1:
        band = look(entries, name, f"{panel}-band")
        axis.fill_between(
            of_metric["step"],
            of_metric["low"],
            of_metric["high"],
            color=band["color"],
            alpha=FAINT,
            linewidth=0,
            gid=band["gid"],
        )


def _write_out(*axes: Axis) -> None:
    """Write powers of ten out: as powers, they take matplotlib a second to lay out."""
    for axis in axes:
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axis.set_minor_formatter(NullFormatter())
