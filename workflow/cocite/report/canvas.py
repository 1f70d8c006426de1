"""The canvas of all figures of the report: SVG that keeps text as text, so that the page stays light and readable.

Ink is the colour of the text around a figure (`currentColor`), so that figures can be read on a dark page as well. The
file says where each panel lies and what its lines stand for: the page takes panels apart where it is narrow. All panels
have one size and fixed margins. matplotlib's own layouts measure every text of a figure, which takes longer than to
draw it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import cycle, product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cocite.core.tables.files import atomic_path
from cocite.report.svg import NAME, PANEL, SERIES, SVG, read_svg, write_svg

mpl.use("svg")
INK = "#010203"
"""Stands for the colour of the page's text; no figure has this colour otherwise."""
TEXTS = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "grid.color")
GROUNDS = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "cocite",
    "font.family": "sans-serif",
    "font.size": 10,
    **dict.fromkeys(TEXTS, INK),
    **dict.fromkeys(GROUNDS, "none"),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "grid.alpha": 0.15,
    "legend.frameon": False,
}
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#808080")
DASHES = ("-", "--", ":", "-.")
MARKERS = ("o", "s")
PANELS_IN_A_ROW = 4
LEFT, RIGHT, BOTTOM, TOP = 0.6, 0.15, 0.5, 0.3
"""Margins around the axes of a panel, inches: room for numbers and labels, and for a title."""
POINTS_AN_INCH = 72
LINE_OF_LEGEND, SAMPLE_OF_LEGEND, LETTER_OF_LEGEND = 0.22, 0.7, 0.085
"""Height of a name in the legend, width of the line before it, and of a letter, inches."""

Titles = dict[str, list[str]]
"""A title for each point of each collection of points, by the id of the collection."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What a line or a colour of a figure stands for."""

    name: str
    colour: str
    dash: str = ""
    """Dashes of the line; none for points."""
    marker: str = ""
    """Sign at its points."""


def styles(names: Sequence[str]) -> dict[str, Entry]:
    """A line for each name; no two of the first 56 look alike."""
    looks = cycle(product(MARKERS, DASHES, COLOURS))
    return {
        name: Entry(name=name, colour=colour, dash=dash, marker=marker)
        for name, (marker, dash, colour) in zip(names, looks, strict=False)
    }


def look(entries: Mapping[str, Entry], name: str, panel: str) -> dict[str, Any]:
    """How matplotlib draws the line of an entry in a panel; the page finds it by its id."""
    entry = entries[name]
    identity = f"{SERIES}{list(entries).index(name)}-{panel}"
    return {"color": entry.colour, "linestyle": entry.dash, "marker": entry.marker, "markersize": 3, "gid": identity}


@contextmanager
def canvas(
    output: Path,
    *,
    panels: int,
    size: tuple[float, float],
    entries: Mapping[str, Entry],
    titles: Titles | None = None,
) -> Iterator[list[Axes]]:
    """The axes of so many panels, each of some width and height in inches, written when the block ends.

    `entries` are what the legend beside the panels names. `titles`, which may be filled until the block ends, are shown
    over the points of the collections with these ids.
    """
    cells = _cells(panels, size)
    with mpl.rc_context(rc=STYLE), atomic_path(output) as temporary:  # type: ignore[arg-type]
        figure, axes = _figure(cells, size, entries)
        yield axes
        figure.savefig(temporary, format="svg", metadata={"Date": None})
        root = read_svg(temporary.read_text(encoding="utf-8").replace(INK, "currentColor"))
        root.set("data-legend", json.dumps([asdict(entry) for entry in entries.values()]))
        groups = {group.get("id", ""): group for group in root.iter(f"{{{SVG}}}g")}
        _mark_panels(groups, axes, cells, size)
        for name, of_points in (titles or {}).items():
            for point, title in zip(groups[name].iter(f"{{{SVG}}}use"), of_points, strict=True):
                ElementTree.SubElement(point, f"{{{SVG}}}title").text = title
        temporary.write_text(write_svg(root), encoding="utf-8")


def _cells(panels: int, size: tuple[float, float]) -> list[tuple[float, float]]:
    """Where the axes of each panel begin, from the upper left, inches."""
    width, height = LEFT + size[0] + RIGHT, TOP + size[1] + BOTTOM
    places = [divmod(panel, PANELS_IN_A_ROW) for panel in range(panels)]
    return [(column * width + LEFT, row * height + TOP) for row, column in places]


def _figure(
    cells: Sequence[tuple[float, float]], size: tuple[float, float], entries: Mapping[str, Entry]
) -> tuple[Figure, list[Axes]]:
    """The figure with its axes, and its legend on the right."""
    right = max((x for x, _ in cells), default=0) + size[0] + RIGHT
    height = max((y for _, y in cells), default=0) + size[1] + BOTTOM
    columns = -(-len(entries) // int(height / LINE_OF_LEGEND)) if entries else 0
    letters = max(map(len, entries), default=0)
    width = right + columns * (SAMPLE_OF_LEGEND + letters * LETTER_OF_LEGEND)
    figure = Figure(figsize=(width, height))
    axes = [
        figure.add_axes((x / width, 1 - (y + size[1]) / height, size[0] / width, size[1] / height)) for x, y in cells
    ]
    if entries:
        lines: list[dict[str, Any]] = [
            {"label": each.name, "color": each.colour, "linestyle": each.dash or "none", "marker": each.marker or None}
            for each in entries.values()
        ]
        handles = [Line2D([], [], markersize=4, **line) for line in lines]
        figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(right / width, 1), ncols=columns)
    return figure, axes


def _mark_panels(
    groups: Mapping[str, ElementTree.Element],
    axes: Sequence[Axes],
    cells: Sequence[tuple[float, float]],
    size: tuple[float, float],
) -> None:
    """Write what each panel shows and the box that it takes, in the units of the file."""
    for number, (axis, (x, y)) in enumerate(zip(axes, cells, strict=True), start=1):
        box = (x - LEFT, y - TOP, LEFT + size[0] + RIGHT, TOP + size[1] + BOTTOM)
        if not axis.axison:  # Points without axes need no room for labels.
            box = (x - RIGHT, y - TOP, size[0] + 2 * RIGHT, TOP + size[1] + RIGHT)
        groups[f"axes_{number}"].set(PANEL, " ".join(f"{POINTS_AN_INCH * value:.1f}" for value in box))
        by = f", by {axis.get_xlabel()}" if axis.axison else ""
        groups[f"axes_{number}"].set(NAME, axis.get_title(loc="left") + by)
