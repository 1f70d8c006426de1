"""The page: the report's tables and figures on one self-contained HTML page that opens without a server."""

from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from cocite.files import write_text

TEMPLATES = Path(__file__).parents[2] / "report"


def write_page(
    *, tables: dict[str, pl.DataFrame], figures: dict[str, Path], provenance: dict[str, Any], output: Path
) -> None:
    """Fill the template with tables (by name), figures (SVG files by name) and the provenance."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}
    page = environment.get_template("index.html.j2").render(
        tables={name: {"columns": table.columns, "rows": table.rows()} for name, table in tables.items()},
        figures={name: _inline(path) for name, path in figures.items()},
        provenance=provenance,
    )
    write_text(output, page)


def _inline(path: Path) -> Markup:
    """An SVG file as an element of the page, its ids made its own so that figures do not share them."""
    text = path.read_text(encoding="utf-8")
    element = text[text.index("<svg") :]
    for attribute in ('id="', 'href="#', "url(#"):
        element = element.replace(attribute, f"{attribute}{path.stem}-")
    return Markup(element)  # noqa: S704
