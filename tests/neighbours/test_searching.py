"""The search for neighbours: who is searched, in what order, what is refused; exact to the last bit, and resumed."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.large_ids import RELABELLINGS
from tests.neighbours.small import (
    LINE,
    KilledError,
    Row,
    by_definition,
    read_counts,
    read_rows,
    search,
    search_again,
    write_papers,
    write_vectors,
    written,
)
from tests.triplets.blocks import write_queries, write_triplets
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.embeddings import SearchSettings
from cocite.core.atomic import checked_path
from cocite.core.checkpoints import write_checked_json
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.neighbours import nearest, searching, vectors
from cocite.neighbours.searching import NOT_REACHED, NOT_SEARCHED, open_search, queries_at_once

METRICS = ["cosine", "l2", "inner_product"]
VECTORS = {paper: [float(paper), float(paper * paper % 7)] for paper in range(100)}
SPLITS = dict.fromkeys(VECTORS, "train")


@pytest.mark.parametrize("large", [0, 2**40])
def test_among_papers_with_a_text_only_those_have_a_rank(tmp_path, large):
    vectors = {large + paper: vector for paper, vector in LINE.items()}
    papers = write_papers(tmp_path, {**dict.fromkeys(vectors, "an abstract"), large + 2: None})
    found = search(tmp_path, vectors, {large + 1: "train", large + 2: "train"}, k=2, papers=[papers])
    # Paper 2, as near as 4, has no abstract.
    assert found == [(large + 1, 1, large + 4, 9.0), (large + 1, 2, large + 3, 25.0)]


def test_among_the_papers_of_triplets_only_those_have_a_rank(tmp_path):
    triplets = write_triplets(tmp_path / "triplets.parquet", [(1, 3, 4), (1, 3, 9)])
    found = search(tmp_path, LINE, {1: "train", 2: "train"}, k=1, papers=[triplets])
    assert [row[:3] for row in found] == [(1, 1, 4)]  # 2 is as near, and in no triplet


def test_papers_without_a_vector_do_no_harm_whatever_their_ids(tmp_path):
    papers = write_papers(tmp_path, dict.fromkeys([*LINE, 2**31, 2**31 + 8, 2**40, 2**62], "an abstract"))
    assert search(tmp_path, LINE, {1: "train"}, papers=[papers]) == search(tmp_path, LINE, {1: "train"})


def test_a_shard_without_queries_is_an_empty_table(tmp_path):
    assert search(tmp_path, LINE, {1: "train"}, shard=(0, 2)) == []


def test_papers_that_are_kept_out_are_not_queries(tmp_path):
    assert {row[0] for row in search(tmp_path, LINE, {1: "train", 8: "excluded", 9: "holdout"})} == {1}


LEAK = "contains 1 excluded papers, 2 among them"
WRONG = r"graph_embeddings\.parquet: the vector of the paper or text 6 is not finite or is too"


@pytest.mark.parametrize(
    ("vectors", "splits", "changed", "message"),
    [
        ({}, {}, {"shard": (2, 2)}, "--shard is 2, but of 2 shards it must be from 0 to 1"),
        ({}, {2: "holdout"}, {}, LEAK),
        ({}, {2: "excluded"}, {}, LEAK),
        ({}, {}, {"k": 4}, r"neighbours\.k is 4, but .* contains 5 papers"),
        ({-1: [1.0, 1.0]}, {}, {}, r"graph_embeddings\.parquet: contains the corpus id -1; ids must be between 0"),
        *(
            ({6: [1.0, wrong]}, {}, {"metric": metric}, WRONG)
            for wrong in (float("nan"), float("inf"), 1e20)
            for metric in METRICS
        ),
    ],
)
def test_what_cannot_be_searched_is_refused_and_nothing_is_written(tmp_path, vectors, splits, changed, message):
    with pytest.raises(InputError, match=message):
        search(tmp_path, {**LINE, **vectors}, {1: "train", **splits}, **changed)
    assert not (tmp_path / "neighbours.parquet").exists()


@pytest.mark.parametrize("largest", [2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1])
def test_the_largest_ids_are_found(tmp_path, largest):
    vectors = {**LINE, largest: [1.0, 0.0], largest - 1: [2.0, 0.0]}
    assert search(tmp_path, vectors, {largest: "train"}, k=2) == [(largest, 1, 1, 1.0), (largest, 2, largest - 1, 1.0)]


def test_more_memory_takes_more_queries_at_once_and_too_little_still_one():
    """A query takes 15,000 keys and two vectors, 126,144 bytes; a thread 3 × 4096 vectors and 256 × 4096 products."""
    threads_mb = 2 * 41.943040
    assert queries_at_once(5000, 768, 400 + threads_mb + 126.145, 2) == 1000
    assert queries_at_once(5000, 768, 100, 2) == 1


def run(folder: Path, command: str, settings: dict[str, object], *options: object) -> None:
    arguments = [command, "--vectors", folder / "graph_embeddings.parquet", "--settings", json.dumps(settings)]
    arguments += ["--threads", "1", *options]
    CliRunner().invoke(app, ["neighbours", *map(str, arguments)], catch_exceptions=False)


def test_the_commands_build_search_and_measure_an_index_and_count_queries_without_a_vector(tmp_path):
    write_vectors(tmp_path, LINE)
    queries = write_queries(tmp_path, {1: "train", 8: "train", 9: "train", 11: "validation"})
    asked = {"metric": "l2", "index": {"kind": "ivf", "nprobe": 1}, "k": 2}
    index = {"metric": "l2", "index": {"kind": "ivf", "nlist": 1}}
    run(tmp_path, "index", index, "--seed", 1, "--output", tmp_path / "index")
    searched = ["--queries", queries, "--index", tmp_path / "index"]
    outputs = [word for name, path in written(tmp_path).items() for word in (f"--{name}", path)]
    run(tmp_path, "search", asked, *searched, "--shard", 1, 2, "--memory-mb", 1000, *outputs)
    run(tmp_path, "measure", asked, *searched, "--sample", 3, "--seed", 1, "--output", tmp_path / "quality")
    assert read_rows(tmp_path / "neighbours.parquet") == [(1, 1, 2, 9.0), (1, 2, 4, 9.0)]
    assert read_counts(tmp_path) == {NOT_REACHED: 0, NOT_SEARCHED: 2}
    (row,) = read_table(tmp_path / "quality", "search_quality").to_pylist()
    assert (row["k"], row["queries"], row["recall"]) == (2, 1, 1.0)


def in_blocks_of(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make blocks so small that pools overflow and are cut down in small searches as well."""
    for module in (searching, nearest, vectors):
        monkeypatch.setattr(module, "BLOCK", size)


