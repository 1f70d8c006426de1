"""All figures of the report but the map: curves of models and graphs, pairs, neighbours and triplets."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import (
    LogLocator,
    MaxNLocator,
    NullFormatter,
    PercentFormatter,
    ScalarFormatter,
    StrMethodFormatter,
)

from cocite.config.probes import named_sets
from cocite.config.walks import rankings
from cocite.core.options import Output, Results
from cocite.report.canvas import Entry, canvas, look, styles
from cocite.report.labels import GRAPH_METRICS, RELATIONS, loss_of
from cocite.report.results import Pairs, Provenance, configuration_in, read, read_curves, read_each

PANEL = (2.5, 1.9)
"""Width and height of the axes, inches."""
FAINT = 0.15
"""Opacity of the band between the lowest and the highest seed."""
RAW = 0.5
"""Opacity of raw link prediction, beside that which is filtered."""


def draw_figures(*, results: Results, provenance: Provenance, pairs: Pairs, output: Output) -> None:
    """Draw all figures but those of maps into a folder."""
    configuration = configuration_in(provenance)
    losses = {name: loss_of(entry) for name, entry in configuration["models"].items()}
    sets = named_sets(configuration)
    draw_pair_counts(read(results, "pair_counts"), json.loads(pairs), output / "pair_counts.svg")
    draw_validation_curves(read_curves(results, configuration), losses, output / "validation_curves.svg")
    graphs = read_each(results, "graph_scores", "embedding", configuration["embeddings"])
    bands = read_each(results, "band_quality", "embedding", rankings(configuration))
    draw_link_prediction(graphs, output / "link_prediction.svg")
    draw_band_quality(bands, output / "band_quality.svg")
    curves, counts = (read_each(results, table, "triplets", sets) for table in ("collisions", "triplets_per_query"))
    draw_triplets(curves, counts, _last_ranks(sets), output / "triplets.svg")


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


def draw_band_quality(bands: Mapping[str, pl.DataFrame], output: Path) -> None:
    """Share of the neighbours that are truly related to the query, by rank; `bands` by name of what ranks."""
    entries = styles(list(bands))
    with canvas(output, panels=len(RELATIONS), size=PANEL, entries=entries) as axes:
        for panel, (axis, (column, label)) in enumerate(zip(axes, RELATIONS.items(), strict=True)):
            for name, table in bands.items():
                axis.plot(table["last_rank"], table[column] / table["papers"], **look(entries, name, f"{panel}"))
            axis.set(title=f"neighbours {label}", ylim=(0, None))
            axis.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            _rank_axis(axis, "rank")


def draw_triplets(
    collisions: Mapping[str, pl.DataFrame],
    per_query: Mapping[str, pl.DataFrame],
    k_negative: Mapping[str, int],
    output: Path,
) -> None:
    """Collisions by the rank of hard negatives, and how many queries have how many triplets, by name of the set.

    As in figure 4 of Ostendorff et al., 2022 ("SciNCL"). A dot marks the last rank of a set's hard negatives, which
    `k_negative` holds where they are taken by rank.
    """
    entries = styles(list(per_query))
    with canvas(output, panels=2, size=PANEL, entries=entries) as axes:
        for name, counts in per_query.items():
            if len(collisions[name]):  # A logarithmic axis cannot be laid out for a line without points.
                _collisions(axes[0], collisions[name], k_negative.get(name), look(entries, name, "0"))
            shares = _shares(counts)
            axes[1].plot(range(len(shares)), shares, **look(entries, name, "1"))
        axes[0].set(title="positive pairs that collide", ylim=(0, None))
        _rank_axis(axes[0], "last rank of the hard negatives, k⁻")
        axes[1].set(xlabel="triplets a query", title="queries", ylim=(0, None))
        axes[1].xaxis.set_major_locator(MaxNLocator(integer=True))
        axes[0].yaxis.set_major_formatter(PercentFormatter(1))
        axes[1].yaxis.set_major_formatter(PercentFormatter(1, decimals=0))


def _last_ranks(sets: Mapping[str, Any]) -> dict[str, int]:
    """The last rank of the hard negatives of each set of triplets that takes them by rank."""
    ranks = {name: entry["k_negative"] for name, entry in sets.items() if "k_negative" in entry}
    return {name: rank[-1] if isinstance(rank, list) else rank for name, rank in ranks.items()}


def _curve(axis: Axes, panel: int, curve: pl.DataFrame, metric: str, entries: Mapping[str, Entry], name: str) -> None:
    """Mean of a metric over the seeds by step, with a band from the lowest to the highest where there are several."""
    value = pl.col("value")
    of_metric = (
        curve.filter(pl.col("metric") == metric)
        .group_by("step")
        .agg(value.mean().alias("mean"), value.min().alias("low"), value.max().alias("high"))
        .sort("step")
    )
    steps, mean, low, high = of_metric
    axis.plot(steps, mean, **look(entries, name, f"{panel}"))
    if curve["seed"].n_unique() > 1:
        band = look(entries, name, f"{panel}-band")
        axis.fill_between(steps, low, high, color=band["color"], alpha=FAINT, linewidth=0, gid=band["gid"])


def _write_out(*axes: Axis) -> None:
    """Write powers of ten out: as powers, they take matplotlib a second to lay out."""
    for axis in axes:
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axis.set_minor_formatter(NullFormatter())


def _shares(counts: pl.DataFrame) -> list[float]:
    """The share of the queries that have 0, 1, 2 … triplets."""
    of_all: dict[int, int] = dict(counts.group_by("count").agg(pl.col("queries").sum()).iter_rows())
    queries = sum(of_all.values())
    return [of_all.get(triplets, 0) / queries for triplets in range(max(of_all) + 1)]


def _collisions(axis: Axes, curve: pl.DataFrame, k_negative: int | None, drawn: Mapping[str, Any]) -> None:
    """Draw the curve of one set, and a dot at its own rank."""
    axis.plot(curve["k_negative"], curve["collisions"] / curve["pairs"], **{**drawn, "marker": ""})
    for own in curve.filter(pl.col("k_negative").eq_missing(k_negative)).iter_rows(named=True):
        dot = {**drawn, "gid": f"{drawn['gid']}-own", "markersize": 5}
        axis.plot(own["k_negative"], own["collisions"] / own["pairs"], clip_on=False, **dot)


def _rank_axis(axis: Axes, label: str) -> None:
    axis.set(xlabel=label, xscale="log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(ScalarFormatter())
    axis.xaxis.set_minor_formatter(NullFormatter())
