"""What the cells of a file hold, as expressions of SQL over the view `given`: texts, ids and lists."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cocite.config.table_files import CitationTable, JsonLinesFormat, ListColumn, PaperTable, ParquetFormat, TableFiles
from cocite.core.tables.sql import as_name, as_text
from cocite.corpus.ingest.tables.columns import first_key
from cocite.corpus.ingest.tables.written import (
    Expression,
    begins_as_list,
    is_nothing,
    listed_items,
    whole_float,
    whole_number,
)


@dataclass(frozen=True, kw_only=True)
class Cells:
    """How the cells of one file are read."""

    value: Callable[[str], Expression]
    """A column as text."""
    items: Callable[[ListColumn, bool], Expression]
    """A column as a list of texts, which are ids or not."""
    is_nested: Callable[[str], Expression]
    """Whether a cell holds a list or an object."""


def cells_of(table: TableFiles, path: Path) -> Cells:
    """How the cells of a file are read: by its format and, in Parquet, by the types of its columns."""
    form = table.format_of(str(path))
    if isinstance(form, JsonLinesFormat):
        return _within_json(as_name, ())
    if isinstance(form, ParquetFormat):
        return _of_parquet(pq.read_schema(path))
    return Cells(
        value=as_name,
        items=lambda named, ids: _split(as_name(named.column), named.separator, ids=ids),
        is_nested=_never,
    )


def paper_in(table: PaperTable, cells: Cells) -> Expression:
    """The id of a paper."""
    return id_in(cells.value(table.columns.id), table)


def citing_in(table: CitationTable, cells: Cells) -> Expression:
    """The id of a citing paper."""
    return id_in(cells.value(table.columns.citing), table)


def cited_in(table: CitationTable, cells: Cells) -> Expression:
    """The list of the ids that a row cites; items without an id are null."""
    return f"list_transform({cells.items(table.columns.cited, True)}, lambda item: {id_in('item', table)})"


def id_in(text: Expression, table: TableFiles) -> Expression:
    """The id in a text, null where there is none; a text that is a list is left as it is, to be refused."""
    stripped = f"trim({text_in(text, table)})"
    known, prefix = stripped, table.prefix or ""
    if table.lowercase:
        known, prefix = f"lower({known})", prefix.lower()
    if prefix:
        pattern = as_text(rf"(?:^|\s){re.escape(prefix)}(\S+)")
        known = f"regexp_extract({known}, {pattern}, 1)"
    return f"""CASE WHEN {begins_as_list(stripped)} THEN {stripped}
        WHEN NOT {is_nothing(known)} THEN {whole_number(known)} END"""


def text_in(text: Expression, table: TableFiles) -> Expression:
    """A text, null where it stands for nothing."""
    if not table.nulls:
        return text
    return f"CASE WHEN {text} NOT IN ({', '.join(map(as_text, table.nulls))}) THEN {text} END"


def _of_parquet(schema: pa.Schema) -> Cells:
    types = {field.name: _plain(field.type) for field in schema}
    nested = _within_json(lambda key: f"to_json({as_name(key)})", schema.names)

    def items(named: ListColumn, ids: bool) -> Expression:
        kind, cell = types.get(named.column), as_name(named.column)
        if kind is not None and not pa.types.is_nested(kind):
            return _split(_text_of(cell, kind), named.separator, ids=ids)
        if kind is not None and _is_list(kind) and not pa.types.is_nested(kind.value_type):
            return f"list_transform({cell}, lambda item: {_text_of('item', _plain(kind.value_type))})"
        return _bounded_items(nested.items(named, ids), leaf(named.column))

    def leaf(name: str) -> pa.DataType:
        key = first_key(name, schema.names)
        return _leaf(types.get(key, pa.null()), [part for part in name[len(key) :].split(".") if part])

    def holds_text(name: str) -> bool:
        return name in types and not pa.types.is_nested(types[name])

    return Cells(
        value=lambda name: (
            _text_of(as_name(name), types[name]) if holds_text(name) else _bounded(nested.value(name), leaf(name))
        ),
        items=items,
        is_nested=lambda name: "false" if holds_text(name) else nested.is_nested(name),
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type of the values, whether they are stored in a dictionary or not."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)


def _leaf(kind: pa.DataType, within: Sequence[str]) -> pa.DataType:
    """The type of the values in a nested column that a path of names leads to; null where it leads to none."""
    if pa.types.is_struct(kind):
        place = kind.get_field_index(within[0]) if within else -1
        return _leaf(kind.field(place).type, within[1:]) if place >= 0 else pa.null()
    return _leaf(kind.value_type, within) if pa.types.is_nested(kind) and hasattr(kind, "value_type") else _plain(kind)


def _bounded(text: Expression, kind: pa.DataType) -> Expression:
    """The text of a value in JSON, where a float does not show how many bits it had."""
    if not pa.types.is_floating(kind):
        return text
    number = f"TRY_CAST({text} AS DOUBLE)"
    return f"CASE WHEN {number} IS NULL THEN {text} ELSE {whole_float(number, kind.bit_width)} END"


def _bounded_items(items: Expression, kind: pa.DataType) -> Expression:
    is_float = pa.types.is_floating(kind)
    return f"list_transform({items}, lambda item: {_bounded('item', kind)})" if is_float else items


def _text_of(cell: Expression, kind: pa.DataType) -> Expression:
    """A cell of a plain type as text; floats as the whole numbers that they stand for."""
    return whole_float(cell, kind.bit_width) if pa.types.is_floating(kind) else f"{cell}::VARCHAR"


def _within_json(column: Callable[[str], Expression], columns: Collection[str]) -> Cells:
    """Cells that are JSON, given the expression of a column; a name with dots leads to what lies within."""

    def reached(name: str) -> tuple[Expression, str]:
        key = first_key(name, columns)
        return column(key), "".join(f'."{part}"' for part in name[len(key) :].split(".") if part)

    def value(name: str) -> Expression:
        cell, rest = reached(name)
        return f"json_extract_string({cell}, {as_text('$' + rest)})"

    def items(named: ListColumn, ids: bool) -> Expression:
        cell, rest = reached(named.column)
        return f"""CASE
            WHEN json_type({cell}) = 'ARRAY' THEN json_extract_string({cell}, {as_text("$[*]" + rest)})
            WHEN json_type({cell}, {as_text("$" + rest)}) = 'ARRAY'
            THEN json_extract_string({cell}, {as_text("$" + rest + "[*]")})
            ELSE {_split(value(named.column), named.separator, ids=ids)} END"""

    def is_nested(name: str) -> Expression:
        cell, rest = reached(name)
        return f"coalesce(json_type({cell}, {as_text('$' + rest)}) IN ('ARRAY', 'OBJECT'), false)"

    return Cells(value=value, items=items, is_nested=is_nested)


def _split(text: Expression, separator: str | None, *, ids: bool) -> Expression:
    """The items of a list that is written as text; no list where there is no text."""
    items = f"string_split({text}, {as_text(separator)})" if separator else f"[{text}]"
    return f"CASE WHEN trim({text}) <> '' THEN {listed_items(text, items, ids=ids)} END"


def _never(name: str) -> Expression:
    return "false"
