"""Corpus ids, whole numbers below 2⁶³: written in JSON, text files and names of documents; and looked up."""

import re
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

LARGEST_ID = 2**63 - 1
"""The largest corpus id; ids are whole numbers from 0 on."""
DIGITS = "0{0,21}[0-9]{1,19}"
"""A regular expression of all corpus ids, with up to 40 digits, and of larger numbers that still fit into 64 bits."""
EXACT = {16: 1 << 11, 32: 1 << 24, 64: 1 << 53}
"""The number from which on neighbouring whole numbers can be the same floating-point number of so many bits."""
WHOLE_DECIMAL = r"[0-9]{1,16}\.0*"
"""A regular expression of the decimals that may stand for a whole number below `EXACT[64]`."""

Places = NDArray[np.intp]
Texts = TypeVar("Texts", pa.Array, pa.ChunkedArray)


def is_id(value: Any) -> bool:
    """Whether a value of JSON is a corpus id: a whole number, plain or as a string of digits."""
    if isinstance(value, str):
        return re.fullmatch(DIGITS, value) is not None and int(value) <= LARGEST_ID
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_ID


def without_decimals(text: str) -> str:
    """A text; the whole number instead of a decimal that stands for one, such as 1000.0, if none other could."""
    number = text.partition(".")[0]
    return number if re.fullmatch(WHOLE_DECIMAL, text) and int(number) < EXACT[64] else text


def ids_in(texts: Texts) -> Texts:
    """The corpus ids in a column of texts; null where a text is none."""
    is_number = pc.match_substring_regex(texts, f"^(?:{DIGITS})$")
    numbers = pc.cast(pc.if_else(is_number, texts, pa.scalar(None, pa.string())), pa.uint64())
    is_small_enough = pc.less_equal(numbers, pa.scalar(LARGEST_ID, pa.uint64()))
    return pc.cast(pc.if_else(is_small_enough, numbers, None), pa.int64())


def look_up(rising: NDArray[Any], asked: NDArray[Any]) -> tuple[Places, NDArray[np.bool_]]:
    """Where each of the asked numbers stands in a rising array, and whether it is there; if not, its place is any.

    It does where a set of ids (`core.id_sets`) would be too much, or numbers are no ids.
    """
    if len(rising) == 0:
        return np.zeros(len(asked), dtype=np.intp), np.zeros(len(asked), dtype=np.bool_)
    places = np.minimum(np.searchsorted(rising, asked), len(rising) - 1)
    return places, rising[places] == asked
