"""Records of papers as reference managers and spreadsheets read them: BibTeX, RIS and CSV."""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from cocite.core.errors import printable
from cocite.tools.answers import cell

Form = Literal["bibtex", "ris", "csv"]
COLUMNS = ("paper", "title", "authors", "venue", "year", "fields", "doi", "url", "cited", "abstract")
TAGS = {"title": "TI", "venue": "JO", "year": "PY", "doi": "DO", "url": "UR", "abstract": "AB", "paper": "ID"}
"""The tags of RIS."""
KEYS = {"title": "title", "venue": "journal", "year": "year", "doi": "doi", "url": "url", "abstract": "abstract"}
"""The fields of BibTeX."""
SPLIT = re.compile(r"\band\b|,.*,.*,", flags=re.IGNORECASE)
"""Where BibTeX would split the name of an author, or find too many parts in it."""
MARKS = {"^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}


def written(records: Iterable[Mapping[str, Any]], form: Form) -> str:
    """The records as one text."""
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
    lines += [(tag, record[name]) for name, tag in TAGS.items() if record[name] is not None]
    lines += [*(("KW", field) for field in record["fields"]), ("ER", "")]
    return "".join(f"{tag}  - {_line(value)}\n" for tag, value in lines)


def _as_bibtex(record: Mapping[str, Any]) -> str:
    surname = re.sub(r"\W", "", (" ".join(record["authors"][:1]).lower().split() or ["paper"])[-1])
    names = (_escaped("author", _line(name)) for name in record["authors"])
    values = {"author": " and ".join(f"{{{name}}}" if SPLIT.search(name) else name for name in names)}
    values |= {key: _escaped(key, _line(record[name])) for name, key in KEYS.items() if record[name] is not None}
    lines = [f"  {key} = {{{value}}}," for key, value in values.items() if value]
    head = f"@{'article' if record['venue'] else 'misc'}{{{surname}{record['year'] or ''}_{record['paper']},"
    return "\n".join([head, *lines, "}", ""])


def _escaped(key: str, text: str) -> str:
    """A text for TeX; one of an identifier is read as it is, but for braces."""
    if key in ("doi", "url"):
        return re.sub(r"[{}\\]", lambda found: f"%{ord(found[0]):02X}", text)
    return re.sub(r"[&%$#_{}^~]", lambda found: MARKS.get(found[0], f"\\{found[0]}"), text.replace("\\", "/"))


def _line(value: Any) -> str:
    return printable(" ".join(str(value).split()))
