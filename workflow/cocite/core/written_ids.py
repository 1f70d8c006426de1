"""Corpus ids, whole numbers below 2⁶³: written in JSON, text files, names of documents and columns; and looked up.

Texts that are no papers (a sentence that cites, a user-supplied query or document) have negative ids, which follow from
their content: −1 less the low 62 bits of an MD5 digest. So the same text has the same id in every set. Among ten
million texts, two share an id with a chance of one in a hundred thousand.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

LARGEST_ID = 2**63 - 1
DIGITS = "0{0,21}[0-9]{1,19}"
"""A regular expression of all corpus ids, with up to 40 digits, and of larger numbers that still fit into 64 bits."""
EXACT = {16: 1 << 11, 32: 1 << 24, 64: 1 << 53}
"""The number from which on neighbouring whole numbers can be the same floating-point number of so many bits."""
WHOLE_DECIMAL = r"[0-9]{1,16}\.0*"
"""A regular expression of the decimals that may represent a whole number below `EXACT[64]`."""
_TEXTS = (pa.types.is_large_string, pa.types.is_string_view)
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
_LISTS = (
    *(pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list),
    *(pa.types.is_list_view, pa.types.is_large_list_view),
)

Ids = NDArray[np.int64]
"""Corpus ids, or places of papers."""
Places = NDArray[np.intp]
Texts = TypeVar("Texts", pa.Array, pa.ChunkedArray)
Number = TypeVar("Number", bound=np.generic)

LOW_BITS = 2**62 - 1
NOT_A_WORD = re.compile(r"[\W_]+")


def is_id(value: Any) -> bool:
    """Whether a value of JSON is a corpus id: a whole number, plain or as a string of digits."""
    if isinstance(value, str):
        return re.fullmatch(DIGITS, value) is not None and int(value) <= LARGEST_ID
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_ID


def without_decimals(text: str) -> str:
    """A text, with a decimal such as 1000.0 replaced by the whole number if it can represent no other."""
    number = text.partition(".")[0]
    return number if re.fullmatch(WHOLE_DECIMAL, text) and int(number) < EXACT[64] else text


def ids_in(texts: Texts) -> Texts:
    """The corpus ids in a column of texts; null if a text is not an id."""
    is_number = pc.match_substring_regex(texts, f"^(?:{DIGITS})$")
    numbers = pc.cast(pc.if_else(is_number, texts, pa.scalar(None, pa.string())), pa.uint64())
    is_small_enough = pc.less_equal(numbers, pa.scalar(LARGEST_ID, pa.uint64()))
    return pc.cast(pc.if_else(is_small_enough, numbers, None), pa.int64())


def look_up(rising: NDArray[Any], asked: NDArray[Any]) -> tuple[Places, NDArray[np.bool_]]:
    """The position of each number in a rising array, and whether it is present; if not, the position is arbitrary.

    Used where a set of ids (`core.id_sets`) would be too large, or numbers are not ids.
    """
    if len(rising) == 0:
        return np.zeros(asked.shape, dtype=np.intp), np.zeros(asked.shape, dtype=np.bool_)
    places = np.minimum(np.searchsorted(rising, asked), len(rising) - 1)
    return places, rising[places] == asked


def distinct(*numbers: NDArray[Number]) -> NDArray[Number]:
    """The different numbers of some arrays, rising.

    NumPy's `unique` hashes them, which takes 30 to 50 times as long for a million different ones, and more memory.
    """
    rising = np.sort(np.concatenate(numbers))
    return rising[np.append(True, rising[1:] != rising[:-1])[: len(rising)]]


def plain(column: Any) -> Any:
    """A column of a user-supplied file as strings, numbers, or lists of them; of another type, as it is.

    Parquet keeps the Arrow type that a file was written from: categories of pandas are dictionaries, texts of Polars
    views, its lists large ones or views, and tensors extensions. Bytes become strings if they are UTF-8.
    """
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(column.storage) if _is(kind.storage_type, (*_LISTS, *_TEXTS, pa.types.is_string)) else column
    if pa.types.is_dictionary(kind):
        return plain(column.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(column))
    if _is(kind, (*_TEXTS, *_BYTES)):
        with suppress(pa.ArrowInvalid):  # bytes of no text
            return column.cast(pa.string())
    return _as_list(column) if _is(kind, _LISTS) else column


def _as_list(column: Any) -> pa.ListArray:
    # Not by a cast: Arrow's cast of list views loses the values of the last list.
    lengths = pc.list_value_length(column).fill_null(0).to_numpy()
    offsets = np.append(0, np.cumsum(lengths, dtype=np.int64))
    values = plain(column.flatten())
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=column.is_null())


def whole_numbers(column: Any) -> Any:
    """A column of decimals, as gaps in a pandas column produce, as whole numbers; null for a decimal that is not one.

    So is a number that its type cannot tell from the next whole number. Exact decimals become their digits.
    """
    kind = column.type
    if pa.types.is_decimal(kind):
        exact = column.cast(pa.decimal256(76, max(kind.scale, 0)))
        whole = pc.if_else(pc.equal(pc.floor(exact), exact), exact, None)
        return whole.cast(pa.decimal256(76, 0)).cast(pa.string())
    if not pa.types.is_floating(kind):
        return column
    numbers = column.cast(pa.float64())
    is_whole = pc.and_(pc.equal(pc.floor(numbers), numbers), pc.less(pc.abs(numbers), float(EXACT[kind.bit_width])))
    return pc.if_else(is_whole, numbers, None).cast(pa.int64())


def corpus_ids(column: Any) -> Any:
    """A column of user-supplied corpus ids, as numbers; null if a value is not an id."""
    return ids_in(whole_numbers(plain(column)).cast(pa.string()))


def _is(kind: pa.DataType, kinds: Any) -> bool:
    return any(test(kind) for test in kinds)


def text_id(title: str | None, abstract: str | None, *, is_query: bool) -> int:
    """The id of a text: a short query, or a document with a title, an abstract or both."""
    parts = (_kind(is_query), title or "", abstract or "")
    digest = hashlib.md5("\0".join(parts).encode(), usedforsecurity=False).digest()
    return -1 - (int.from_bytes(digest) & LOW_BITS)


def text_ids(titles: Iterable[str | None], abstracts: Iterable[str | None], *, is_query: bool) -> NDArray[np.int64]:
    """The ids of several texts, in their order; all of them are short queries, or none is."""
    ids = (text_id(*parts, is_query=is_query) for parts in zip(titles, abstracts, strict=True))
    return np.fromiter(ids, dtype=np.int64)


def sql_of_text_id(title: str, abstract: str, *, is_query: bool) -> str:
    """The id of a text as DuckDB computes it; `title` and `abstract` are expressions of SQL."""
    parts = f"'{_kind(is_query)}' || chr(0) || coalesce({title}, '') || chr(0) || coalesce({abstract}, '')"
    return f"(-1 - (('0x' || substr(md5({parts}), 17))::UBIGINT & {LOW_BITS})::BIGINT)"


def normalised(title: str) -> str:
    """A title as it is compared, by its words: letters and digits, without case and accents, one space between."""
    if not title.isascii():
        letters = unicodedata.normalize("NFKD", title)
        # Cf is the category of soft hyphens and zero-width spaces, which occur within words.
        title = "".join(
            each for each in letters if not unicodedata.combining(each) and unicodedata.category(each) != "Cf"
        )
    return NOT_A_WORD.sub(" ", title.casefold()).strip()


def _kind(is_query: bool) -> str:
    return "query" if is_query else "document"