@given(
    drawn=st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=4, max_size=90),
    metric=st.sampled_from(METRICS),
    block=st.integers(1, 30),
    row_group=st.integers(1, 100),
    relabel=st.sampled_from(RELABELLINGS),
    data=st.data(),
)
def test_the_result_is_that_of_the_definition(tmp_path, monkeypatch, drawn, metric, block, row_group, relabel, data):
    in_blocks_of(block, monkeypatch)
    k = data.draw(st.integers(1, len(drawn) - 2))
    placed = {relabel(10 * at): [float(value) for value in vector] for at, vector in enumerate(drawn)}
    found = search(tmp_path, placed, dict.fromkeys(placed, "train"), metric=metric, k=k, row_group=row_group)
    assert found == [row for query in placed for row in by_definition(placed, query, metric, k)]


@given(
    seed=st.integers(0, 10**6),
    metric=st.sampled_from(METRICS),
    scale=st.sampled_from([1e-35, 1e-25, 1e-6, 1.0, 1e6]),
    spread=st.sampled_from([0.0, 1.0, 8.0]),
)
def test_no_paper_is_missed_for_rounding_whatever_the_lengths(tmp_path, monkeypatch, seed, metric, scale, spread):
    """Vectors crowd around two points, with lengths up to e^±`spread` apart: most distances are near ties."""
    in_blocks_of(8, monkeypatch)
    rng = np.random.default_rng(seed)
    near = rng.normal(size=(2, 24))[rng.integers(0, 2, 80)] + 1e-6 * rng.normal(size=(80, 24))
    drawn = (scale * near * np.exp(spread * rng.uniform(-1, 1, (80, 1)))).astype(np.float32)
    placed = {paper: drawn[paper].tolist() for paper in range(80)}
    found = search(tmp_path, placed, dict.fromkeys(range(0, 80, 9), "train"), metric=metric, k=20)
    every = {query: by_definition(placed, query, metric, 79) for query in range(0, 80, 9)}
    distances = {(row[0], row[2]): row[3] for rows in every.values() for row in rows}
    own = [distances[row[0], row[2]] for row in found]
    nearest = [row[3] for rows in every.values() for row in rows[:20]]
    assert len(found) == len(nearest)
    for expected in (own, nearest):
        np.testing.assert_allclose([row[3] for row in found], expected, rtol=1e-6, atol=1e-14)


def test_a_tie_at_the_last_rank_is_cut_by_corpus_id_however_many_share_it(tmp_path):
    shared = {paper: [1.0, 0.0] for paper in range(100, 9000)} | {7: [0.0, 0.0], 9999: [0.0, 1.0]}
    assert [row[2] for row in search(tmp_path, shared, {7: "train"}, k=3)] == [100, 101, 102]


