"""Which columns a file has, and whether those that the configuration names are among them."""

import json
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq

from cocite.config.explained import shown
from cocite.config.table_files import CsvFormat, JsonLinesFormat, TableFiles, TsvFormat, named_columns
from cocite.core.errors import InputError
from cocite.corpus.ingest.lists import open_lines
from cocite.corpus.ingest.tables.files import explained_parquet, open_text
from cocite.corpus.ingest.unpacking import LONGEST_LINE, explained

TEXT = CsvFormat | TsvFormat
RECORDS = 1000
"""Records at the beginning of a file of JSON Lines that tell which keys there are."""
MOST_NAMES = 30
"""Columns that an error lists."""


def check_columns(table: TableFiles, paths: Sequence[Path], *, key: str) -> None:
    """Raise `InputError` where a file lacks a column that the table, an entry under `key`, names.

    A key of JSON Lines may be missing in some files, but not in the first records of all.
    """
    if not paths:
        raise InputError(f"Configuration key {key}.files: there is no file {table.files}.")
    found = {path: columns_in(table, path) for path in paths}
    if all(isinstance(table.format_of(str(path)), JsonLinesFormat) for path in paths):
        found = {paths[0]: list(dict.fromkeys(name for names in found.values() for name in names))}
    for path, names in found.items():
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{path} has two columns {shown(twice)}; name all in {key}.format.header, or rename one.")
        for column, name in named_columns(table):
            if (name if isinstance(table.format_of(str(path)), TEXT) else first_key(name, names)) not in names:
                raise InputError(
                    f"{path} has no column {shown(name)}, which {key}.columns.{column} names; it has {_listed(names)}."
                )


def columns_in(table: TableFiles, path: Path) -> list[str]:
    """The columns of a file, or the keys of the first records. Raises `InputError` where it is broken."""
    form = table.format_of(str(path))
    if isinstance(form, TEXT):
        with open_text(form, path) as (reader, _):
            return list(reader.schema.names)
    if isinstance(form, JsonLinesFormat):
        with explained(path), open_lines(path) as file:
            lines = islice(iter(lambda: file.readline(LONGEST_LINE), b""), RECORDS)
            return list(dict.fromkeys(key for line in lines for key in _keys(line)))
    with explained_parquet(path):
        return list(pq.read_schema(path).names)


def first_key(name: str, columns: Iterable[str]) -> str:
    """The column that a name begins with: itself, if there is one of that name, or what stands before the first dot."""
    return name if name in columns else name.partition(".")[0]


def _keys(line: bytes) -> list[str]:
    """The keys of an object; none of what is no object, which is counted where it is read."""
    try:
        record = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return []
    return list(record) if isinstance(record, dict) else []


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "none: no line of it, or item of a list, is an object with keys"
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(map(shown, names[:MOST_NAMES])) + more
