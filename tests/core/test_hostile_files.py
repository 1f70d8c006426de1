"""Whatever is in a file that people bring, a reader takes it or refuses it in a sentence with its name."""

import gzip
import json
import os
import re
import struct
import zipfile
from collections import Counter
from unittest.mock import ANY

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.baselines.user_vectors import read_vectors
from cocite.core.errors import InputError
from cocite.core.rows import read_items, read_members, read_rows
from cocite.triplets.mined_pairs import PAIR, deal_out_scores, read_msmarco
from cocite.triplets.pair_layouts import read_specter, read_text_rows
from cocite.triplets.samplers.file import read_ids as read_triplet_ids
from cocite.triplets.samplers.pairs import MsMarco, Scored

IDS, VECTORS = ["a", "b", "c"], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
LONG, DEEP = "9" * 5_000, "[" * 100_000 + "]" * 100_000
HOSTILE = {
    "a number of 5,000 digits": LONG,
    "a number of 4,000 digits": "9" * 4_000,
    "a list of a number of 4,000 digits": f"[{'9' * 4_000}, 1]",
    "deep nesting": DEEP,
    "nesting that JSON takes": "[" * 900 + "]" * 900,
    "deep objects": '{"a":' * 50_000 + "1" + "}" * 50_000,
    "half of a surrogate pair": '"a\\ud83d b"',
    "a control character": '"a\x01b"',
    "bytes that are not UTF-8": '"\udcff"',
    **{value: value for value in ("NaN", "1e999", "true", '{"a": {}}', "[[1, 2], [3, 4]]", "[null, 1.0]", '"a')},
}


def line_with(row, key, value):
    """A line of JSON in which a key has a value that Python would not write."""
    members = (f"{json.dumps(name)}: {value if name == key else json.dumps(given)}" for name, given in row.items())
    return ("{" + ", ".join(members) + "}\n").encode("utf-8", "surrogateescape")


def refused_or(expected, read, path):
    """That what is read is what was expected, or that it is refused in a sentence with the name of the file."""
    try:
        return read(path) == expected
    except InputError as error:
        return str(path) in str(error)


READ_OBJECT = (lambda path: list(read_members(path)), lambda path: list(read_items(path, "1")))


def vectors_in(path):
    found = read_vectors([path], IDS)
    return {name: found.matrix[row].tolist() for name, row in found.rows.items()}


@pytest.mark.parametrize("key", ["id", "vector"])
@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_value_in_json_lines_of_vectors_is_named_by_its_line(tmp_path, key, value):
    rows = [{"id": name, "vector": vector} for name, vector in zip(IDS, VECTORS, strict=True)]
    lines = [json.dumps(row).encode() + b"\n" for row in rows]
    lines[1] = line_with(rows[1], key, HOSTILE[value])
    (tmp_path / "v.jsonl").write_bytes(b"".join(lines))
    if (key, value) == ("id", "a number of 4,000 digits"):
        assert vectors_in(tmp_path / "v.jsonl").keys() == {"a", "c"}  # an id of nothing that is asked for
        return
    with pytest.raises(InputError, match=r"v\.jsonl, line 2: "):
        vectors_in(tmp_path / "v.jsonl")


@pytest.mark.parametrize("key", ["query", "positives", "negatives", "negative_scores"])
@pytest.mark.parametrize("value", [name for name in HOSTILE if name not in ('{"a": {}}', "a control character")])
def test_a_hostile_value_in_rows_of_texts_is_named_by_its_line(tmp_path, key, value):
    row = {"query": "q", "positives": ["p"], "negatives": ["n"], "positive_scores": [1.0], "negative_scores": [0.5]}
    (tmp_path / "r.jsonl").write_bytes(json.dumps(row).encode() + b"\n" + line_with(row, key, HOSTILE[value]))
    with pytest.raises(InputError, match=r"r\.jsonl, line 2: "):
        list(read_text_rows(tmp_path, (), Scored(margin=0.1)).examples(Counter()))


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_value_in_a_large_object_is_refused_or_a_value(tmp_path, value):
    (tmp_path / "o.json").write_bytes(line_with({"1": None}, "1", '{"count": ' + HOSTILE[value] + "}"))
    for read in READ_OBJECT:
        assert refused_or(ANY, read, tmp_path / "o.json")


