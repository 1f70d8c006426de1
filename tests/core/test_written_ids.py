"""Ids are read exactly from whatever they are written in, nothing else is one, and texts have ids of their content."""

import decimal
import hashlib
from datetime import date

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.baselines.user_vectors import read_vectors
from cocite.core.errors import InputError
from cocite.core.rows import read_rows
from cocite.core.written_ids import LARGEST_ID, distinct, ids_in, is_id, plain, sql_of_text_id, text_id, text_ids
from cocite.triplets.samplers.file import read_ids as read_triplet_ids

NO_IDS = ["", "-1", "+1", "1.0", "1e3", " 1", "1\n", "١", "x", str(2**63), str(2**64 - 1), str(2**64), "9" * 43]
NAMES, NUMBERS, VECTORS = pa.array(["11", "12", "13"]), pa.array([11, 12, 13]), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
FIXED = pa.array(VECTORS, pa.list_(pa.float32(), 2))
FLAT = pa.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
TEXTS = {
    "dictionary": NAMES.dictionary_encode(),
    "dictionary of large strings": NAMES.cast(pa.large_string()).dictionary_encode(),
    "large string": NAMES.cast(pa.large_string()),
    "string view": NAMES.cast(pa.string_view()),
    "binary": NAMES.cast(pa.binary()),
    "large binary": NAMES.cast(pa.large_binary()),
    "binary view": NAMES.cast(pa.binary_view()),
    "binary of one size": pa.array([b"11", b"12", b"13"], pa.binary(2)),
}
IDS = {
    **TEXTS,
    "dictionary of integers": NUMBERS.dictionary_encode(),
    "unsigned integers": NUMBERS.cast(pa.uint64()),
    "short integers": NUMBERS.cast(pa.int8()),
    "decimals without a fraction": NUMBERS.cast(pa.float64()),
    "short decimals without a fraction": NUMBERS.cast(pa.float16()),
    "exact decimals": pa.array([decimal.Decimal(number) for number in (11, 12, 13)], pa.decimal128(10, 0)),
    "exact decimals of two places": pa.array([decimal.Decimal(f"{number}.00") for number in (11, 12, 13)]),
}
LISTS = {
    "list": pa.array(VECTORS, pa.list_(pa.float64())),
    "large list": pa.array(VECTORS, pa.large_list(pa.float32())),
    "list of one size": FIXED,
    "list view": pa.array(VECTORS, pa.list_view(pa.float32())),
    "large list view": pa.array(VECTORS, pa.large_list_view(pa.float64())),
    "half floats": pa.array(VECTORS, pa.list_(pa.float16())),
    "integers": pa.array([[1, 2], [3, 4], [5, 6]], pa.large_list(pa.int8())),
    "decimals": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.decimal128(5, 1))),
    "list of a dictionary": pa.ListArray.from_arrays([0, 2, 4, 6], FLAT.dictionary_encode()),
    "tensor": pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), [2]), FIXED),
}


@given(st.integers(0, LARGEST_ID), st.integers(0, 21))
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


def write(folder, **columns):
    pq.write_table(pa.table(columns), folder / "t.parquet")
    return folder / "t.parquet"


@pytest.mark.parametrize(
    ("ids", "vectors"), [*((ids, VECTORS) for ids in IDS.values()), *((NAMES, vectors) for vectors in LISTS.values())]
)
def test_ids_and_vectors_may_be_of_any_type(tmp_path, ids, vectors):
    found = read_vectors([write(tmp_path, id=ids, vector=vectors)], ["11", "12", "13"])
    assert [found.matrix[found.rows[name]].tolist() for name in ("11", "12", "13")] == VECTORS


def in_fields(ids):
    return {name: pa.StructArray.from_arrays([ids], ["corpus_id"]) for name in ("query", "pos", "neg")}


@pytest.mark.parametrize("kind", IDS)
def test_ids_of_triplets_may_be_of_any_type_in_a_column_or_a_field(tmp_path, kind):
    for columns in (
        dict.fromkeys(("query", "positive", "negative"), IDS[kind]),
        in_fields(IDS[kind]),
        dict.fromkeys(("query.corpus_id", "pos.corpus_id", "neg.corpus_id"), IDS[kind]),
    ):
        [ids] = read_triplet_ids(write(tmp_path, **columns))
        assert [column.to_pylist() for column in ids] == [[11, 12, 13]] * 3


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (pa.array([2047.0, 2049.0, 3.0], pa.float16()), [2047, None, 3]),
        (pa.array([2.0**24 - 1, 2.0**24 + 1, 3.0], pa.float32()), [2**24 - 1, None, 3]),
        (pa.array([2.0**53 - 1, 2.0**53 + 1, 3.0], pa.float64()), [2**53 - 1, None, 3]),
        (pa.array([1e11, float("nan"), 123456789012.0]), [10**11, None, 123456789012]),
        (pa.array([1e11, 1.5, float("inf")]), [10**11, None, None]),
        (pa.array([decimal.Decimal("11.00"), decimal.Decimal("1.50"), None]), [11, None, None]),
        (pa.array([11, 12, None], pa.decimal32(9, 0)).cast(pa.decimal32(9, 1)), [11, 12, None]),
    ],
)
def test_of_decimals_only_those_that_are_exact_whole_numbers_are_ids(tmp_path, ids, expected):
    for columns in (dict.fromkeys(("query", "positive", "negative"), ids), in_fields(ids)):
        [found] = read_triplet_ids(write(tmp_path, **columns))
        assert [column.to_pylist() for column in found] == [expected] * 3


