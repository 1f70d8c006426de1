"""Random vectors: what chance reaches."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.baselines.tables import embedded

from cocite.baselines.methods import RandomVectors

RANDOM = RandomVectors(kind="random")


def test_random_vectors_depend_on_the_seed_alone(tmp_path):
    texts = dict.fromkeys("cab", ("t", None))
    first, again, other = (
        embedded(RANDOM, texts, tmp_path / f"{at}.parquet", seed=of) for at, of in enumerate((1, 1, 2))
    )
    assert list(first) == ["a", "b", "c"]
    assert all((first[name] == again[name]).all() and not (first[name] == other[name]).any() for name in first)


def test_random_vectors_have_25_dimensions_and_a_mean_of_zero_in_the_columns_that_scores_are_read_from(tmp_path):
    texts = {f"d{number:04}": ("t", None) for number in range(9000)}
    vectors = np.stack(list(embedded(RANDOM, texts, tmp_path / "vectors.parquet").values()))
    assert vectors.shape == (9000, 25)
    assert abs(vectors.mean(axis=0)).max() < 5 / np.sqrt(9000)
    assert vectors.std() == pytest.approx(1, abs=0.02)
    assert [(field.name, field.type) for field in pq.read_schema(tmp_path / "vectors.parquet")] == [
        ("adapter", pa.string()),
        ("document", pa.string()),
        ("vector", pa.list_(pa.float32(), 25)),
    ]
