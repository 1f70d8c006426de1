"""The canvas of all figures of the report: SVG that keeps text as text, so that the page stays light and readable.

All panels have one size and fixed margins: matplotlib's own layouts measure every text, which takes longer than to draw
it. A file marks the position of each panel and the meaning of its lines: the page takes it apart, and shows as many
panels in a row as fit, below one legend.
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
"""A placeholder for the colour of the text around a figure, on a light or a dark page."""
TEXTS = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "grid.color")
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "cocite",
    "font.family": "sans-serif",
    **dict.fromkeys(("font.size", "axes.titlesize"), 10),
    "text.parse_math": False,
    **dict.fromkeys(TEXTS, INK),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    "axes.grid": True,
    "axes.titlelocation": "left",
    "grid.alpha": 0.15,
}
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#808080")
DASHES = {"-": "", "--": "6 3", ":": "1.5 3", "-.": "6 3 1.5 3"}
"""Dashes of a line, for matplotlib and in SVG."""
SIGNS = {
    "o": '<circle cx="14" cy="5" r="3" fill="{}"/>',
    "s": '<path d="M11 2h6v6h-6z" fill="{}"/>',
    "^": '<path d="M11 8l3-6l3 6z" fill="{}"/>',
}
SMALL = 8.5
"""Size of letters within a panel, points."""
LEFT, RIGHT, BOTTOM, TOP = 0.6, 0.15, 0.5, 0.3
"""Margins around the axes of a panel, inches: room for numbers and labels, and for a title."""
SVG = "http://www.w3.org/2000/svg"
ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
ElementTree.register_namespace("cc", "http://creativecommons.org/ns#")
PANEL, NAME = "data-box", "data-name"
"""The attributes of a group of axes with its box (x, y, width and height), and what it shows."""
SERIES = "series-"
"""Prefix of the ids of lines, before their position in the legend."""
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


def styles(names: Sequence[str], *, markers: bool = True) -> dict[str, Entry]:
    """A line for each name; no two of the first 56 look alike, or of the first 28 without markers."""
    looks = zip(names, cycle(product("os", DASHES, COLOURS)), strict=False)
    return {name: Entry(name, colour, dash, marker * markers) for name, (marker, dash, colour) in looks}


def look(entries: Mapping[str, Entry], name: str, panel: object) -> dict[str, Any]:
    """How matplotlib draws the line of an entry in a panel; the page finds it by its id."""
    entry = entries[name]
    identity = f"{SERIES}{list(entries).index(name)}-{panel}"
    return {"color": entry.colour, "linestyle": entry.dash, "marker": entry.marker, "markersize": 3, "gid": identity}


@contextmanager
def canvas(
    output: Path, *, panels: int, size: tuple[float, float], entries: Mapping[str, Entry], titles: Titles | None = None
) -> Iterator[list[Axes]]:
    """The axes of so many panels, each of some width and height in inches, written when the block ends. The legend
    lists `entries`. `titles`, which may be filled until then, are shown over the points of collections by their ids."""
    width, height = LEFT + size[0] + RIGHT, TOP + size[1] + BOTTOM
    places = [divmod(panel, 4) for panel in range(panels)]
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
            group.set(PANEL, " ".join(f"{72 * value:.1f}" for value in box))
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
    columns = -(-len(entries) // int(height / 0.22))  # by the height of a name
    width = right + columns * (0.7 + max(map(len, entries), default=0) * 0.085)  # the line before it, and letters
    figure = Figure(figsize=(width, height))
    shares = size[0] / width, size[1] / height
    axes = [figure.add_axes((x / width, 1 - (y + size[1]) / height, *shares)) for x, y in corners]
    handles = []
    for name, colour, dash, marker in entries.values():
        looks: dict[str, Any] = {"color": colour, "linestyle": dash or "none", "marker": marker or None}
        handles.append(Line2D([], [], label=name, markersize=4, **looks))
    if handles:
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
    panels = list[Markup]()
    for group in groups:
        label = f"{what}: {group.get(NAME)}"
        attributes = {"viewBox": group.get(PANEL, ""), "role": "img", "aria-label": label}
        panel = ElementTree.Element(f"{{{SVG}}}svg", attributes)
        panel.extend([group, *([] if panels else shared)])
        for line in panel.iter(f"{{{SVG}}}g"):  # By its place in the legend, the page highlights a line.
            if series := re.match(rf"{SERIES}(\d+)-", line.get("id", "")):
                line.set("data-series", series[1])
        # Figures share no id. Texts that look like ids, such as titles, stay as they are.
        identified = r'\b(id="|href="#|url\(#)(?=[^<>]*>)'
        text = re.sub(identified, rf"\g<1>{path.stem}-", ElementTree.tostring(panel, encoding="unicode"))
        panels.append(Markup(text))  # noqa: S704
    legend = []
    for entry in (Entry(**entry) for entry in json.loads(root.get("data-legend", "[]"))):
        dashes = f'stroke="{entry.colour}" stroke-width="2" stroke-dasharray="{DASHES.get(entry.dash)}"'
        shapes = f'<path d="M0 5h28" {dashes}/>' if entry.dash else ""
        shapes += SIGNS[entry.marker].format(entry.colour) if entry.marker else ""
        sample = f'<svg viewBox="0 0 28 10" width="28" height="10" aria-hidden="true">{shapes}</svg>'
        legend.append((entry.name, Markup(sample)))  # noqa: S704
    return PageFigure(tuple(panels), tuple(legend))
