"""Ids are read exactly from whatever they are written in, and nothing else passes for one."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.core.written_ids import ids_in, is_id

LARGEST = 2**63 - 1
IDS = st.integers(0, LARGEST)
NO_IDS = ["", "-1", "+1", "1.0", "1e3", " 1", "1\n", "١", "x", str(2**63), str(2**64 - 1), str(2**64), "9" * 43]


@given(IDS, st.integers(0, 21))
def test_every_63_bit_number_is_an_id_whether_plain_or_as_digits(number, zeros):
    padded = "0" * zeros + str(number)
    assert is_id(number)
    assert is_id(padded)
    assert ids_in(pa.array([padded, None])).to_pylist() == [number, None]
    assert ids_in(pa.chunked_array([[padded], [None]])).to_pylist() == [number, None]


@pytest.mark.parametrize("text", NO_IDS)
def test_no_other_text_is_an_id(text):
    assert not is_id(text)
    assert ids_in(pa.array([text, "7"])).to_pylist() == [None, 7]


@pytest.mark.parametrize("value", [-1, 2**63, 10**43, 1.0, 2.0**53, True, None, [1], {"id": 1}])
def test_no_other_value_of_json_is_an_id(value):
    assert not is_id(value)