@pytest.mark.parametrize(
    "text", ['["]",' * 20_000, '{"}": [' * 1_000, r'["\\", "\"]", ' * 1_001, " " * 65_530 + "[" * 1_000]
)
def test_nesting_is_as_deep_as_its_brackets_outside_texts(tmp_path, text):
    (tmp_path / "o.json").write_text('{"1": ' + text)
    for read in READ_OBJECT:
        with pytest.raises(InputError, match=r"o\.json: not JSON that can be read \(nested too deeply\)"):
            read(tmp_path / "o.json")


@pytest.mark.parametrize("length", range(65_490, 65_540, 3))
def test_brackets_in_texts_are_no_levels_wherever_a_read_ends(tmp_path, length):
    values = {" " * length: '\\"[{' * 20, "b": [["[" * 2_000, '"{' * 2_000]] * 3}
    (tmp_path / "o.json").write_text(json.dumps(values))
    assert dict(read_members(tmp_path / "o.json")) == values


INTEGERS = st.integers(-(2**62), 2**62)
VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(), VALUES, max_size=6), st.sampled_from([None, 2]))
def test_members_are_those_of_the_whole_object(tmp_path, members, indent):
    (tmp_path / "o.json").write_text(json.dumps(members, indent=indent), encoding="utf-8")
    assert dict(read_members(tmp_path / "o.json")) == members


@pytest.mark.parametrize(
    "text", [b"", b"[1]", b'{"a": 3', b'{"a" 3}', b'{"a": 3 "b": 4}', b'{"a": }', b'{"a": 3,}', b'{"a": "\xff"}']
)
def test_what_is_no_object_is_refused(tmp_path, text):
    (tmp_path / "o.json").write_bytes(text)
    with pytest.raises(InputError, match=r"o\.json: not (a JSON object|JSON)"):
        list(read_members(tmp_path / "o.json"))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("neg", '{"bm25": "35"}', "neg must have a list for the system 'bm25', not '35'"),
        ("neg", '{"bm25": {"3": 1, "5": 2}}', "neg must have a list for the system 'bm25', not {'3': 1, '5': 2}"),
        ("neg", '{"bm25": 5}', "neg must have a list for the system 'bm25', not 5"),
        ("neg", '{"bm25": null}', "neg must have a list for the system 'bm25', not None"),
        ("neg", '{"bm25": ["\\ud83d"]}', "neg contains half of a surrogate pair"),
        ("neg", '{"bm25": [true]}', "neg must be a string or an integer, not True"),
        ("pos", '["\\ud83d"]', "pos contains half of a surrogate pair"),
        ("pos", '[3, "\\ud83d"]', "pos contains half of a surrogate pair"),
        ("pos", '{"3": 1}', "pos must be a string or an integer, not {'3': 1}"),
    ],
)
def test_a_hostile_value_in_mined_negatives_is_named_by_its_line(tmp_path, key, value, said):
    row, path = {"qid": 1, "pos": [2], "neg": {"bm25": [3]}}, tmp_path / "msmarco-hard-negatives.jsonl"
    path.write_bytes(json.dumps(row).encode() + b"\n" + line_with(row, key, value))
    layout = MsMarco(kind="msmarco", per_system=None)
    with pytest.raises(InputError, match=re.escape(f"negatives.jsonl, line 2: {said}")):
        list(read_msmarco(tmp_path, tmp_path, None, layout, tmp_path).examples(Counter()))


def whole_npz(path, **arrays):
    with path.open("wb") as file:
        np.savez(file, **{"ids": np.array(IDS), "vectors": np.array(VECTORS), **arrays})
    return path.read_bytes()


