"""The figure of aspects: shares of the citations by intent, and of the queries by the aspects that serve them."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from cocite.config.triplets import graphs_of_aspects, sets_by_aspect
from cocite.core.options import Output, Results
from cocite.report.canvas import COLOURS, canvas
from cocite.report.labels import percent
from cocite.report.results import Provenance, configuration_in, read_each

ROW, LENGTH = 0.24, 1.1
"""Height of a row and length of the longest bar, inches."""
LABELS, NUMBERS = 1.0, 0.6
"""Room for the names before the bars, and for the shares behind them, inches."""
SMALL = 8.5
"""Size of letters, points."""


def write_figure(*, results: Results, provenance: Provenance, output: Output) -> None:
    """Draw the intents of citations, and the queries that each aspect serves."""
    configuration = configuration_in(provenance)
    intents = read_each(results, "intent_counts", "graph", graphs_of_aspects(configuration))
    checks = read_each(results, "triplet_checks", "triplets", sets_by_aspect(configuration))
    draw_aspects(intents, checks, output)


def draw_aspects(intents: Mapping[str, pl.DataFrame], checks: Mapping[str, pl.DataFrame], output: Path) -> None:
    """A panel for each graph, with a bar an intent, and for each set of examples, with a bar an aspect.

    `intents` has the table `intent_counts` of each graph, `checks` the table `triplet_checks` of each set.
    """
    panels = {f"{graph}: citations": _shares_of_citations(counts) for graph, counts in intents.items()}
    panels |= {f"{name}: queries": _shares_of_queries(table) for name, table in checks.items()}
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


def _shares_of_citations(counts: pl.DataFrame) -> dict[str, float]:
    citations = counts["citations"].sum()
    return {intent: number / max(citations, 1) for intent, number in counts.select("intent", "citations").iter_rows()}


def _shares_of_queries(checks: pl.DataFrame) -> dict[str, float]:
    served = checks.filter(check="served").select("part", "found", "among")
    return {aspect: found / max(among, 1) for aspect, found, among in served.iter_rows()}
