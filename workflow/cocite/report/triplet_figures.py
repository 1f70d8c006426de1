"""The report's figures of triplets: what the neighbours hold by rank, collisions by rank, triplets a query."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, PercentFormatter, ScalarFormatter

from cocite.report.canvas import canvas, look, styles
from cocite.report.figures import PANEL
from cocite.report.results import RELATIONS


def draw_band_quality(bands: Mapping[str, pl.DataFrame], output: Path) -> None:
    """Share of the neighbours that are truly related to the query, by their rank; `bands` by name of the embedding."""
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
