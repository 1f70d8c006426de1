"""Triplets that are brought, joined and taken parts of."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.core.errors import InputError

from .blocks import block, rows_of, sample, unserved, write_examples, write_triplets

TRIPLETS = st.sets(st.tuples(st.integers(1, 6), st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=40)
PAPERS_OF_A_ROLE = st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True)
ASPECTS = st.sampled_from(["background", "result"])


def sets_of_examples(aspects):
    """Sets of few papers, so that examples come again, and in another order."""
    row = st.tuples(st.integers(1, 5), aspects, PAPERS_OF_A_ROLE, PAPERS_OF_A_ROLE)
    return st.lists(row, min_size=1, max_size=25, unique_by=said_by).map(sorted)


def said_by(example):
    """What makes an example the same as another."""
    query, aspect, positives, negatives = example
    return query, aspect, frozenset(positives), frozenset(negatives)


EXAMPLES = sets_of_examples(st.none()) | sets_of_examples(ASPECTS)
MANY = [(query, query + 100 + i, 500 + i) for query in range(1, 101) for i in range(4)]


def ids_of(sampled):
    return [row[:3] for row in rows_of(sampled)]


@given(TRIPLETS, TRIPLETS)
def test_a_union_holds_each_triplet_of_its_sets_once(tmp_path, one, other):
    paths = [write_triplets(tmp_path / "one", one), write_triplets(tmp_path / "other", other)]
    sampled = sample("union", block(range(1, 7), [], paths))
    assert ids_of(sampled) == sorted(one | other)
    assert sampled.omissions["triplets that another set holds as well"] == len(one & other)
    assert sum(unserved(sampled).values()) == 6 - len({row[0] for row in one | other})


def examples_in(sampled):
    """Examples as (query, aspect, positives, negatives), with their numbers."""
    rows = sampled.rows.to_pylist()
    return [((row["query"], row.get("aspect"), row["positives"], row["negatives"]), row["number"]) for row in rows]


def united(*sets):
    """The examples of sets by definition: those of a query in the order of the sets, and of equal ones the first."""
    found = {}
    for row in (row for rows in sets for row in rows):
        found.setdefault(said_by(row), row)
    of_query = {row[0]: [other for other in found.values() if other[0] == row[0]] for row in found.values()}
    return [(row, number) for query in sorted(of_query) for number, row in enumerate(of_query[query], start=1)]


@given(EXAMPLES, EXAMPLES, st.integers(1, 6))
def test_a_union_holds_each_example_of_its_sets_once(tmp_path, one, other, at_once):
    paths = [write_examples(tmp_path / "one", one), write_examples(tmp_path / "other", other)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("cocite.triplets.samplers.sets.QUERIES_AT_ONCE", at_once)
        sampled = sample("union", block(range(1, 7), [], paths))
    assert examples_in(sampled) == united(one, other)
    common = set(map(said_by, one)) & set(map(said_by, other))
    assert sampled.omissions["examples that another set holds as well"] == len(common)
    assert sum(unserved(sampled, "an example").values()) == 6 - len({row[0] for row in [*one, *other]})


@given(TRIPLETS, EXAMPLES, st.booleans())
def test_beside_examples_a_triplet_is_an_example_of_one_positive_and_one_negative(tmp_path, rows, few, turned):
    paths = [write_triplets(tmp_path / "triplets", rows), write_examples(tmp_path / "examples", few)]
    sets = [[(query, None, [near], [far]) for query, near, far in sorted(rows)], few]
    if turned:
        paths, sets = paths[::-1], sets[::-1]
    assert examples_in(sample("union", block(range(1, 7), [], paths))) == united(*sets)


def test_the_kinds_of_a_common_example_are_those_of_the_set_that_is_named_first(tmp_path):
    paths = [
        write_examples(tmp_path / kind, [(1, None, [2, 3], papers)], kind=kind)
        for kind, papers in (("linked", [4, 5]), ("two-away", [5, 4]))
    ]
    for first, kind in ((0, "linked"), (1, "two-away")):
        [row] = sample("union", block([1], [], [paths[first], paths[1 - first]])).rows.to_pylist()
        assert row["negative_kinds"] == [kind, kind]


def test_a_triplet_has_no_kind_beside_examples_and_keeps_it_beside_triplets(tmp_path):
    triplets = [write_triplets(tmp_path / name, [(1, 2, 3)]) for name in ("one", "other")]
    examples = write_examples(tmp_path / "examples", [(1, "result", [2], [3])])
    rows = sample("union", block([1], [], [triplets[0], examples])).rows.to_pylist()
    assert [(row["aspect"], row["negative_kinds"]) for row in rows] == [(None, None), ("result", ["easy"])]
    assert sample("union", block([1], [], triplets)).rows["negative_kind"].to_pylist() == ["hard"]


@given(EXAMPLES, st.integers(0, 3), st.integers(1, 9), st.sampled_from(["query", "triplet"]))
def test_a_subset_of_examples_is_a_share_of_each_split(tmp_path, rows, train, tenths, by):
    split = [(*row, "train" if row[0] > train else "validation") for row in rows]
    path = write_examples(tmp_path / "all", split)
    taken = examples_in(sample("subset", block(range(1, 7), [], [path]), share=tenths / 10, by=by))
    whole = examples_in(sample("subset", block(range(1, 7), [], [path]), share=1))
    assert [row for row, _ in whole] == rows
    assert taken == [each for each in whole if each in taken]
    for is_trained_on in (True, False):
        queries = [row[0] for row in rows if (row[0] > train) == is_trained_on]
        found = [row[0] for row, _ in taken if (row[0] > train) == is_trained_on]
        assert len(found) == round(tenths / 10 * len(queries))
        cut = [query for query in set(found) if found.count(query) < queries.count(query)]
        assert by == "triplet" or len(cut) <= 1


@pytest.mark.parametrize("by", ["query", "triplet"])
@pytest.mark.parametrize("of_examples", [False, True])
def test_a_smaller_part_lies_within_a_larger_one(tmp_path, of_examples, by):
    if of_examples:
        path = write_examples(tmp_path / "all", [(query, "result", [near], [far]) for query, near, far in MANY])
    else:
        path = write_triplets(tmp_path / "all", MANY)
    parts = [sample("subset", block(range(1, 101), [], [path]), share=share, by=by).rows for share in (0.1, 0.3)]
    small, large = (set(map(str, rows.to_pylist())) for rows in parts)
    assert [len(rows) for rows in parts] == [40, 120]
    assert small < large


def test_parts_of_whole_queries_hold_the_same_queries_of_every_set(tmp_path):
    paths = [write_triplets(tmp_path / str(n), [(q, p + n, x) for q, p, x in MANY]) for n in (0, 1)]
    paths.append(write_examples(tmp_path / "examples", [(query, None, [near], [far]) for query, near, far in MANY]))
    parts = [sample("subset", block(range(1, 101), [], [path]), count=40).rows["query"].to_pylist() for path in paths]
    assert parts[0] == parts[1] == parts[2]
    assert len(set(parts[0])) == 10


def brought(path, rows, names="query positive negative"):
    """A file of triplets as somebody has them."""
    pq.write_table(pa.table(dict(zip(names.split(), zip(*rows, strict=True), strict=True))), path)
    return path


def test_brought_triplets_are_those_of_our_queries_with_texts(tmp_path):
    rows = [(2, 20, 21), (1, 10, 21), (1, 11, 99), (7, 10, 20), (1, 10, 21), (3, 99, 20)]
    sampled = sample("file", block([1, 2, 3, 4], {10, 11, 20, 21}, [brought(tmp_path / "own.parquet", rows)]))
    assert rows_of(sampled) == [(1, 10, 21, None, None, "given"), (2, 20, 21, None, None, "given")]
    assert sampled.omissions["triplets of papers that are no queries"] == 1
    assert sampled.omissions["triplets with a paper without text"] == 2
    assert sampled.omissions["triplets that come again"] == 1
    assert unserved(sampled) == {"none was brought": 1, "theirs hold papers without text, or one twice": 1}


def test_a_brought_triplet_that_holds_a_paper_twice_is_left_out(tmp_path):
    path = brought(tmp_path / "p", [(1, 1, 2), (1, 2, 1), (1, 2, 2), (1, 2, 3)])
    sampled = sample("file", block([1], {1, 2, 3}, [path]))
    assert ids_of(sampled) == [(1, 2, 3)]
    assert sampled.omissions["triplets that hold a paper twice"] == 3
    assert sampled.omissions["triplets with a paper without text"] == 0


def test_a_brought_file_that_breaks_off_inside_or_has_no_ids_is_refused(tmp_path):
    path = brought(tmp_path / "p", [(1, 2, 3)])
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)  # the first column; the end of the file still declares it
    path.write_bytes(content)
    bare = brought(tmp_path / "bare.parquet", [(1, 2)], "query positive")
    for each, message in (
        (path, "not a readable Parquet file"),
        (bare, "bare.parquet: has no column negative of corp"),
    ):
        with pytest.raises(InputError, match=message):
            sample("file", block([1], {2, 3}, [each]))


@pytest.mark.parametrize("name", ["corpus_id", "doc_id"])
def test_triplets_are_read_as_published(tmp_path, name):
    rows = [[{"title": "t", name: paper, "abstract": "a"} for paper in ids] for ids in ("123", "x23")]
    sampled = sample("file", block([1], {2, 3}, [brought(tmp_path / "p", rows, "query pos neg")]))
    assert ids_of(sampled) == [(1, 2, 3)]
    assert sampled.omissions["triplets with an id that is no number"] == 1


def test_a_folder_stands_for_its_files(tmp_path):
    (tmp_path / "inside").mkdir()
    for positive, name in enumerate(("b.parquet", "inside/a.parquet"), start=2):
        brought(tmp_path / name, [(1, positive, 9)])
    assert ids_of(sample("file", block([1], range(1, 10), [tmp_path]))) == [(1, 2, 9), (1, 3, 9)]


def test_at_most_so_many_brought_triplets_of_a_query_are_taken(tmp_path):
    rows = [(1, 10 + i, 20 + i) for i in range(8)] + [(2, 10, 20)]
    sampled = sample("file", block([1, 2], range(1, 40), [brought(tmp_path / "p", rows)]), per_query=3)
    assert [row[0] for row in ids_of(sampled)] == [1, 1, 1, 2]
    assert set(ids_of(sampled)) <= set(rows)
    assert sampled.omissions["triplets beyond per_query"] == 5
