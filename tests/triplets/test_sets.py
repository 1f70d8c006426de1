"""Triplets that are brought, joined and taken parts of."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.core.errors import InputError

from .blocks import block, rows_of, sample, unserved, write_edges, write_examples, write_triplets

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
def test_a_union_holds_each_triplet_of_its_sets_once(tmp_path_factory, one, other):
    folder = tmp_path_factory.mktemp("sets")
    paths = [write_triplets(folder / "one", one), write_triplets(folder / "other", other)]
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
def test_a_union_holds_each_example_of_its_sets_once(tmp_path_factory, one, other, at_once):
    folder = tmp_path_factory.mktemp("sets")
    paths = [write_examples(folder / "one", one), write_examples(folder / "other", other)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("cocite.triplets.samplers.sets.QUERIES_AT_ONCE", at_once)
        sampled = sample("union", block(range(1, 7), [], paths))
    assert examples_in(sampled) == united(one, other)
    common = set(map(said_by, one)) & set(map(said_by, other))
    assert sampled.omissions["examples that another set holds as well"] == len(common)
    assert sum(unserved(sampled, "an example").values()) == 6 - len({row[0] for row in [*one, *other]})


@given(TRIPLETS, EXAMPLES, st.booleans())
def test_beside_examples_a_triplet_is_an_example_of_one_positive_and_one_negative(tmp_path_factory, rows, few, turned):
    folder = tmp_path_factory.mktemp("sets")
    paths = [write_triplets(folder / "triplets", rows), write_examples(folder / "examples", few)]
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


def test_what_is_no_set_is_not_joined(tmp_path):
    paths = [write_triplets(tmp_path / "triplets", [(1, 2, 3)]), write_edges(tmp_path / "edges", [(1, 2)])]
    for name, sources in (("union", paths), ("subset", paths[1:])):
        with pytest.raises(InputError, match="edges: is neither the table triplets nor sampled_examples"):
            sample(name, block([1], [], sources), **({"share": 1} if name == "subset" else {}))


@given(EXAMPLES, st.integers(0, 3), st.integers(1, 9), st.sampled_from(["query", "triplet"]))
def test_a_subset_of_examples_is_a_share_of_each_split(tmp_path_factory, rows, train, tenths, by):
    split = [(*row, "train" if row[0] > train else "validation") for row in rows]
    path = write_examples(tmp_path_factory.mktemp("sets") / "all", split)
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


@pytest.fixture(params=["triplets", "examples"])
def many(request, tmp_path):
    """A set of 100 queries with four triplets, or as many examples, each."""
    if request.param == "triplets":
        return write_triplets(tmp_path / "all", MANY)
    return write_examples(tmp_path / "all", [(query, "result", [near], [far]) for query, near, far in MANY])


def part(path, **chosen):
    """A part of a set as rows of words."""
    return list(map(str, sample("subset", block(range(1, 101), [], [path]), **chosen).rows.to_pylist()))


@pytest.mark.parametrize("by", ["query", "triplet"])
def test_a_smaller_part_lies_within_a_larger_one(many, by):
    small, large = (part(many, share=share, by=by) for share in (0.1, 0.3))
    assert (len(small), len(large)) == (40, 120)
    assert set(small) < set(large)


def test_a_part_that_is_larger_than_its_set_is_refused(many):
    with pytest.raises(InputError, match="count is 401, but there are only 400 training"):
        part(many, count=401)


def test_parts_of_whole_queries_hold_the_same_queries_of_every_set(tmp_path):
    paths = [write_triplets(tmp_path / str(n), [(q, p + n, x) for q, p, x in MANY]) for n in (0, 1)]
    paths.append(write_examples(tmp_path / "examples", [(query, None, [near], [far]) for query, near, far in MANY]))
    parts = [sample("subset", block(range(1, 101), [], [path]), count=40).rows["query"].to_pylist() for path in paths]
    assert parts[0] == parts[1] == parts[2]
    assert len(set(parts[0])) == 10


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
