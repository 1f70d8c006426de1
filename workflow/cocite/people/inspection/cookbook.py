"""The page of questions, docs/cookbook.md: each a heading, what it means, a query in a block of SQL, and its output.

The queries are written by hand on the page itself. They are found there, run on finished results, and their output is
put back below them, so that a reader sees what the demo gives.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import duckdb

from cocite.people.inspection.answers import as_text

_RECIPE = re.compile(
    r"(?P<asked>^## (?P<question>.+)\n(?:(?!## |```).*\n)*```sql\n(?P<query>(?:(?!```).*\n)+)```\n)"
    r"(?P<output>\n(?:\|.*\n)+)?",
    re.MULTILINE,
)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A question, and how the tables answer it."""

    question: str
    query: str
    columns: list[str]
    """The columns of the output on the page; empty where it has none yet."""


def recipes(page: str) -> Iterator[Recipe]:
    """The recipes of a page."""
    for found in _RECIPE.finditer(page):
        header = (found["output"] or "").strip().partition("\n")[0]
        columns = [cell.strip() for cell in header.strip("|").split("|")] if header else []
        yield Recipe(question=found["question"], query=found["query"], columns=columns)


def with_output(page: str, db: duckdb.DuckDBPyConnection) -> str:
    """The page with the output that its queries give on these results."""
    return _RECIPE.sub(lambda found: found["asked"] + _output(db, found["query"]), page)


def _output(db: duckdb.DuckDBPyConnection, query: str) -> str:
    """What a query gives, as a table in Markdown."""
    answer = db.execute(query)
    header = [name for name, *_ in answer.description]
    rows = [[as_text(value).replace("|", r"\|") for value in row] for row in answer.fetchall()]
    lines = [header, ["---"] * len(header), *rows]
    return "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)
