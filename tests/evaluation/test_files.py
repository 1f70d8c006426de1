"""Tables of text are read row by row."""

import pytest

from cocite.core.errors import InputError
from cocite.evaluation.preparation.files import read_delimited


def test_what_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InputError, match="file: not UTF-8"):
        list(read_delimited(path, 1, ",", header=False))


def test_a_byte_order_mark_is_no_part_of_the_first_field(tmp_path):
    path = tmp_path / "file"
    path.write_text("a b\n", encoding="utf-8-sig")
    assert [fields for _, fields in read_delimited(path, 2, " ", header=False)] == [["a", "b"]]
