"""The canvas of all figures of the report: SVG that keeps text as text, so that the page stays light and readable.

Ink is the colour of the text around a figure (`currentColor`), so that figures can be read on a dark page as well. All
panels have one size and fixed margins: matplotlib's own layouts measure every text, which takes longer than to draw it.
A file marks the position of each panel and the meaning of its lines: the page takes it apart, and shows as many panels
in a row as fit, below one legend. On a phone, the whole would scroll with its legend out of sight.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle, product
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cocite.core.atomic import atomic_path

mpl.use("svg")
INK = "#010203"
"""A placeholder for the colour of the page's text; no figure has this colour otherwise."""
TEXTS = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "grid.color")
GROUNDS = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "cocite",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.parse_math": False,
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
DASHES = {"-": "", "--": "6 3", ":": "1.5 3", "-.": "6 3 1.5 3"}
"""Dashes of a line, for matplotlib and in SVG."""
MARKERS = ("o", "s")
SIGNS = {
    "o": '<circle cx="14" cy="5" r="3" fill="{}"/>',
    "s": '<path d="M11 2h6v6h-6z" fill="{}"/>',
    "^": '<path d="M11 8l3-6l3 6z" fill="{}"/>',
}
SMALL = 8.5
"""Size of letters within a panel, points."""
PANELS_IN_A_ROW = 4
LEFT, RIGHT, BOTTOM, TOP = 0.6, 0.15, 0.5, 0.3
"""Margins around the axes of a panel, inches: room for numbers and labels, and for a title."""
POINTS_AN_INCH = 72
LINE_OF_LEGEND, SAMPLE_OF_LEGEND, LETTER_OF_LEGEND = 0.22, 0.7, 0.085
"""Height of a name in the legend, width of the line before it, and of a letter, inches."""
SVG = "http://www.w3.org/2000/svg"
NAMESPACES = {
    "": SVG,
    "xlink": "http://www.w3.org/1999/xlink",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "dc": "http://purl.org/dc/elements/1.1/",
    "cc": "http://creativecommons.org/ns#",
}
for prefix, address in NAMESPACES.items():
    ElementTree.register_namespace(prefix, address)
PANEL, NAME = "data-box", "data-name"
"""The attributes of a group of axes with its box (x, y, width and height), and what it shows."""
SERIES = "series-"
"""Prefix of the ids of lines, before their position in the legend."""
IDENTIFIED = re.compile(r'\b(id="|href="#|url\(#)(?=[^<>]*>)')
"""What comes before an id in a tag; texts, such as titles, stay as they are."""
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot have."""

Titles = dict[str, list[str]]
"""A title for each point of each collection of points, by the id of the collection."""


class Entry(NamedTuple):
    """The meaning of a line or a colour of a figure; points have no dashes, lines may have no marker."""

    name: str
    colour: str
    dash: str = ""
    marker: str = ""


class PageFigure(NamedTuple):
    """A figure on the page: its panels, and the entries of its legend with a piece of line before each."""

    panels: tuple[Markup, ...]
    legend: tuple[tuple[str, Markup], ...]


def styles(names: Sequence[str]) -> dict[str, Entry]:
    """A line for each name; no two of the first 56 look alike."""
    looks = cycle(product(MARKERS, DASHES, COLOURS))
    return {name: Entry(name, colour, dash, marker) for name, (marker, dash, colour) in zip(names, looks, strict=False)}


def look(entries: Mapping[str, Entry], name: str, panel: object) -> dict[str, Any]:
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

    The legend lists `entries`. `titles`, which may be filled until the block ends, are shown over the points of the
    collections with these ids.
    """
    width, height = LEFT + size[0] + RIGHT, TOP + size[1] + BOTTOM
    places = [divmod(panel, PANELS_IN_A_ROW) for panel in range(panels)]
    corners = [(column * width + LEFT, row * height + TOP) for row, column in places]
    entries = {key: entry._replace(name=FORBIDDEN.sub(" ", entry.name)) for key, entry in entries.items()}
    with mpl.rc_context(rc=STYLE), atomic_path(output) as temporary:  # type: ignore[arg-type]
        figure, axes = _figure(corners, size, entries)
        yield axes
        figure.savefig(temporary, format="svg", metadata={"Date": None})
        root = read_svg(temporary.read_text(encoding="utf-8").replace(INK, "currentColor"))
        root.set("data-legend", json.dumps([entry._asdict() for entry in entries.values()]))
        groups = {group.get("id", ""): group for group in root.iter(f"{{{SVG}}}g")}
        for number, (axis, (x, y)) in enumerate(zip(axes, corners, strict=True), start=1):
            left, below = (LEFT, BOTTOM) if axis.axison else (RIGHT, RIGHT)  # points without axes need no such room
            box = (x - left, y - TOP, left + size[0] + RIGHT, TOP + size[1] + below)  # in the units of the file
            group = groups[f"axes_{number}"]
            group.set(PANEL, " ".join(f"{POINTS_AN_INCH * value:.1f}" for value in box))
            group.set(NAME, axis.get_title(loc="left") + (f", by {axis.get_xlabel()}" if axis.axison else ""))
        for name, of_points in (titles or {}).items():
            for point, title in zip(groups[name].iter(f"{{{SVG}}}use"), of_points, strict=True):
                ElementTree.SubElement(point, f"{{{SVG}}}title").text = FORBIDDEN.sub(" ", title)
        temporary.write_text(ElementTree.tostring(root, encoding="unicode"), encoding="utf-8")


