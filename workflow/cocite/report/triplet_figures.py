"""The report's figures of triplets: what the neighbours hold by rank, collisions by rank, triplets a query."""

from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib as mpl
import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, PercentFormatter, ScalarFormatter

from cocite.report.canvas import canvas

LINE_OF_LEGEND = 0.2
"""Height of a name in the legend, inches."""
RELATIONS = {"cocited": "co-cited with the query", "cited": "citing it or cited by it"}


def draw_band_quality(bands: Mapping[str, pl.DataFrame], output: Path) -> None:
    """Share of the neighbours that are truly related to the query, by their rank; `bands` by name of the embedding."""
    with canvas(output, width=9, height=3, columns=len(RELATIONS)) as (figure, axes):
        for axis, (column, label) in zip(axes, RELATIONS.items(), strict=True):
            for (name, table), style in zip(bands.items(), cycle(mpl.rcParams["axes.prop_cycle"]), strict=False):
                axis.plot(
                    table["last_rank"], table[column] / table["papers"], marker="o", markersize=3, label=name, **style
                )
            axis.set(ylabel=f"neighbours {label}", ylim=(0, None))
            axis.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            _rank_axis(axis, "rank")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper")


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
    height = max(3, LINE_OF_LEGEND * (len(per_query) + 1))
    with canvas(output, width=9, height=height, columns=2) as (figure, axes):
        for (name, counts), style in zip(per_query.items(), cycle(mpl.rcParams["axes.prop_cycle"]), strict=False):
            if len(collisions[name]):  # A logarithmic axis cannot be laid out for a line without points.
                _collisions(axes[0], collisions[name], k_negative.get(name), style)
            shares = _shares(counts)
            axes[1].plot(range(len(shares)), shares, marker="o", markersize=4, label=name, **style)
        axes[0].set(ylabel="positive pairs that collide", ylim=(0, None))
        _rank_axis(axes[0], "last rank of the hard negatives, k⁻")
        axes[1].set(xlabel="triplets a query", ylabel="queries", ylim=(0, None))
        axes[1].xaxis.set_major_locator(MaxNLocator(integer=True))
        axes[0].yaxis.set_major_formatter(PercentFormatter(1))
        axes[1].yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        figure.legend(*axes[1].get_legend_handles_labels(), loc="outside right upper")


def _shares(counts: pl.DataFrame) -> list[float]:
    """The share of the queries that have 0, 1, 2 … triplets."""
    of_all: dict[int, int] = dict(counts.group_by("count").agg(pl.col("queries").sum()).iter_rows())
    queries = sum(of_all.values())
    return [of_all.get(triplets, 0) / queries for triplets in range(max(of_all) + 1)]


def _collisions(axis: Axes, curve: pl.DataFrame, k_negative: int | None, style: Mapping[str, Any]) -> None:
    """Draw the curve of one set."""
    axis.plot(curve["k_negative"], curve["collisions"] / curve["pairs"], **style)
    for own in curve.filter(pl.col("k_negative").eq_missing(k_negative)).iter_rows(named=True):
        axis.plot(own["k_negative"], own["collisions"] / own["pairs"], marker="o", markersize=5, clip_on=False, **style)


def _rank_axis(axis: Axes, label: str) -> None:
    axis.set(xlabel=label, xscale="log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(ScalarFormatter())
    axis.xaxis.set_minor_formatter(NullFormatter())
