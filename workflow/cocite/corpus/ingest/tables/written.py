"""What programs write in place of a whole number, of nothing, or of a list, as expressions of SQL over a text.

pandas makes decimals of whole numbers where a column has a gap, and writes lists as Python shows them; NumPy, DuckDB
and PostgreSQL have forms of their own. All are read where they have one meaning. Others are refused by `is_refused`, so
that with ids that are texts no such cell becomes the id of a paper.
"""

from cocite.core.tables.sql import as_text
from cocite.core.written_ids import EXACT, WHOLE_DECIMAL

NOTHING = ("nan", "none", "null", "nat", "na", "n/a", "#n/a", "<na>", r"\n")
"""What programs write where there is no id, in small letters; \\N is what MySQL and PostgreSQL do."""

Expression = str

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
"""An id that may stand in braces. PostgreSQL writes such ids in small letters, and a list of one in braces."""
_HOLDS_LIST = (
    rf"""(?s)^\s*(?:(?:\{{|(?:{_TYPE})?[\[(])\s*(?:(?:{_EMPTY}[\s,]+)*['"\[({{]|(?:{_EMPTY}[\s,]*)*[\])}}]\s*$)|"""
    rf"""(?:{_TYPE})?\[[^\[\]]*[,;|][^\[\]]*\]?\s*$|\{{[^{{}}]*[,;|"][^{{}}]*\}}?\s*$|"""
    rf"""(?:{_TYPE})?\({_IN_PARENTHESES}[,;|]{_IN_PARENTHESES}\)\s*$|"""
    rf"""\[\s*(?:[bu]['"]|{_TYPE}\()|{_TYPE}\(0\)\s*$|['"]\s*[\[({{]|{_QUOTED}(?:\s*[,;|]?\s*{_QUOTED})+\s*$)"""
)
"""How a list begins among names, which may stand in brackets themselves, such as [Anonymous]. R writes character(0)."""
_ROUNDED = r"(?i)[-+]?inf(?:inity)?|-?[0-9](?:\.[0-9]*e\+?|e\+)[0-9]{1,3}|[0-9]{16,}\.0*"


def whole_number(text: Expression) -> Expression:
    """A text as `without_decimals` has it."""
    number = f"split_part({text}, '.', 1)"
    is_exact = f"regexp_full_match({text}, '{WHOLE_DECIMAL}') AND TRY_CAST({number} AS BIGINT) < {EXACT[64]}"
    return f"CASE WHEN {is_exact} THEN {number} ELSE {text} END"


def whole_float(number: Expression, bits: int) -> Expression:
    """The text of a number that a Parquet file has as a float: as a whole number if it can stand for no other."""
    is_whole = f"abs({number}) < {EXACT[bits]} AND {number} = trunc({number})"
    return f"""CASE WHEN isnan({number}) THEN NULL WHEN {is_whole} THEN TRY_CAST({number} AS BIGINT)::VARCHAR
        ELSE format('{{:e}}', {number}::DOUBLE) END"""


def is_nothing(text: Expression) -> Expression:
    """Whether a text without spaces around it is empty, or what programs write where there is no id."""
    words = ", ".join(map(as_text, NOTHING))
    return f"CASE WHEN length({text}) > 4 THEN false ELSE trim({text}) = '' OR lower({text}) IN ({words}) END"


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