def _figure(
    corners: Sequence[tuple[float, float]], size: tuple[float, float], entries: Mapping[str, Entry]
) -> tuple[Figure, list[Axes]]:
    """The figure with its axes, which begin at these corners (inches from the upper left), and its legend."""
    right = max((x for x, _ in corners), default=0) + size[0] + RIGHT
    height = max((y for _, y in corners), default=0) + size[1] + BOTTOM
    columns = -(-len(entries) // int(height / LINE_OF_LEGEND))
    width = right + columns * (SAMPLE_OF_LEGEND + max(map(len, entries), default=0) * LETTER_OF_LEGEND)
    figure = Figure(figsize=(width, height))
    axes = [
        figure.add_axes((x / width, 1 - (y + size[1]) / height, size[0] / width, size[1] / height)) for x, y in corners
    ]
    if entries:
        lines: list[dict[str, Any]] = [
            {"label": each.name, "color": each.colour, "linestyle": each.dash or "none", "marker": each.marker or None}
            for each in entries.values()
        ]
        handles = [Line2D([], [], markersize=4, **line) for line in lines]
        figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(right / width, 1), ncols=columns)
    return figure, axes


def read_svg(text: str) -> ElementTree.Element:
    """The tree of a figure that the report has drawn."""
    return ElementTree.fromstring(text)  # noqa: S314 It was drawn by a job of this run.


def read_figure(path: Path, what: str) -> PageFigure:
    """The panels and the legend of a figure's file; `what` it shows is in the names of its panels."""
    root = read_svg(path.read_text(encoding="utf-8"))
    groups = [group for group in root.iter(f"{{{SVG}}}g") if group.get(PANEL)]
    # A style sheet would be one of the whole page.
    shared = [shapes for shapes in root.findall(f"{{{SVG}}}defs") if shapes.find(f"{{{SVG}}}style") is None]
    panels = [_panel(group, what, shared if number == 0 else [], path.stem) for number, group in enumerate(groups)]
    legend = [Entry(**entry) for entry in json.loads(root.get("data-legend", "[]"))]
    return PageFigure(tuple(panels), tuple((entry.name, _sample(entry)) for entry in legend))


def _panel(group: ElementTree.Element, what: str, shared: list[ElementTree.Element], prefix: str) -> Markup:
    """A group of axes as a separate element, its ids prefixed with those of the figure so that figures share none.

    Lines get an attribute with their place in the legend, by which the page highlights one of them.
    """
    label = f"{what}: {group.get(NAME)}"
    panel = ElementTree.Element(f"{{{SVG}}}svg", {"viewBox": group.get(PANEL, ""), "role": "img", "aria-label": label})
    panel.extend([group, *shared])
    for line in panel.iter(f"{{{SVG}}}g"):
        if series := re.match(rf"{SERIES}(\d+)-", line.get("id", "")):
            line.set("data-series", series[1])
    return Markup(IDENTIFIED.sub(rf"\g<1>{prefix}-", ElementTree.tostring(panel, encoding="unicode")))  # noqa: S704


def _sample(entry: Entry) -> Markup:
    """The piece of line, or the point, before an entry of the legend."""
    dashes = f'stroke="{entry.colour}" stroke-width="2" stroke-dasharray="{DASHES.get(entry.dash)}"'
    line = f'<path d="M0 5h28" {dashes}/>' if entry.dash else ""
    sign = SIGNS[entry.marker].format(entry.colour) if entry.marker else ""
    return Markup(f'<svg viewBox="0 0 28 10" width="28" height="10" aria-hidden="true">{line}{sign}</svg>')  # noqa: S704
