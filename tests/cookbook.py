"""The questions of docs/cookbook.md, read from the page."""

from collections.abc import Iterator
from dataclasses import dataclass

from cocite.tools.documentation import RECIPE


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A question, and how the tables answer it."""

    question: str
    query: str
    columns: list[str]
    """The columns of the output on the page; empty where it has none yet."""


def recipes(page: str) -> Iterator[Recipe]:
    """The recipes of a page."""
    for found in RECIPE.finditer(page):
        header = (found["output"] or "").strip().partition("\n")[0]
        columns = [cell.strip() for cell in header.strip("|").split("|")] if header else []
        yield Recipe(question=found["question"], query=found["query"], columns=columns)
