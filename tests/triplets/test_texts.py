"""Sets that are compared have one size and one validation set."""

import pyarrow as pa
import pytest

from cocite.errors import InputError
from cocite.files import read_table, write_table
from cocite.triplets.texts import materialise_training, materialise_validation


def write_triplets(path, rows):
    """rows: (query, positive, negative, split)."""
    rows = sorted(rows)
    columns = {
        "query": pa.array([row[0] for row in rows], pa.int64()),
        "positive": pa.array([row[1] for row in rows], pa.int64()),
        "negative": pa.array([row[2] for row in rows], pa.int64()),
        "split": pa.array([row[3] for row in rows], pa.string()),
        "positive_rank": pa.nulls(len(rows), pa.int32()),
        "negative_rank": pa.nulls(len(rows), pa.int32()),
        "negative_kind": pa.array(["hard"] * len(rows), pa.string()),
    }
    write_table(path, "triplets", pa.table(columns))
    return path


@pytest.fixture
def folder(tmp_path):
    ids = list(range(1, 61))
    empty = pa.nulls(len(ids))
    papers = {
        "corpusid": ids,
        "title": [f"title {paper}" for paper in ids],
        "abstract": [f"abstract {paper}" for paper in ids],
        "fields": pa.array([[]] * len(ids), pa.list_(pa.string())),
        **dict.fromkeys(("year", "venue", "doi", "citation_count", "reference_count"), empty),
    }
    write_table(tmp_path / "papers/0.parquet", "papers", pa.table(papers))
    long = [(query, 20 + query, 40 + i, "train") for query in range(1, 11) for i in range(4)]
    short = [(query, 30, 50 + i, "train") for query in range(1, 4) for i in range(3)]
    write_triplets(tmp_path / "long.parquet", [*long, (11, 12, 13, "validation"), (11, 12, 14, "validation")])
    write_triplets(tmp_path / "short.parquet", [*short, (11, 12, 13, "validation"), (15, 16, 17, "validation")])
    return tmp_path


def training(folder, name):
    output = folder / f"{name}-texts.parquet"
    group = [folder / "long.parquet", folder / "short.parquet"]
    materialise_training(
        triplets=folder / f"{name}.parquet", group=group, papers=folder / "papers", seed=1, output=output
    )
    return read_table(output, "training_texts").to_pylist()


def test_all_sets_are_cut_to_the_size_of_the_smallest(folder):
    assert len(training(folder, "long")) == len(training(folder, "short")) == 9


def test_the_cut_takes_whole_queries_but_the_last(folder):
    queries = [row["query"] for row in training(folder, "long")]
    assert sorted(queries.count(query) for query in set(queries)) == [1, 4, 4]


def test_each_triplet_carries_the_texts_of_its_papers(folder):
    for row in training(folder, "short"):
        for role in ("query", "positive", "negative"):
            assert row[f"{role}_title"] == f"title {row[role]}"
            assert row[f"{role}_abstract"] == f"abstract {row[role]}"


def test_no_query_trains_and_validates(folder):
    assert not {row["query"] for row in training(folder, "long")} & {11, 15}


def test_the_common_validation_set_holds_each_triplet_of_all_sets_once(folder):
    materialise_validation(
        group=[folder / "long.parquet", folder / "short.parquet"],
        papers=folder / "papers",
        seed=1,
        output=folder / "validation.parquet",
    )
    rows = read_table(folder / "validation.parquet", "validation_texts").to_pylist()
    found = sorted((row["query"], row["positive"], row["negative"]) for row in rows)
    assert found == [(11, 12, 13), (11, 12, 14), (15, 16, 17)]


def test_without_validation_triplets_the_configuration_key_is_named(folder):
    only_training = write_triplets(folder / "training-only.parquet", [(1, 2, 3, "train")])
    with pytest.raises(InputError, match=r"queries\.validation"):
        materialise_validation(group=[only_training], papers=folder / "papers", seed=1, output=folder / "v.parquet")
