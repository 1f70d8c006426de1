"""Sets that are compared have one size and one validation set; their texts lie in shards that can be streamed."""

from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.large_ids import LARGE
from tests.papers import papers_table

from cocite.ground.errors import InputError
from cocite.tables.files import read_table, write_table
from cocite.triplets import texts
from cocite.triplets.texts import shard_starts, training_rows, validation_rows, write_texts

PAPERS = range(1, 61)
LONG = [(query, 20 + query, 40 + i, "train") for query in range(1, 11) for i in range(4)]
SHORT = [(query, 30, 50 + i, "train") for query in range(1, 4) for i in range(3)]


def write_triplets(path, rows):
    """rows: (query, positive, negative, split)."""
    columns = list(zip(*sorted(rows), strict=True)) or [()] * 4
    ids = {name: pa.array(columns[i], pa.int64()) for i, name in enumerate(("query", "positive", "negative"))}
    rest = {
        "split": pa.array(columns[3], pa.string()),
        "positive_rank": pa.nulls(len(rows), pa.int32()),
        "negative_rank": pa.nulls(len(rows), pa.int32()),
        "negative_kind": pa.array(["hard"] * len(rows), pa.string()),
    }
    write_table(path, "triplets", pa.table(ids | rest))
    return path


def write_papers(folder, *, buckets=3, without_text=(), row_group=7):
    """Papers 1 to 60, their texts made of their numbers, with several row groups a bucket."""
    for bucket in range(buckets):
        ids = [paper for paper in PAPERS if paper % buckets == bucket]
        texts = {paper: (f"title {paper}", None if paper in without_text else f"abstract {paper}") for paper in ids}
        write_table(folder / f"{bucket}.parquet", "papers", papers_table(texts).to_batches(row_group))
    return folder


@pytest.fixture
def folder(tmp_path):
    write_papers(tmp_path / "papers")
    write_triplets(tmp_path / "long.parquet", [*LONG, (11, 12, 13, "validation"), (11, 12, 14, "validation")])
    write_triplets(tmp_path / "short.parquet", [*SHORT, (11, 12, 13, "validation"), (15, 16, 17, "validation")])
    return tmp_path


def group(folder: Path):
    return [folder / "long.parquet", folder / "short.parquet"]


def training(folder, name):
    return training_rows(folder / f"{name}.parquet", group(folder), seed=1)


def written(folder, rows):
    write_texts(folder / "texts", "training_texts", rows, folder / "papers", threads=2)
    return read_table(folder / "texts", "training_texts").to_pylist()


@pytest.mark.parametrize("relabel", LARGE)
def test_texts_go_with_large_ids_too(tmp_path, relabel):
    papers = {relabel(paper): (f"title {paper}", f"abstract {paper}") for paper in PAPERS}
    write_table(tmp_path / "papers/0.parquet", "papers", papers_table(papers))
    rows = [(relabel(query), relabel(60), relabel(query + 1)) for query in range(1, 50)]
    found = [(row["query"], row["query_title"], row["negative_abstract"]) for row in written(tmp_path, np.array(rows))]
    assert found == [(relabel(query), f"title {query}", f"abstract {query + 1}") for query in range(1, 50)]


def test_the_largest_id_that_there_is_has_its_text(tmp_path):
    papers = {1: ("one", "first"), 2: ("two", "second"), 2**63 - 1: ("largest", "last")}
    write_table(tmp_path / "papers/0.parquet", "papers", papers_table(papers))
    (row,) = written(tmp_path, np.array([(2**63 - 1, 1, 2)]))
    assert (row["query"], row["query_title"], row["negative_title"]) == (2**63 - 1, "largest", "two")


def test_all_sets_are_cut_to_the_size_of_the_smallest(folder):
    assert len(training(folder, "long")) == len(training(folder, "short")) == 9


def test_the_cut_takes_whole_queries_but_the_last(folder):
    queries = training(folder, "long")[:, 0].tolist()
    assert [len(list(block)) for _, block in groupby(queries)] == [4, 4, 1]


def test_the_triplets_of_a_query_follow_each_other_and_queries_come_at_random(folder):
    queries = training_rows(folder / "long.parquet", [folder / "long.parquet"], seed=1)[:, 0].tolist()
    order = [query for query, _ in groupby(queries)]
    assert sorted(order) == list(range(1, 11))
    assert order != sorted(order)


def test_the_order_follows_from_the_seed(folder):
    one, other = (training_rows(folder / "long.parquet", group(folder), seed=seed).tolist() for seed in (1, 2))
    assert one == training(folder, "long").tolist()
    assert one != other


