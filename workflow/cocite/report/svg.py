"""SVG files as trees: what figures are written with, and what the page takes apart."""

from xml.etree import ElementTree

SVG = "http://www.w3.org/2000/svg"
NAMESPACES = {
    "": SVG,
    "xlink": "http://www.w3.org/1999/xlink",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "dc": "http://purl.org/dc/elements/1.1/",
    "cc": "http://creativecommons.org/ns#",
}
PANEL = "data-box"
"""The attribute of a group of axes that says where it lies: x, y, width and height."""
NAME = "data-name"
"""The attribute that says what it shows."""
SERIES = "series-"
"""What the ids of lines begin with, before the place of what they stand for in the legend."""


def read_svg(text: str) -> ElementTree.Element:
    """The tree of a figure that the report has drawn."""
    return ElementTree.fromstring(text)  # noqa: S314 It was drawn by a job of this run.


def write_svg(root: ElementTree.Element) -> str:
    """A tree as text, without prefixes on its own elements."""
    for prefix, address in NAMESPACES.items():
        ElementTree.register_namespace(prefix, address)
    return ElementTree.tostring(root, encoding="unicode")
