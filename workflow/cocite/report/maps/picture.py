"""The picture of a map: a panel a model, with the same papers in each, coloured by class.

It stays readable on paper, and where a page runs no script. So it has some hundred papers; all of them are on the
interactive map.
"""

from collections.abc import Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer

from cocite.core.options import Output, Results, Seed
from cocite.core.randomness import generator
from cocite.report.canvas import COLOURS, Entry, Titles, canvas
from cocite.report.maps.packing import UNKNOWN
from cocite.report.maps.results import read_map
from cocite.report.results import Provenance, configuration_in
from cocite.report.svg import SERIES

PANEL = (2.2, 2.2)
"""Width and height of a model's part, inches."""
DRAWN = 500
"""Papers in the picture: as many as can be told apart in a panel."""
CLASS_COLOURS = len(COLOURS) - 1
GREY = COLOURS[-1]
OTHER = "others"


def write_figure(
    *,
    results: Results,
    provenance: Provenance,
    name: Annotated[str, typer.Option("--map", help="Name of the map.")],
    seed: Seed,
    output: Output,
) -> None:
    """Draw some papers of a map as each model places them."""
    shown = read_map(results, configuration_in(provenance), name)
    classes = next(iter(shown.classes.values()), [None] * len(shown.titles))
    draw_map(shown.layouts, classes, shown.titles, seed, output)


def draw_map(
    layouts: Mapping[str, np.ndarray], classes: Sequence[str | None], titles: Sequence[str], seed: int, output: Path
) -> None:
    """The same papers in the layout of each model (papers × 2, NaN where it has none), titles on hover.

    Classes beyond the most frequent share a colour. Of many papers, some are drawn at random.
    """
    chosen = _chosen(len(titles), seed)
    called = [classes[place] or UNKNOWN for place in chosen]
    shown: Titles = {}
    entries = _entries(called)
    with canvas(output, panels=len(layouts), size=PANEL, entries=entries, titles=shown) as axes:
        for axis, (name, points) in zip(axes, layouts.items(), strict=True):
            axis.set_axis_off()
            of_chosen = points[chosen]
            is_placed = np.isfinite(of_chosen).all(axis=1)
            for place, (value, entry) in enumerate(entries.items()):
                is_of_class = [(each if each in entries else OTHER) == value for each in called]
                is_drawn = np.array(is_of_class, dtype=bool) & is_placed
                x, y = of_chosen[is_drawn].T
                drawn = axis.scatter(x, y, s=9, color=entry.colour, linewidths=0)
                identity = f"{SERIES}{place}-{name}"
                drawn.set_gid(identity)
                shown[identity] = [titles[paper] for paper in compress(chosen, is_drawn)]
            axis.set_title(name)


def _chosen(papers: int, seed: int) -> np.ndarray:
    """The places of the papers that are drawn, rising."""
    if papers <= DRAWN:
        return np.arange(papers)
    return np.sort(generator(seed, "papers of the picture").choice(papers, DRAWN, replace=False))


def _entries(classes: list[str]) -> dict[str, Entry]:
    """A colour for each of the most frequent classes, and grey for the others together and for papers without one."""
    frequent = (
        pl.Series(classes, dtype=pl.String)
        .value_counts(sort=True)
        .sort(["count", pl.first()], descending=[True, False])
    )
    names = [name for name in frequent.to_series(0) if name != UNKNOWN]
    colours = dict(zip(names[:CLASS_COLOURS], COLOURS, strict=False))
    if len(names) > CLASS_COLOURS:
        colours[OTHER] = GREY
    if UNKNOWN in classes:
        colours[UNKNOWN] = GREY
    return {name: Entry(name=name, colour=colour, marker="o") for name, colour in colours.items()}