@pytest.mark.parametrize("kind", TEXTS)
def test_texts_of_pairs_may_be_of_any_type_in_a_column_or_a_list(tmp_path, kind):
    listed = pa.ListArray.from_arrays([0, 2, 2, 3], TEXTS[kind])
    rows = [row.values for row in read_rows(write(tmp_path, query=TEXTS[kind], positives=listed))]
    expected = [("11", ["11", "12"]), ("12", []), ("13", ["13"])]
    assert [(row["query"], row["positives"]) for row in rows] == expected


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list, pa.list_view, pa.large_list_view])
def test_lists_keep_gaps_and_all_of_their_items(kind):
    values = [["a", "b"], None, [], ["c", None]]
    for column in (pa.array(values, kind(pa.string())), pa.array([*values, ["x"]], kind(pa.string())).slice(0, 4)):
        assert plain(column).to_pylist() == values
        assert plain(column).type == pa.list_(pa.string())
    assert plain(pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2))).to_pylist() == [[1, 2], None, [3, 4]]
    assert plain(pc.run_end_encode(pa.array(["a", "a", "b"]))).to_pylist() == ["a", "a", "b"]


@pytest.mark.parametrize(
    "ids",
    [
        *([1.0, 2.5, 3.0], [1.0, None, 3.0], [1.0, 2.0**53, 2.0]),
        *([1e11, float("nan"), 1e12], [1e11, float("inf"), 1e12]),
        *(pa.array([2048.0, 1.0, 2.0], pa.float16()), pa.array([1.0, 2.0**24, 2.0], pa.float32())),
        *([True, False, True], [date(2020, 1, day) for day in (1, 2, 3)], [None, None, None]),
        *([b"\xff\xfe", b"\x80", b"b"], [["a"], ["b"], ["c"]], [{"x": 1}, {"x": 2}, {"x": 3}]),
        [decimal.Decimal("1.5"), decimal.Decimal("2.5"), decimal.Decimal("3.5")],
        pa.array(["a", None, "c"]).dictionary_encode(),
    ],
)
def test_what_can_be_no_id_is_refused_with_its_column(tmp_path, ids):
    with pytest.raises(InputError, match=r"t\.parquet, row [12]: id is "):
        read_vectors([write(tmp_path, id=ids, vector=VECTORS)], ["1"])


@pytest.mark.parametrize(
    "vectors",
    [
        pa.array([[1.0, 2.0], None, [5.0, 6.0]], pa.list_view(pa.float32())),
        pa.array([[1.0, 2.0], None, [5.0, 6.0]], pa.list_(pa.float32(), 2)),
        pa.array([[1.0, 2.0], [3.0, None], [5.0, 6.0]], pa.large_list_view(pa.float32())),
        pa.array([[1.0, 2.0], [3.0], [5.0, 6.0, 7.0]], pa.list_view(pa.float32())),
        *([["1", "2"]] * 3, [[True, False]] * 3, [[[1.0], [2.0]]] * 3, [1.0, 2.0, 3.0], [b"\0" * 8] * 3),
    ],
)
def test_what_can_be_no_vector_is_refused_with_its_row(tmp_path, vectors):
    with pytest.raises(InputError, match=r"t\.parquet, row [12]: "):
        read_vectors([write(tmp_path, id=["a", "b", "c"], vector=vectors)], ["a"])


@given(st.lists(st.lists(st.integers(-3, 12)), min_size=1, max_size=3))
def test_different_numbers_rise_and_come_once(lists):
    found = distinct(*(np.array(each, np.int64) for each in lists))
    assert found.tolist() == sorted({number for each in lists for number in each})


ANY_TEXT = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def by_definition(title, abstract, is_query):
    kind = b"query" if is_query else b"document"
    content = b"\0".join([kind, (title or "").encode(), (abstract or "").encode()])
    return -1 - int(hashlib.new("md5", content, usedforsecurity=False).hexdigest(), 16) % 2**62


@given(st.lists(st.tuples(ANY_TEXT, ANY_TEXT), max_size=8), st.booleans())
def test_negative_ids_follow_from_the_content_of_texts_one_by_one_for_many_and_in_duckdb(pairs, is_query):
    expected = [by_definition(*pair, is_query) for pair in pairs]
    titles, abstracts = ([pair[side] for pair in pairs] for side in (0, 1))
    assert [text_id(*pair, is_query=is_query) for pair in pairs] == expected
    assert text_ids(titles, abstracts, is_query=is_query).tolist() == expected
    texts = pa.table({"t": pa.array(titles, pa.string()), "a": pa.array(abstracts, pa.string())})
    query = f"SELECT {sql_of_text_id('t', 'a', is_query=is_query)} FROM texts"
    assert duckdb.from_arrow(texts).query("texts", query).fetchall() == [(each,) for each in expected]


def test_a_query_and_a_document_of_the_same_words_are_two_texts():
    assert text_id("citations", None, is_query=True) != text_id("citations", None, is_query=False)
    assert text_id("citations", None, is_query=True) == text_id("citations", "", is_query=True)
