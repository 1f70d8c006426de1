"""Sets that are compared have one size and one validation set; their texts lie in shards that can be streamed."""

from itertools import groupby
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
from cocite.triplets.texts import training_rows, validation_rows, write_documents, write_examples

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


def documents(folder, rows, *, threads=2):
    """The documents that are written for triplets, by their ids."""
    write_documents(folder / "documents", "training_documents", rows, folder / "papers", threads=threads)
    written = read_table(folder / "documents", "training_documents").to_pylist()
    return {row["corpusid"]: (row["title"], row["abstract"]) for row in written}


@pytest.mark.parametrize("relabel", LARGE)
def test_texts_go_with_large_ids_too(tmp_path, relabel):
    papers = {relabel(paper): (f"title {paper}", f"abstract {paper}") for paper in PAPERS}
    write_table(tmp_path / "papers/0.parquet", "papers", papers_table(papers))
    rows = [(relabel(query), relabel(60), relabel(query + 1)) for query in range(1, 50)]
    wanted = {relabel(paper) for paper in (*range(1, 51), 60)}
    assert documents(tmp_path, np.array(rows)) == {paper: papers[paper] for paper in wanted}


def test_the_largest_id_that_there_is_has_its_text(tmp_path):
    papers = {1: ("one", "first"), 2: ("two", "second"), 2**63 - 1: ("largest", "last")}
    write_table(tmp_path / "papers/0.parquet", "papers", papers_table(papers))
    assert documents(tmp_path, np.array([(2**63 - 1, 1, 2)])) == papers


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


@settings(max_examples=25, deadline=None)
@given(triplets=st.lists(st.tuples(*[st.sampled_from(PAPERS)] * 3), min_size=1, max_size=30), at_once=st.integers(1, 9))
def test_each_paper_of_the_triplets_is_there_once_with_its_texts(tmp_path_factory, triplets, at_once):
    folder = tmp_path_factory.mktemp("texts")
    write_papers(folder / "papers")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(texts, "PAPERS_IN_MEMORY", at_once)
        found = documents(folder, np.array(triplets))
    assert found == {paper: (f"title {paper}", f"abstract {paper}") for triplet in triplets for paper in triplet}


def test_the_examples_are_the_triplets_in_their_order(folder):
    rows = training(folder, "long")
    write_examples(folder / "examples.parquet", "training_examples", rows)
    written = read_table(folder / "examples.parquet", "training_examples").to_pylist()
    assert [(row["query"], row["positives"], row["negatives"]) for row in written] == [
        (query, [positive], [negative]) for query, positive, negative in rows.tolist()
    ]


def test_the_documents_lie_in_the_buckets_of_the_papers_whatever_the_threads(folder):
    files = []
    for threads in (1, 4):
        documents(folder, training(folder, "long"), threads=threads)
        files.append({path.name: path.read_bytes() for path in (folder / "documents").iterdir()})
    assert files[0] == files[1]
    assert sorted(files[0]) == ["0.parquet", "1.parquet", "2.parquet"]


def test_a_paper_without_abstract_has_its_title(folder):
    write_papers(folder / "papers", without_text=(30,))
    assert documents(folder, np.array([(1, 2, 30)]))[30] == ("title 30", None)


def test_papers_without_any_text_or_record_are_named_and_nothing_is_written(folder):
    write_table(folder / "papers/0.parquet", "papers", papers_table({30: (None, None), 33: ("title 33", None)}))
    with pytest.raises(InputError, match=r"2 papers of the triplets have neither title nor .* them 30;"):
        documents(folder, np.array([(1, 2, 30), (1, 33, 99)]))
    assert {path.name for path in folder.iterdir()} == {"papers", "long.parquet", "short.parquet"}


def test_a_group_with_a_set_without_training_triplets_is_refused(folder):
    write_triplets(folder / "none.parquet", [(11, 12, 13, "validation")])
    with pytest.raises(InputError, match=r"none\.parquet: no training triplet"):
        training_rows(folder / "long.parquet", [folder / "long.parquet", folder / "none.parquet"], 1)
