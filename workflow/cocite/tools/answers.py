"""Rows from results, printed as a table for people, or as CSV or JSON for programs; and records of papers as reference
managers and spreadsheets read them: BibTeX, RIS and CSV."""

import csv
import io
import json
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cocite.core.errors import OBEYED, printable

if TYPE_CHECKING:
    import duckdb

    from cocite.tools.commands import Form

COMPUTED = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
"""The beginnings of texts that spreadsheets compute; the last four are as wide as a Chinese character."""
WIDTH = 100
"""Characters of a line where the output is not a terminal."""
NUMBERS = 3
"""Numbers of a vector that are shown."""
WIDEST = 40
"""Maximum number of characters of a column if each row has one line."""
NARROWEST = 14
"""Characters that a column needs unless its values are shorter; in less space, each row is printed as a record."""
MORE_COLUMNS = "More columns, in a wider terminal or with --format json"

RecordForm = Literal["bibtex", "ris", "csv"]
COLUMNS = ("paper", "title", "authors", "venue", "year", "fields", "doi", "url", "cited", "abstract")
RIS_TAGS = {"title": "TI", "venue": "JO", "year": "PY", "doi": "DO", "url": "UR", "abstract": "AB", "paper": "ID"}
BIBTEX_KEYS = {"title": "title", "venue": "journal", "year": "year", "doi": "doi", "url": "url", "abstract": "abstract"}
SPLIT = re.compile(r"\band\b|,.*,.*,", flags=re.IGNORECASE)
"""Where BibTeX would split the name of an author, or find too many parts in it."""
TEX_MARKS = {"^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}


@dataclass(frozen=True)
class Answer:
    """Rows that were asked for."""

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    shown: int = 160
    """Characters of a text that a table for people shows; a record shows all."""
    fits: bool = False
    """Whether a table for people has a line for each row, and the columns that fit the terminal."""


def fetched(found: "duckdb.DuckDBPyConnection") -> tuple[list[str], list[tuple[Any, ...]]]:
    """The columns and the rows that a query gave."""
    return [name for name, *_ in found.description or ()], found.fetchall()


def print_answer(answer: Answer, form: "Form") -> None:
    """Print to standard output: texts of strangers without characters that a terminal obeys, CSV without formulas."""
    if form == "json":
        rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
        text = json.dumps(rows, ensure_ascii=False, indent=2, default=str)
        sys.stdout.write(OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(answer.columns)
        writer.writerows(map(cell, row) for row in answer.rows)
    elif form == "markdown":
        heading = "\n".join(map(printable, answer.heading.lstrip().split("\n")))
        sys.stdout.write(f"{heading}\n{as_markdown(answer.columns, answer.rows)}\n")
    else:
        _print_text(answer)


def cell(value: Any) -> Any:
    """A value as a cell of CSV: a text that a spreadsheet would take for a formula begins with an apostrophe."""
    if isinstance(value, list):
        return json.dumps(value)
    if not isinstance(value, str):
        return value
    return "'" * value.startswith(COMPUTED) + printable(value)


def as_markdown(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """The lines of a table of Markdown."""
    lines = (columns, ["---"] * len(columns), *rows)
    cells = ([" ".join(as_text(value).split()).replace("|", r"\|") for value in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def _print_text(answer: Answer) -> None:
    """Print a table, or a record of each row if the columns are too many for one, and name the columns left out."""
    kept = [place for place in range(len(answer.columns)) if any(row[place] is not None for row in answer.rows)]
    empty = [name for place, name in enumerate(answer.columns) if place not in kept and answer.rows]
    console = Console(width=shutil.get_terminal_size((WIDTH, 0)).columns, highlight=False)
    console.print(Text(printable(answer.heading), style="bold"))
    widths = [max(len(as_text(row[place])) for row in (answer.columns, *answer.rows)) for place in kept]
    more: list[str] = []
    if answer.fits:
        ends = accumulate(min(width, WIDEST) + 2 for width in widths)
        number = max(1, sum(end <= console.width for end in ends))
        kept, more = kept[:number], [answer.columns[place] for place in kept[number:]]
    columns = [answer.columns[place] for place in kept]
    rows = [[as_text(row[place]) for place in kept] for row in answer.rows]
    if not answer.fits and sum(min(width, NARROWEST) + 2 for width in widths) > console.width:
        for row in rows:
            record = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
            record.add_column(style="dim", no_wrap=True)
            record.add_column()
            for name, text in zip(columns, row, strict=True):
                record.add_row(name, Text(text))
            record.add_row()
            console.print(record)
    else:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for place, name in zip(kept, columns, strict=True):
            numeric = all(isinstance(row[place], int | float | None) for row in answer.rows)
            table.add_column(name, justify="right" if numeric else "left", no_wrap=numeric or answer.fits)
        shown = WIDEST if answer.fits else answer.shown
        for row in rows:
            table.add_row(*(Text(text if len(text) <= shown else text[: shown - 1] + "…") for text in row))
        console.print(table)
    for what, names in {"Columns without values": empty, MORE_COLUMNS: more}.items():
        if names:
            console.print(Text(f"{what}: {', '.join(names)}.", style="dim"))


def as_text(value: Any) -> str:
    """A value as people read it: a number with four digits, a vector by its first numbers."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        shown = value[:NUMBERS] if value and isinstance(value[0], float) else value
        return ", ".join(map(as_text, shown)) + (f", … ({len(value)})" if len(shown) < len(value) else "")
    return printable(str(value))


def written(records: Iterable[Mapping[str, Any]], form: RecordForm) -> str:
    """Records of papers, with the values of `COLUMNS`, as one text."""
    if form == "csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for record in records:
            row = (record[name] for name in COLUMNS)
            writer.writerow(cell("; ".join(each) if isinstance(each, list) else each) for each in row)
        return text.getvalue()
    return "\n".join(map(_as_ris if form == "ris" else _as_bibtex, records))


def _as_ris(record: Mapping[str, Any]) -> str:
    lines = [("TY", "JOUR" if record["venue"] else "GEN"), *(("AU", name) for name in record["authors"])]
    lines += [(tag, record[name]) for name, tag in RIS_TAGS.items() if record[name] is not None]
    lines += [*(("KW", field) for field in record["fields"]), ("ER", "")]
    return "".join(f"{tag}  - {_line(value)}\n" for tag, value in lines)


def _as_bibtex(record: Mapping[str, Any]) -> str:
    surname = re.sub(r"\W", "", (" ".join(record["authors"][:1]).lower().split() or ["paper"])[-1])
    names = (_as_tex("author", name) for name in record["authors"])
    values = {"author": " and ".join(f"{{{name}}}" if SPLIT.search(name) else name for name in names)}
    values |= {key: _as_tex(key, record[name]) for name, key in BIBTEX_KEYS.items() if record[name] is not None}
    lines = [f"  {key} = {{{value}}}," for key, value in values.items() if value]
    head = f"@{'article' if record['venue'] else 'misc'}{{{surname}{record['year'] or ''}_{record['paper']},"
    return "\n".join([head, *lines, "}", ""])


def _as_tex(key: str, value: Any) -> str:
    """A value for TeX; an identifier is read as it is, but for braces."""
    if key in ("doi", "url"):
        return re.sub(r"[{}\\]", lambda found: f"%{ord(found[0]):02X}", _line(value))
    text = _line(value).replace("\\", "/")
    return re.sub(r"[&%$#_{}^~]", lambda found: TEX_MARKS.get(found[0], f"\\{found[0]}"), text)


def _line(value: Any) -> str:
    return printable(" ".join(str(value).split()))