def test_no_query_trains_and_validates(folder):
    assert not set(training(folder, "long")[:, 0]) & set(validation_rows(group(folder), seed=1)[:, 0])


def test_the_common_validation_set_holds_each_triplet_of_all_sets_once(folder):
    found = validation_rows(group(folder), seed=1).tolist()
    assert sorted(found) == [[11, 12, 13], [11, 12, 14], [15, 16, 17]]


def test_validation_triplets_of_several_sets_are_cut_to_equal_sizes(folder):
    write_triplets(folder / "long.parquet", [(11, 12, paper, "validation") for paper in range(20, 40)])
    found = validation_rows(group(folder), seed=1)
    assert len(found) == 4


def test_without_validation_triplets_the_set_and_the_configuration_key_are_named(folder):
    write_triplets(folder / "short.parquet", [(1, 2, 3, "train")])
    with pytest.raises(InputError, match=r"short\.parquet: no validation triplet; .*queries\.validation"):
        validation_rows(group(folder), seed=1)


@given(counts=st.lists(st.integers(1, 9), max_size=20), size=st.integers(1, 30))
def test_a_shard_ends_where_a_query_does_and_exceeds_its_size_by_one_query_at_most(counts, size):
    queries = np.repeat(np.arange(len(counts)), counts)
    starts = shard_starts(queries, size)
    assert (starts[0], starts[-1]) == (0, len(queries))
    assert starts == sorted(set(starts))
    for start in starts[1:-1]:
        assert queries[start - 1] != queries[start]
    for start, end in pairwise(starts):
        assert end - start < size + max(counts)


@settings(max_examples=25, deadline=None)
@given(
    triplets=st.lists(st.tuples(*[st.sampled_from(PAPERS)] * 3), min_size=1, max_size=30),
    in_shard=st.integers(1, 12),
    at_once=st.integers(1, 4),
    in_memory=st.integers(1, 5),
)
def test_each_triplet_carries_the_texts_of_its_papers_in_its_place(
    tmp_path_factory, triplets, in_shard, at_once, in_memory
):
    folder = tmp_path_factory.mktemp("texts")
    write_papers(folder / "papers")
    sizes = {
        "TRIPLETS_IN_SHARD": in_shard,
        "SHARDS_AT_ONCE": at_once,
        "TRIPLETS_IN_MEMORY": in_memory,
        "PAPERS_IN_MEMORY": 4,
    }
    with pytest.MonkeyPatch.context() as patched:
        for name, size in sizes.items():
            patched.setattr(texts, name, size)
        rows = written(folder, np.array(triplets))
    ids = [(row["query"], row["positive"], row["negative"]) for row in rows]
    assert ids == triplets
    for row in rows:
        for role in ("query", "positive", "negative"):
            assert row[f"{role}_title"] == f"title {row[role]}"
            assert row[f"{role}_abstract"] == f"abstract {row[role]}"


def test_what_is_written_does_not_depend_on_threads(folder, monkeypatch):
    monkeypatch.setattr(texts, "TRIPLETS_IN_SHARD", 5)
    rows = training_rows(folder / "long.parquet", [folder / "long.parquet"], seed=1)
    for threads in (1, 4):
        write_texts(folder / f"by-{threads}", "training_texts", rows, folder / "papers", threads=threads)
    names = [path.name for path in sorted((folder / "by-1").iterdir())]
    # Of queries of four triplets, those end first after 5, 10, … 35 that end at 8, 12, 16, 20, 28, 32 and 36.
    assert names == [f"{number:05}.parquet" for number in range(8)]
    for name in names:
        assert (folder / "by-1" / name).read_bytes() == (folder / "by-4" / name).read_bytes()


def test_a_paper_without_abstract_or_record_is_named_and_nothing_is_written(folder):
    write_papers(folder / "papers", without_text=(30,))
    with pytest.raises(
        InputError, match=r"2 papers of the triplets have no title and abstract there, the first .* 30;"
    ):
        written(folder, np.array([(1, 2, 30), (1, 2, 99)]))
    assert {path.name for path in folder.iterdir()} == {"papers", "long.parquet", "short.parquet"}


def test_a_group_with_a_set_without_training_triplets_is_refused(folder):
    write_triplets(folder / "none.parquet", [(11, 12, 13, "validation")])
    with pytest.raises(InputError, match=r"none\.parquet: no training triplet"):
        training_rows(folder / "long.parquet", [folder / "long.parquet", folder / "none.parquet"], 1)
