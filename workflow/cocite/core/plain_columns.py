"""Columns that people's programs wrote, in the Arrow types that readers here expect: text, numbers, and lists of them.

A Parquet file keeps the Arrow type that it was written from: pandas' categories are dictionaries, Polars' texts are
views or large strings, DuckDB's and Polars' lists are large ones or list views, and tensors are extensions.
"""

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cocite.core.written_ids import EXACT, ids_in

_TEXTS = (pa.types.is_large_string, pa.types.is_string_view)
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
_LISTS = (
    *(pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list),
    *(pa.types.is_list_view, pa.types.is_large_list_view),
)


def plain(column: Any) -> Any:
    """A column as strings, numbers, or lists of them, however Arrow keeps it; of another type, as it is.

    Bytes become strings if they are UTF-8. Takes an array and returns one.
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
    """A column of decimals, as a gap in a pandas column makes them, as whole numbers; null where one is none.

    A number that its type does not tell from the next whole number is none. Exact decimals become their digits.
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
    """A column of corpus ids as people write them, as numbers; null where one is none."""
    return ids_in(whole_numbers(plain(column)).cast(pa.string()))


def _is(kind: pa.DataType, kinds: Any) -> bool:
    return any(test(kind) for test in kinds)
