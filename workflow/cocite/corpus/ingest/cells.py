"""The contents of a user's file, as SQL expressions over the view `given`: texts, ids and lists.

pandas turns whole numbers into decimals if a column has a gap, and writes lists as Python shows them; NumPy, DuckDB and
PostgreSQL have other forms. All are read if they are unambiguous. `is_refused` rejects the others, so that with text
ids no such cell becomes the id of a paper.
"""

import re
from collections.abc import Collection, Sequence
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


def stripped(text: Expression) -> Expression:
    """A text without white space around it."""
    return f"trim({text}, {_WHITE})"


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
    """The items of a list that was written as text, as JSON or as programs show it; `otherwise` for other texts. A list
    that cannot be read is one item, which `is_refused` or `holds_list` finds."""
    of_ids, of_texts = (begins_as_list(text), _LIST_OF_IDS, _IDS), (holds_list(text), _LIST_OF_TEXTS, _TEXTS)
    is_list, grammar, item = of_ids if ids else of_texts
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


class Cells:
    """How the cells of one file are read: of text, a column is the text."""

    def value(self, name: str) -> Expression:
        """A column as text."""
        return as_name(name)

    def items(self, named: ListColumn, ids: bool) -> Expression:
        """A column as a list of texts, which are ids or not; of a text that is a list, its items."""
        return self._split(self.value(named.column), named, ids)

    def _split(self, text: Expression, named: ListColumn, ids: bool) -> Expression:
        items = f"string_split({text}, {as_text(named.separator)})" if named.separator else f"[{text}]"
        return f"CASE WHEN {stripped(text)} <> '' THEN {listed_items(text, items, ids=ids)} END"

    def is_nested(self, name: str) -> Expression:
        """Whether a cell contains a list or an object."""
        return "false"


class JsonCells(Cells):
    """Cells that are JSON, in some columns; a name with dots selects a nested value."""

    def __init__(self, columns: Collection[str]) -> None:
        self.columns = columns

    def value(self, name: str) -> Expression:
        """The text of a value."""
        cell, rest = self._reached(name)
        return f"json_extract_string({cell}, {as_text('$' + rest)})"

    def items(self, named: ListColumn, ids: bool) -> Expression:
        """The items of a list, or the values at a path in the objects of a list."""
        cell, rest = self._reached(named.column)
        # Not self.value: of Parquet, the items are bounded, and not the text of the whole list.
        return f"""CASE
            WHEN json_type({cell}) = 'ARRAY' THEN json_extract_string({cell}, {as_text("$[*]" + rest)})
            WHEN json_type({cell}, {as_text("$" + rest)}) = 'ARRAY'
            THEN json_extract_string({cell}, {as_text("$" + rest + "[*]")})
            ELSE {self._split(JsonCells.value(self, named.column), named, ids)} END"""

    def is_nested(self, name: str) -> Expression:
        """By the type of a value."""
        cell, rest = self._reached(name)
        return f"coalesce(json_type({cell}, {as_text('$' + rest)}) IN ('ARRAY', 'OBJECT'), false)"

    def _reached(self, name: str) -> tuple[Expression, str]:
        key = first_key(name, self.columns)
        return self._cell(key), "".join(f'."{part}"' for part in name[len(key) :].split(".") if part)

    def _cell(self, key: str) -> Expression:
        return as_name(key)


class ParquetCells(JsonCells):
    """Cells of Parquet: nested ones are read as JSON, in which a float does not show its number of bits."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema.names)
        self.types = {field.name: _plain(field.type) for field in schema}

    def value(self, name: str) -> Expression:
        """The text of a value; of a float, of the whole number if it represents one."""
        if self._is_plain(name):
            return _text_of(as_name(name), self.types[name])
        return self._bounded(super().value(name), name)

    def items(self, named: ListColumn, ids: bool) -> Expression:
        """The items of a list of Parquet, of JSON or of text."""
        if self._is_plain(named.column):
            return Cells.items(self, named, ids)
        kind, cell = self.types.get(named.column, pa.null()), as_name(named.column)
        is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        if is_list and not pa.types.is_nested(kind.value_type):
            return f"list_transform({cell}, lambda item: {_text_of('item', _plain(kind.value_type))})"
        listed, bounded = super().items(named, ids), self._bounded("item", named.column)
        return listed if bounded == "item" else f"list_transform({listed}, lambda item: {bounded})"

    def is_nested(self, name: str) -> Expression:
        """By the type of a column."""
        return "false" if self._is_plain(name) else super().is_nested(name)

    def _cell(self, key: str) -> Expression:
        return f"to_json({as_name(key)})"

    def _is_plain(self, name: str) -> bool:
        return name in self.types and not pa.types.is_nested(self.types[name])

    def _bounded(self, text: Expression, name: str) -> Expression:
        key = first_key(name, self.columns)
        kind = _leaf(self.types.get(key, pa.null()), [part for part in name[len(key) :].split(".") if part])
        number = f"TRY_CAST({text} AS DOUBLE)"
        is_float = pa.types.is_floating(kind)
        return f"CASE WHEN {number} IS NULL THEN {text} ELSE {_text_of(number, kind)} END" if is_float else text


def cells_of(table: TableFiles, path: Path) -> Cells:
    """How the cells of a file are read: by its format and, in Parquet, by the types of its columns."""
    form = table.format_of(str(path))
    if isinstance(form, JsonLinesFormat):
        return JsonCells(columns_in(table, path))
    return ParquetCells(pq.read_schema(path)) if isinstance(form, ParquetFormat) else Cells()


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _leaf(kind: pa.DataType, within: Sequence[str]) -> pa.DataType:
    """The type of the values in a nested column at a path of names; null if there are none."""
    if pa.types.is_struct(kind):
        place = kind.get_field_index(within[0]) if within else -1
        return _leaf(kind.field(place).type, within[1:]) if place >= 0 else pa.null()
    return _leaf(kind.value_type, within) if pa.types.is_nested(kind) and hasattr(kind, "value_type") else _plain(kind)


def _text_of(cell: Expression, kind: pa.DataType) -> Expression:
    """A plain value as text, of a float as that of the whole number if it can represent no other."""
    if not pa.types.is_floating(kind):
        return f"{cell}::VARCHAR"
    is_whole = f"abs({cell}) < {EXACT[kind.bit_width]} AND {cell} = trunc({cell})"
    return f"""CASE WHEN isnan({cell}) THEN NULL WHEN {is_whole} THEN TRY_CAST({cell} AS BIGINT)::VARCHAR
        ELSE format('{{:e}}', {cell}::DOUBLE) END"""


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
    missing = f"{stripped(known)} = '' OR lower({known}) IN ({', '.join(map(as_text, NOTHING))})"
    # As `written_ids.without_decimals`.
    number = f"split_part({known}, '.', 1)"
    is_whole = f"regexp_full_match({known}, '{WHOLE_DECIMAL}') AND TRY_CAST({number} AS BIGINT) < {EXACT[64]}"
    return f"""CASE WHEN {begins_as_list(given)} THEN {given}
        WHEN NOT CASE WHEN length({known}) > 4 THEN false ELSE {missing} END
        THEN CASE WHEN {is_whole} THEN {number} ELSE {known} END END"""


def text_in(text: Expression, table: TableFiles) -> Expression:
    """A text; null if it means a missing value."""
    nulls = ", ".join(map(as_text, table.nulls))
    return f"CASE WHEN {text} NOT IN ({nulls}) THEN {text} END" if nulls else text