def npy(header, content=b""):
    """An array as a file, with a header as it is given."""
    text = header.encode()
    text += b" " * (63 - (10 + len(text)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content


def misread(path, places, bits, read):
    """The places at which some changed bits of a byte let a file be read otherwise, or be refused without its name."""
    content, expected, found = path.read_bytes(), read(path), []
    for place in places:
        path.write_bytes(content[:place] + bytes([content[place] ^ bits]) + content[place + 1 :])
        found += [] if refused_or(expected, read, path) else [place]
    return found


def test_an_npz_that_is_cut_or_spoilt_anywhere_is_refused_or_read_as_it_was(tmp_path):
    path = tmp_path / "v.npz"
    content = whole_npz(path)
    assert vectors_in(path) == dict(zip(IDS, VECTORS, strict=True))
    assert misread(path, range(0, len(content), 11), 0xFF, vectors_in) == []
    for length in range(0, len(content), 37):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match=r"v\.npz: not a readable NPZ file"):
            vectors_in(path)


OF_SHAPE = "{'descr': '<f8', 'fortran_order': False, 'shape': "


@pytest.mark.parametrize(
    "vectors",
    [
        b"",
        b"hello",
        npy(OF_SHAPE + "(3, 1000000000000)}"),
        npy(OF_SHAPE + "(3, -2)}"),
        npy(OF_SHAPE + "(3, 2)}", b"\0" * 8),
        npy(OF_SHAPE + "(3, " + LONG + ")}"),
        npy("{'descr': "),
        npy("{'descr': " + "(" * 3_000 + "'<f8'" + ")" * 3_000 + ", 'fortran_order': False, 'shape': (3, 2)}"),
        npy("{'descr': 'nonsense', 'fortran_order': False, 'shape': (3, 2)}"),
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (3,)}", b"\0" * 8),
        b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 31),
    ],
)
def test_an_npz_with_an_array_that_is_none_is_refused(tmp_path, vectors):
    np.savez(tmp_path / "v.npz", ids=np.array(IDS))
    with zipfile.ZipFile(tmp_path / "v.npz", "a") as archive:
        archive.writestr("vectors.npy", vectors)
    with pytest.raises(InputError, match=r"v\.npz"):
        vectors_in(tmp_path / "v.npz")


def test_an_npz_with_ids_of_characters_that_there_are_not_is_refused(tmp_path):
    whole_npz(tmp_path / "v.npz", ids=np.array([97, 98, 0x00FFFFFF], np.uint32).view("<U1"))
    with pytest.raises(InputError, match=r"v\.npz: not a readable NPZ file"):
        vectors_in(tmp_path / "v.npz")


def test_an_empty_vector_is_refused(tmp_path):
    whole_npz(tmp_path / "v.npz", vectors=np.empty((3, 0)))
    empty = pa.array([[], [], []], pa.list_(pa.float32()))
    pq.write_table(pa.table({"id": IDS, "vector": empty}), tmp_path / "v.parquet")
    (tmp_path / "v.jsonl").write_text("".join(json.dumps({"id": each, "vector": []}) + "\n" for each in IDS))
    for name, place in (("v.npz", "row"), ("v.parquet", "row"), ("v.jsonl", "line")):
        with pytest.raises(InputError, match=rf"{name}, {place} 1: "):
            vectors_in(tmp_path / name)


def test_a_gzip_file_that_is_cut_or_spoilt_anywhere_is_refused_or_read_as_it_was(tmp_path):
    path, rows = tmp_path / "r.jsonl.gz", [{"n": number} for number in range(40)]
    content = gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())
    path.write_bytes(content)

    def read(path):
        return [row.values for row in read_rows(path)]

    assert read(path) == rows
    assert misread(path, range(len(content)), 0x10, read) == []
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        said = "" if length else r": not a whole gzip file \(it is empty\)"
        with pytest.raises(InputError, match=rf"r\.jsonl\.gz{said}"):
            read(path)


def test_a_parquet_file_with_checksums_that_is_spoilt_anywhere_is_refused_or_read_as_it_was(tmp_path):
    path = tmp_path / "v.parquet"
    pq.write_table(pa.table({"id": IDS, "vector": VECTORS}), path, write_page_checksum=True)
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    assert vectors_in(path) == dict(zip(IDS, VECTORS, strict=True))
    assert misread(path, range(0, footer, 3), 0x04, vectors_in) == []


