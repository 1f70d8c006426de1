"""The contents of a user's file, as SQL expressions over the view `given`: texts, ids and lists.

pandas turns whole numbers into decimals if a column has a gap, and writes lists as Python shows them; NumPy, DuckDB and
PostgreSQL have other forms. All are read if they are unambiguous. `is_refused` rejects the others, so that with text
ids no such cell becomes the id of a paper.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cocite.config.table_files import CitationTable, JsonLinesFormat, ListColumn, PaperTable, ParquetFormat, TableFiles
from cocite.core.tables.places import as_name, as_text
from cocite.core.written_ids import EXACT, WHOLE_DECIMAL
from cocite.corpus.ingest.user_files import columns_in, first_key

NOTHING = ("nan", "none", "null", "nat", "na", "n/a", "#n/a", "<na>", r"\n")
"""How programs write a missing id, in lowercase; \\N is from MySQL and PostgreSQL."""

Expression = str

_WHITE = as_text(" \t\n\r\f\v\u00a0\u2003\u2009\u202f\u3000\ufeff")
"""White space around ids; unless it is told, DuckDB's trim keeps tabs and ends of lines."""

_QUOTED = r"""(?:'(?:[^'\\]|\\['"\\/])*'|"(?:[^"\\]|\\['"\\/])*")"""
_PLAIN = r"""[^\s,;|\\\[\](){}'"]"""
_BARE = rf"{_PLAIN}(?:{_PLAIN}|\({_PLAIN}*\))*"
_EMPTY = r"(?:None|nan|NaN|null|NULL|<NA>)"
_IDS, _TEXTS = f"(?:{_QUOTED}|{_BARE})", f"(?:{_QUOTED}|{_EMPTY})"
_NUMBERS = f"(?:{_QUOTED}|{_EMPTY}|[-+.0-9]+)"
_LIST_OF_IDS, _LIST_OF_TEXTS = (
    rf"(?s)\s*[\[({{]\s*(?:{item}(?:\s*,\s*{item})*\s*,?|{spaced}(?:\s+{spaced})*)?\s*[\])}}]\s*"
    for item, spaced in ((_IDS, _NUMBERS), (_TEXTS, _TEXTS))
)
"""Lists with commas, and those of NumPy with spaces, which in place of commas may be part of other texts."""
_STRING = r"""(?s)'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_UNCLEAR = r"[\[({\s,](?:\.\.\.|[-+]?[0-9]+\.?[0-9]*[eE][-+]?[0-9]+)[\s,\])}]"
"""What NumPy puts in place of the middle of a long list, or a number that may be rounded, outside of strings."""
_IN_PARENTHESES = r"(?:[^()]|\([^()]*\))*"
_TYPE = r"[A-Za-z_][\w.]*"
"""What programs write before the bracket of a list: array, WrappedArray, np.int64."""
_BEGINS_AS_LIST = (
    rf"""(?s)^\s*(?:[\[{{]|{_TYPE}\[|(?:{_TYPE})?\((?:\s*['"\[({{]|{_IN_PARENTHESES}\)?\s*$)|"""
    r"""['"]\s*[\[({]|'.*'\s*$|".*"\s*$)"""
)
_GUID = r"^\s*\{[0-9A-F]{8}(?:-[0-9A-F]{4}){3}-[0-9A-F]{12}\}"
"""An id that may be in braces. PostgreSQL writes such ids in lowercase, and a list of one in braces."""
_HOLDS_LIST = (
    rf"""(?s)^\s*(?:(?:\{{|(?:{_TYPE})?[\[(])\s*(?:(?:{_EMPTY}[\s,]+)*['"\[({{]|(?:{_EMPTY}[\s,]*)*[\])}}]\s*$)|"""
    rf"""(?:{_TYPE})?\[[^\[\]]*[,;|][^\[\]]*\]?\s*$|\{{[^{{}}]*[,;|"][^{{}}]*\}}?\s*$|"""
    rf"""(?:{_TYPE})?\({_IN_PARENTHESES}[,;|]{_IN_PARENTHESES}\)\s*$|"""
    rf"""\[\s*(?:[bu]['"]|{_TYPE}\()|{_TYPE}\(0\)\s*$|['"]\s*[\[({{]|{_QUOTED}(?:\s*[,;|]?\s*{_QUOTED})+\s*$)"""
)
"""The beginning of a list of names, which may be in brackets themselves: [Anonymous]. R writes character(0)."""
_ROUNDED = r"(?i)[-+]?inf(?:inity)?|-?[0-9](?:\.[0-9]*e\+?|e\+)[0-9]{1,3}|[0-9]{16,}\.0*"


def whole_number(text: Expression) -> Expression:
    """A text as `without_decimals` has it."""
    number = f"split_part({text}, '.', 1)"
    is_exact = f"regexp_full_match({text}, '{WHOLE_DECIMAL}') AND TRY_CAST({number} AS BIGINT) < {EXACT[64]}"
    return f"CASE WHEN {is_exact} THEN {number} ELSE {text} END"


def whole_float(number: Expression, bits: int) -> Expression:
    """The text of a number that a Parquet file has as a float: as a whole number if it can represent no other."""
    is_whole = f"abs({number}) < {EXACT[bits]} AND {number} = trunc({number})"
    return f"""CASE WHEN isnan({number}) THEN NULL WHEN {is_whole} THEN TRY_CAST({number} AS BIGINT)::VARCHAR
        ELSE format('{{:e}}', {number}::DOUBLE) END"""


def stripped(text: Expression) -> Expression:
    """A text without white space around it."""
    return f"trim({text}, {_WHITE})"


def is_nothing(text: Expression) -> Expression:
    """Whether a text without spaces around it is empty, or how programs write a missing id."""
    words = ", ".join(map(as_text, NOTHING))
    return f"CASE WHEN length({text}) > 4 THEN false ELSE {stripped(text)} = '' OR lower({text}) IN ({words}) END"


def begins_as_list(text: Expression) -> Expression:
    """Whether the text of an id, or of ids, is a list, or the beginning of one."""
    is_list = _matches_signs(text, _BEGINS_AS_LIST)
    return f"CASE WHEN {is_list} THEN NOT regexp_matches({text}, {as_text(_GUID)}) ELSE false END"


def holds_list(text: Expression) -> Expression:
    """Whether a text that may be a name is a list of names, or the beginning of one."""
    return _matches_signs(text, _HOLDS_LIST)


def is_rounded(text: Expression) -> Expression:
    """Whether an id is a decimal that several whole numbers can have become."""
    return f"regexp_full_match({text}, {as_text(_ROUNDED)})"


def is_refused(text: Expression) -> Expression:
    """Whether a text is the id of no paper, although ids may be any text."""
    return f"({begins_as_list(text)} OR {is_rounded(text)})"


def listed_items(text: Expression, otherwise: Expression, *, ids: bool) -> Expression:
    """The items of a list that was written as text, as JSON or as programs show it; `otherwise` for other texts.

    A list that cannot be read is one item, which `is_refused` or `holds_list` finds.
    """
    is_list, grammar, item = (
        (begins_as_list(text), _LIST_OF_IDS, _IDS) if ids else (holds_list(text), _LIST_OF_TEXTS, _TEXTS)
    )
    bare = rf"""CASE WHEN item[1] IN ('''', '"') THEN regexp_replace(item[2:-2], '\\(.)', '\1', 'g')
        WHEN NOT regexp_full_match(item, '{_EMPTY}') THEN item END"""
    inner = rf"regexp_extract({text}, '(?s)^\s*[\[({{](.*)[\])}}]\s*$', 1)"
    rest = f"regexp_replace({text}, {as_text(_STRING)}, '', 'g')"
    return f"""CASE WHEN NOT {is_list} THEN {otherwise}
        WHEN regexp_matches({rest}, {as_text(_UNCLEAR)}) THEN [{text}]
        WHEN CASE WHEN json_valid({text}) THEN json_type({text}) = 'ARRAY' AND NOT contains(lower({rest}), 'nan')
            ELSE false END
        THEN json_extract_string({text}, '$[*]')
        WHEN regexp_full_match({text}, {as_text(grammar)})
        THEN list_transform(regexp_extract_all({inner}, {as_text("(?s)" + item)}), lambda item: {bare})
        ELSE [{text}] END"""


def _matches_signs(text: Expression, pattern: str) -> Expression:
    # Most cells have neither bracket nor quote, and looking for one takes a fraction of the time.
    has_sign = " OR ".join(f"contains({text}, {as_text(sign)})" for sign in "[({'\"")
    return f"CASE WHEN {has_sign} THEN regexp_matches({text}, {as_text(pattern)}) ELSE false END"


@dataclass(frozen=True, kw_only=True)
class Cells:
    """How the cells of one file are read."""

    value: Callable[[str], Expression]
    """A column as text."""
    items: Callable[[ListColumn, bool], Expression]
    """A column as a list of texts, which are ids or not."""
    is_nested: Callable[[str], Expression]
    """Whether a cell contains a list or an object."""


def cells_of(table: TableFiles, path: Path) -> Cells:
    """How the cells of a file are read: by its format and, in Parquet, by the types of its columns."""
    form = table.format_of(str(path))
    if isinstance(form, JsonLinesFormat):
        return _within_json(as_name, columns_in(table, path))
    if isinstance(form, ParquetFormat):
        return _of_parquet(pq.read_schema(path))
    return Cells(
        value=as_name,
        items=lambda named, ids: _split(as_name(named.column), named.separator, ids=ids),
        is_nested=lambda name: "false",
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
    """The id in a text; null if there is none. A text that is a list is left unchanged, to be rejected."""
    given = stripped(text_in(text, table))
    known, prefix = given, table.prefix or ""
    if table.lowercase:
        known, prefix = f"lower({known})", prefix.lower()
    if prefix:
        pattern = as_text(rf"(?:^|\s){re.escape(prefix)}(\S+)")
        known = f"regexp_extract({known}, {pattern}, 1)"
    return f"""CASE WHEN {begins_as_list(given)} THEN {given}
        WHEN NOT {is_nothing(known)} THEN {whole_number(known)} END"""


def text_in(text: Expression, table: TableFiles) -> Expression:
    """A text; null if it means a missing value."""
    nulls = ", ".join(map(as_text, table.nulls))
    return f"CASE WHEN {text} NOT IN ({nulls}) THEN {text} END" if nulls else text


def _of_parquet(schema: pa.Schema) -> Cells:
    types = {field.name: _plain(field.type) for field in schema}
    nested = _within_json(lambda key: f"to_json({as_name(key)})", schema.names)

    def leaf(name: str) -> pa.DataType:
        key = first_key(name, schema.names)
        return _leaf(types.get(key, pa.null()), [part for part in name[len(key) :].split(".") if part])

    def holds_text(name: str) -> bool:
        return name in types and not pa.types.is_nested(types[name])

    def items(named: ListColumn, ids: bool) -> Expression:
        kind, cell = types.get(named.column, pa.null()), as_name(named.column)
        if holds_text(named.column):
            return _split(_text_of(cell, kind), named.separator, ids=ids)
        is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        if is_list and not pa.types.is_nested(kind.value_type):
            return f"list_transform({cell}, lambda item: {_text_of('item', _plain(kind.value_type))})"
        listed, inner = nested.items(named, ids), leaf(named.column)
        return (
            f"list_transform({listed}, lambda item: {_bounded('item', inner)})"
            if pa.types.is_floating(inner)
            else listed
        )

    def value(name: str) -> Expression:
        return _text_of(as_name(name), types[name]) if holds_text(name) else _bounded(nested.value(name), leaf(name))

    return Cells(
        value=value, items=items, is_nested=lambda name: "false" if holds_text(name) else nested.is_nested(name)
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type of the values, whether they are stored in a dictionary or not."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _leaf(kind: pa.DataType, within: Sequence[str]) -> pa.DataType:
    """The type of the values in a nested column at a path of names; null if there are none."""
    if pa.types.is_struct(kind):
        place = kind.get_field_index(within[0]) if within else -1
        return _leaf(kind.field(place).type, within[1:]) if place >= 0 else pa.null()
    return _leaf(kind.value_type, within) if pa.types.is_nested(kind) and hasattr(kind, "value_type") else _plain(kind)


def _bounded(text: Expression, kind: pa.DataType) -> Expression:
    """The text of a value in JSON, in which a float does not show its number of bits."""
    if not pa.types.is_floating(kind):
        return text
    number = f"TRY_CAST({text} AS DOUBLE)"
    return f"CASE WHEN {number} IS NULL THEN {text} ELSE {whole_float(number, kind.bit_width)} END"


def _text_of(cell: Expression, kind: pa.DataType) -> Expression:
    """A cell of a plain type as text; floats as whole numbers if they represent one."""
    return whole_float(cell, kind.bit_width) if pa.types.is_floating(kind) else f"{cell}::VARCHAR"


def _within_json(column: Callable[[str], Expression], columns: Collection[str]) -> Cells:
    """Cells that are JSON, given the expression of a column; a name with dots selects a nested value."""

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
    """The items of a list that is written as text; no list without text."""
    items = f"string_split({text}, {as_text(separator)})" if separator else f"[{text}]"
    return f"CASE WHEN {stripped(text)} <> '' THEN {listed_items(text, items, ids=ids)} END"
