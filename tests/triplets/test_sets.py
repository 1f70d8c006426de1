"""Triplets that are brought, joined and taken parts of."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocite.ground.errors import InputError

from .blocks import block, rows_of, sample, unserved, write_triplets

TRIPLETS = st.sets(st.tuples(st.integers(1, 6), st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=40)
MANY = [(query, query + 100 + i, 500 + i) for query in range(1, 101) for i in range(4)]


def ids_of(sampled):
    return [row[:3] for row in rows_of(sampled)]


@settings(max_examples=60, deadline=None)
@given(TRIPLETS, TRIPLETS)
def test_a_union_holds_each_triplet_of_its_sets_once(tmp_path_factory, one, other):
    folder = tmp_path_factory.mktemp("sets")
    paths = [write_triplets(folder / "one", one), write_triplets(folder / "other", other)]
    sampled = sample("union", block(range(1, 7), [], paths))
    assert ids_of(sampled) == sorted(one | other)
    assert sampled.omissions["triplets that another set holds as well"] == len(one & other)
    assert sum(unserved(sampled).values()) == 6 - len({row[0] for row in one | other})


@settings(max_examples=60, deadline=None)
@given(TRIPLETS, st.integers(0, 3), st.integers(1, 9), st.sampled_from(["query", "triplet"]))
def test_a_subset_is_a_share_of_each_split(tmp_path_factory, rows, train, tenths, by):
    split = [(*row, "train" if row[0] > train else "validation") for row in rows]
    path = write_triplets(tmp_path_factory.mktemp("sets") / "all", split)
    taken = ids_of(sample("subset", block(range(1, 7), [], [path]), share=tenths / 10, by=by))
    assert set(taken) <= rows
    for part in ({row for row in rows if row[0] > train}, {row for row in rows if row[0] <= train}):
        assert len(part & set(taken)) == round(tenths / 10 * len(part))


def test_a_smaller_part_lies_within_a_larger_one(tmp_path):
    path = write_triplets(tmp_path / "all", MANY)
    for by in ("query", "triplet"):
        small, large = (
            set(ids_of(sample("subset", block(range(1, 101), [], [path]), share=s, by=by))) for s in (0.1, 0.3)
        )
        assert len(small) == 40
        assert len(large) == 120
        assert small < large


def test_whole_queries_are_taken_and_the_same_of_every_set(tmp_path):
    paths = [write_triplets(tmp_path / str(n), [(q, p + n, x) for q, p, x in MANY]) for n in (0, 1)]
    queries = [{row[0] for row in ids_of(sample("subset", block(range(1, 101), [], [p]), count=40))} for p in paths]
    assert len(queries[0]) == 10
    assert queries[0] == queries[1]


def test_a_subset_larger_than_its_set_is_refused(tmp_path):
    path = write_triplets(tmp_path / "all", MANY)
    with pytest.raises(InputError, match="count is 401, but there are only 400"):
        sample("subset", block([1], [], [path]), count=401)


def brought(path, columns):
    pq.write_table(pa.table(columns), path)
    return path


def test_brought_triplets_are_those_of_our_queries_with_texts(tmp_path):
    path = brought(
        tmp_path / "own.parquet",
        {"query": [2, 1, 1, 7, 1, 3], "positive": [20, 10, 11, 10, 10, 99], "negative": [21, 21, 99, 20, 21, 20]},
    )
    sampled = sample("file", block([1, 2, 3, 4], {10, 11, 20, 21}, [path]))
    assert rows_of(sampled) == [(1, 10, 21, None, None, "given"), (2, 20, 21, None, None, "given")]
    assert sampled.omissions["triplets of papers that are no queries"] == 1
    assert sampled.omissions["triplets with a paper without text"] == 2
    assert sampled.omissions["triplets that come again"] == 1
    assert unserved(sampled) == {"none was brought": 1, "theirs hold papers without text, or one twice": 1}


def test_a_brought_triplet_that_holds_a_paper_twice_is_left_out(tmp_path):
    path = brought(tmp_path / "p", {"query": [1, 1, 1, 1], "positive": [1, 2, 2, 2], "negative": [2, 1, 2, 3]})
    sampled = sample("file", block([1], {1, 2, 3}, [path]))
    assert ids_of(sampled) == [(1, 2, 3)]
    assert sampled.omissions["triplets that hold a paper twice"] == 3
    assert sampled.omissions["triplets with a paper without text"] == 0


def test_a_brought_file_that_breaks_off_inside_is_refused(tmp_path):
    path = brought(tmp_path / "p", {"query": [1], "positive": [2], "negative": [3]})
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)  # the first column; the end of the file still declares it
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a readable Parquet file"):
        sample("file", block([1], {2, 3}, [path]))


@pytest.mark.parametrize("name", ["corpus_id", "doc_id"])
def test_triplets_are_read_as_published(tmp_path, name):
    def texts(*ids):
        return [{"title": "t", name: paper, "abstract": "a"} for paper in ids]

    path = brought(tmp_path / "p", {"query": texts("1", "x"), "pos": texts("2", "2"), "neg": texts("3", "3")})
    sampled = sample("file", block([1], {2, 3}, [path]))
    assert ids_of(sampled) == [(1, 2, 3)]
    assert sampled.omissions["triplets with an id that is no number"] == 1


def test_a_folder_stands_for_its_files(tmp_path):
    (tmp_path / "inside").mkdir()
    for number, name in enumerate(("b.parquet", "inside/a.parquet")):
        brought(tmp_path / name, {"query": [1], "positive": [2 + number], "negative": [9]})
    assert ids_of(sample("file", block([1], range(1, 10), [tmp_path]))) == [(1, 2, 9), (1, 3, 9)]


def test_at_most_so_many_brought_triplets_of_a_query_are_taken(tmp_path):
    rows = [(1, 10 + i, 20 + i) for i in range(8)] + [(2, 10, 20)]
    path = brought(
        tmp_path / "p", {name: [row[i] for row in rows] for i, name in enumerate(("query", "positive", "negative"))}
    )
    sampled = sample("file", block([1, 2], range(1, 40), [path]), per_query=3)
    assert [row[0] for row in ids_of(sampled)] == [1, 1, 1, 2]
    assert set(ids_of(sampled)) <= set(rows)
    assert sampled.omissions["triplets beyond per_query"] == 5


def test_a_file_without_ids_is_refused(tmp_path):
    path = brought(tmp_path / "p.parquet", {"query": [1], "positive": [2]})
    with pytest.raises(InputError, match=r"p\.parquet: has no column negative of corpus ids"):
        sample("file", block([1], [2], [path]))