def test_lists_of_names_that_are_not_utf8_are_named(tmp_path):
    (tmp_path / "data.json").write_text('{"1": {"2": {"count": 5}}}')
    (tmp_path / "metadata.json").write_text("{}")
    (tmp_path / "train.txt").write_bytes("1\n".encode("utf-16"))
    with pytest.raises(InputError, match=r"train\.txt: not a readable file of text \(.*utf-8"):
        list(read_specter(tmp_path, ()).examples(Counter()))


NOT_UTF8 = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff\xfe"]).buffers())


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"qid": [1, None], "pid": [1, 2], "score": [0.1, 0.2]}, "row 2: "),
        ({"qid": [1, 2], "pid": [1.5, 2.5], "score": [0.1, 0.2]}, "row 1: pid must be a string or an integer"),
        ({"qid": [1, 2], "pid": [[1, 2], [3]], "score": [[0.1], [0.2, 0.3]]}, "row 1: score must be a list of 2 num"),
        ({"qid": [1, 2], "pid": [[1, 2], [3]], "score": [0.1, 0.2]}, "row 1: score must be a list of 2 numbers"),
        ({"qid": [1, 2], "pid": [1, 2], "score": ["0.1", "0.2"]}, "row 1: score must be a number"),
        ({"qid": NOT_UTF8, "pid": ["2"], "score": [0.5]}, "s.parquet: not a readable Parquet file"),
        ({"qid": ["1"], "pid": NOT_UTF8, "score": [0.5]}, "s.parquet: not a readable Parquet file"),
    ],
)
def test_scores_that_would_be_those_of_other_documents_are_refused(tmp_path, columns, said):
    pq.write_table(pa.table(columns), tmp_path / "s.parquet")
    with pytest.raises(InputError, match=said):
        deal_out_scores([tmp_path / "s.parquet"], tmp_path)


@pytest.mark.parametrize("read", [read_rows, vectors_in])
def test_texts_of_parquet_that_are_not_utf8_are_refused(tmp_path, read):
    pq.write_table(pa.table({"id": NOT_UTF8, "vector": [[1.0, 2.0]]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"t\.parquet: not a readable Parquet file \(.*(UTF8|utf-8)"):
        list(read(tmp_path / "t.parquet"))


def test_a_byte_order_mark_is_no_part_of_a_name_and_no_text_holds_a_nul_byte(tmp_path):
    path, lines = tmp_path / "s.tsv", "1\t2\t0.5\n1\t3\t0.25\n"
    path.write_text(lines, encoding="utf-8-sig")
    deal_out_scores([path], tmp_path)
    found = [tuple(pair) for part in range(64) for pair in np.fromfile(tmp_path / f"scores-{part}", PAIR).tolist()]
    assert found == [(3, 4, 0.5), (3, 6, 0.25)]
    path.write_bytes(lines.encode() + bytes(20))
    with pytest.raises(InputError, match=r"s\.tsv, line 3: contains a NUL byte"):
        deal_out_scores([path], tmp_path)


@pytest.mark.parametrize("name", ["v.jsonl", "v.parquet", "v.npz"])
def test_nobody_waits_for_the_writer_of_a_pipe(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(InputError, match=rf"{re.escape(name)} is a pipe and no file"):
        vectors_in(tmp_path / name)


def test_of_columns_of_one_name_none_is_read(tmp_path):
    pq.write_table(pa.table([pa.array(IDS)] * 2, names=["query", "query"]), tmp_path / "r.parquet")
    with pytest.raises(InputError, match=r"r\.parquet: has several columns query"):
        list(read_rows(tmp_path / "r.parquet"))


@pytest.mark.parametrize("read", [read_rows, read_triplet_ids])
def test_a_footer_that_counts_fewer_rows_than_it_had_is_refused(tmp_path, read):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(dict.fromkeys(("query", "positive", "negative"), range(100))), path)
    before, after = path.read_bytes().rsplit(b"\x16\xc8\x01", 1)  # the rows of the last row group, in Thrift's encoding
    path.write_bytes(before + b"\x16\x88\x01" + after)
    with pytest.raises(
        InputError, match=r"t\.parquet: not a readable Parquet file \(68 rows are in its pages, and 100"
    ):
        list(read(path))
