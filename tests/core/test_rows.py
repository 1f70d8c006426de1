"""Large JSON objects are read member by member."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.core.errors import InputError
from cocite.core.rows import read_members

INTEGERS = st.integers(-(2**62), 2**62)
VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(
    members=st.dictionaries(st.text(), VALUES, max_size=6),
    indent=st.sampled_from([None, 2]),
)
def test_members_are_those_of_the_whole_object(members, indent):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "object.json"
        path.write_text(json.dumps(members, indent=indent), encoding="utf-8")
        assert dict(read_members(path)) == members


@pytest.mark.parametrize("text", ["", "[1]", '{"a": 3', '{"a" 3}', '{"a": 3 "b": 4}', '{"a": }', '{"a": 3,}'])
def test_what_is_no_object_is_refused(tmp_path, text):
    path = tmp_path / "object.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"object\.json: not "):
        list(read_members(path))


def test_what_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InputError, match=r"file: not JSON .*UTF8"):
        list(read_members(path))
