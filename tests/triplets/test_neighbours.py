"""The bands of CoCite and SciNCL, drawn from ranked neighbours."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from cocite.files import write_table
from cocite.triplets.neighbours import NeighbourSettings, sample_from_neighbours

K = 40
EVERY_PAPER = np.arange(1, 1001)


def queries(*ids, split="train"):
    return pl.DataFrame({"query": ids, "split": [split] * len(ids)}, schema={"query": pl.Int64, "split": pl.String})


@pytest.fixture
def neighbours(tmp_path):
    """Query 1's neighbour of rank r is paper 100 + r, query 2's is paper 200 + r."""
    path = tmp_path / "neighbours.parquet"
    columns = {
        "query": [query for query in (1, 2) for _ in range(K)],
        "rank": pa.array([rank for _ in (1, 2) for rank in range(1, K + 1)], pa.int32()),
        "neighbour": [100 * query + rank for query in (1, 2) for rank in range(1, K + 1)],
        "distance": pa.array([float(rank) for _ in (1, 2) for rank in range(1, K + 1)], pa.float32()),
    }
    write_table(path, "neighbours", pa.table(columns))
    return path


def sample(neighbours, *, asked=(1, 2), pool=EVERY_PAPER, seed=1, **settings):
    chosen = NeighbourSettings(**{"k_positive": 10, "k_negative": 30, "per_query": 4, "easy": 0, **settings})
    return sample_from_neighbours(neighbours, queries(*asked), pool, chosen, seed)


def test_positives_are_the_last_ranks_up_to_k_positive(neighbours):
    triplets = sample(neighbours).triplets.filter(pl.col("query") == 1)
    assert sorted(triplets["positive"]) == [107, 108, 109, 110]
    assert sorted(triplets["positive_rank"]) == [7, 8, 9, 10]


def test_hard_negatives_are_the_last_ranks_up_to_k_negative(neighbours):
    triplets = sample(neighbours).triplets.filter(pl.col("query") == 2)
    assert sorted(triplets["negative"]) == [227, 228, 229, 230]
    assert set(triplets["negative_kind"]) == {"hard"}


def test_with_easy_negatives_the_hard_band_shrinks(neighbours):
    triplets = sample(neighbours, easy=3).triplets.filter(pl.col("query") == 1)
    assert triplets.filter(negative_kind="hard")["negative"].to_list() == [130]
    assert len(triplets.filter(negative_kind="easy")) == 3


def test_easy_negatives_are_no_neighbours_of_the_query(neighbours):
    pool = np.array([1, *range(101, 141), 500, 501, 502])
    triplets = sample(neighbours, asked=(1,), pool=pool, easy=2).triplets
    assert set(triplets.filter(negative_kind="easy")["negative"]) <= {500, 501, 502}


def test_papers_without_text_are_dropped_after_ranking_and_counted(neighbours):
    sampled = sample(neighbours, asked=(1,), pool=np.setdiff1d(EVERY_PAPER, [108, 127, 128]))
    assert set(sampled.triplets["positive"]) < {107, 109, 110}
    assert set(sampled.triplets["negative"]) == {129, 130}
    assert sampled.omissions["positives without text"] == 1
    assert sampled.omissions["hard negatives without text"] == 2


def test_a_query_without_neighbours_is_counted(neighbours):
    sampled = sample(neighbours, asked=(1, 2, 3))
    assert sampled.omissions["queries without a triplet"] == 1


def test_a_querys_triplets_do_not_depend_on_other_queries(neighbours):
    both = sample(neighbours, easy=2).triplets.filter(pl.col("query") == 2)
    assert both.equals(sample(neighbours, asked=(2,), easy=2).triplets.filter(pl.col("query") == 2))


def test_another_seed_pairs_and_draws_otherwise(neighbours):
    assert not sample(neighbours, easy=2).triplets.equals(sample(neighbours, easy=2, seed=2).triplets)
