"""The judgements of a search, from files in several forms: query, document and grade.

BEIR      text with three fields between tabs or commas, behind a line of names
TREC      text with four fields between spaces, tabs or commas: query, iteration, document, grade
columns   Parquet or JSON Lines with query-id, corpus-id and score

Any text may be packed by gzip. Fields between tabs or spaces are taken as they are: a quotation mark is part of an id.
"""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from cocite.core.errors import InputError
from cocite.core.rows import is_json_lines, read_rows, read_text
from cocite.evaluation.preparation.files import as_number, grade

NAMES = (
    ("query-id", "query_id", "qid", "query"),
    ("corpus-id", "corpus_id", "doc-id", "doc_id", "docid", "document"),
    ("score", "relevance", "rel", "grade"),
)
"""What the columns of query, document and grade are called."""
BEIR, TREC = 3, 4
"""Fields of a line."""
OF_TREC: Sequence[int] = (0, 2, 3)
"""Those of query, document and grade."""


class Judgement(NamedTuple):
    """One judgement, with its place in the file; its grade may be below 0."""

    place: str
    query: str
    document: str
    grade: int


def read_judgements(path: Path) -> Iterator[Judgement]:
    """The judgements in a file. Raises `InputError` where it is missing or empty, or a line is wrong."""
    is_empty = True
    for judgement in (_of_columns if path.suffix == ".parquet" or is_json_lines(path) else _of_lines)(path):
        if not judgement.query.strip() or not judgement.document.strip():
            raise InputError(f"{judgement.place}: the id of the query or of the document is empty.")
        is_empty = False
        yield judgement
    if is_empty:
        raise InputError(f"{path}: has no rows.")


def _of_columns(path: Path) -> Iterator[Judgement]:
    for row in read_rows(path, [name for names in NAMES for name in names]):
        query, document = (row.identifier(*names) for names in NAMES[:2])
        yield Judgement(row.place, query, document, grade(row.require(*NAMES[2]), row.place))


def _of_lines(path: Path) -> Iterator[Judgement]:
    delimiter, count, chosen = "", 0, OF_TREC
    for number, line in read_text(path):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        if not count:
            delimiter = _delimiter(line)
        fields = _fields(line, delimiter, place)
        if not count:
            count = len(fields)
            is_header = all(as_number(field) is None for field in fields)
            _check_first(place, count, is_header=is_header)
            chosen = _columns(fields) if is_header else OF_TREC
            if is_header:
                continue
        if len(fields) != count:
            raise InputError(f"{place}: has {len(fields)} fields, where {count} are expected.")
        query, document, written = (fields[column] for column in chosen)
        yield Judgement(place, query, document, grade(written.strip('"'), place))


def _delimiter(line: str) -> str:
    """What stands between the fields of a first line; an empty text for any space."""
    if "\t" in line:
        return "\t"
    spaced = line.split()
    is_trec = len(spaced) == TREC and as_number(spaced[-1]) is not None
    return "," if "," in line and not is_trec else ""


def _fields(line: str, delimiter: str, place: str) -> list[str]:
    if delimiter != ",":
        return [field.strip() for field in line.split(delimiter)] if delimiter else line.split()
    try:
        [fields] = csv.reader([line], skipinitialspace=True)
    except csv.Error as error:
        raise InputError(f"{place}: cannot be split at its commas ({error}).") from None
    return [field.strip() for field in fields]


def _check_first(place: str, count: int, *, is_header: bool) -> None:
    """Raise `InputError` where a first line has neither form."""
    if count not in (BEIR, TREC):
        forms = f"{BEIR} are expected (query-id, corpus-id, score) or {TREC} (query, iteration, document, grade)"
        raise InputError(f"{place}: has {count} fields, where {forms}.")
    if count == BEIR and not is_header:
        raise InputError(f"{place}: is a judgement, where a line of names is expected: query-id, corpus-id, score.")


def _columns(header: Sequence[str]) -> Sequence[int]:
    """Which fields are query, document and grade: by their names where all are known, or else by their places."""
    called = [name.strip().strip('"').lower() for name in header]
    by_name = [next((called.index(name) for name in names if name in called), None) for names in NAMES]
    found = [column for column in by_name if column is not None]
    if len(found) == len(NAMES):
        return found
    return OF_TREC if len(header) == TREC else range(BEIR)