@pytest.mark.parametrize("near", [True, False])
def test_a_guess_from_papers_that_are_nearer_than_others_misses_none(tmp_path, monkeypatch, near):
    """The first fifty of each five hundred, which the guess is made from, are the nearest of all, or the farthest."""
    in_blocks_of(50, monkeypatch)
    passes = []
    search_all = searching._search
    monkeypatch.setattr(searching, "_search", lambda *args: passes.append(1) or search_all(*args))
    lengths = {paper: 1.0 + (paper % 500 if near else 499 - paper % 500) for paper in range(1, 2500)}
    line = {0: [0.0]} | {paper: [length] for paper, length in lengths.items()}
    found = search(tmp_path, line, {0: "train"}, k=400, row_group=500)
    assert found == by_definition(line, 0, "l2", 400)
    assert len(passes) == (2 if near else 1)


@pytest.fixture(scope="module")
def crowded():
    """20 crowds of papers whose distances differ in the last digits."""
    rng = np.random.default_rng(5)
    near = rng.normal(size=(20, 48))
    return {paper: list(near[paper % 20] + 1e-6 * rng.normal(size=48)) for paper in range(1500)}


@pytest.mark.parametrize("metric", METRICS)
def test_blocks_groups_shards_and_threads_change_no_bit(tmp_path, monkeypatch, crowded, metric):
    splits = dict.fromkeys(range(0, 1500, 10), "train")

    def again(**options: object) -> list[Row]:
        return search(tmp_path, crowded, splits, metric=metric, k=70, **options)

    whole = again(threads=2)
    assert all(a[3] <= b[3] for a, b in pairwise(whole) if a[0] == b[0])
    assert again(threads=1, row_group=333) == whole
    assert sorted(again(shard=(0, 20)) + again(shard=(10, 20))) == whole
    in_blocks_of(50, monkeypatch)
    monkeypatch.setattr(nearest, "TILE", 7)
    monkeypatch.setattr(searching, "queries_at_once", lambda *_: 31)
    assert again(threads=2) == whole


@pytest.fixture
def met(monkeypatch):
    """The row groups of 20 papers that go past the queries, in order; over the thirteenth the search dies."""
    met = []

    def dying(blocks):
        for row_group, block in blocks:
            met.append(row_group)
            if len(met) == 13:
                raise KilledError
            yield row_group, block

    monkeypatch.setattr(searching, "ahead", dying)
    monkeypatch.setattr(searching, "queries_at_once", lambda *_: 40)
    return met


def again(folder: Path, **changed: object) -> list[Row]:
    """The same search, in the same tables."""
    return search_again(folder, SearchSettings(metric="l2", k=4), **changed)


@pytest.mark.parametrize(("seconds", "goes_on"), [(0.0, [1, 2, 3, 4]), (60.0, [0, 1, 2, 3, 4])])
def test_it_goes_on_after_the_finished_queries_and_the_last_row_group_that_was_saved(
    tmp_path, monkeypatch, met, seconds, goes_on
):
    """A row group is done, and saved, once another one follows."""
    monkeypatch.setattr(searching, "SECONDS_BETWEEN_SAVES", seconds)
    with pytest.raises(KilledError):
        search(tmp_path, VECTORS, SPLITS, k=4, row_group=20)
    assert met == [0, 1, 2, 3, 4] * 2 + [0, 1, 2]
    assert not (tmp_path / "neighbours.parquet").exists()
    del met[:]
    found = again(tmp_path)
    assert met == goes_on
    assert found == [row for query in VECTORS for row in by_definition(VECTORS, query, "l2", 4)]
    assert not (tmp_path / "state").exists()


@pytest.fixture
def killed(tmp_path, met):
    """A search that died in its third group."""
    with pytest.raises(KilledError):
        search(tmp_path, VECTORS, SPLITS, k=4, row_group=20)
    del met[:]
    return tmp_path


def test_it_starts_afresh_where_the_search_is_another(killed, met):
    write_queries(killed, dict.fromkeys(range(7), "train"))
    assert again(killed) == [row for query in range(7) for row in by_definition(VECTORS, query, "l2", 4)]
    assert met == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("room", "begun", "groups"), [(80, 40, 1), (50, 60, 2)])
def test_it_goes_on_with_the_groups_that_it_began_with_unless_memory_is_too_little(
    killed, monkeypatch, met, room, begun, groups
):
    monkeypatch.setattr(searching, "queries_at_once", lambda *_: room)
    assert (killed / "state" / "group.json").read_text() == "40\n"
    write_checked_json(killed / "state" / "group.json", begun)
    assert again(killed) == [row for query in VECTORS for row in by_definition(VECTORS, query, "l2", 4)]
    assert met == [0, 1, 2, 3, 4] * groups


def test_groups_of_another_search_are_not_used(tmp_path):
    groups = tmp_path / "state" / "groups"
    for belongs_to, expected in (({"k": 1}, False), ({"k": 1}, True), ({"k": 2}, False)):
        assert open_search(tmp_path / "state", belongs_to, 10) == 10
        assert (groups / "0.npy").exists() == expected
        with checked_path(groups / "0.npy") as written:
            written.touch()
