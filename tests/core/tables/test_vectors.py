"""Vectors of some papers are found wherever in a table their rows stand."""

import numpy as np
import pyarrow as pa
import pytest

from cocite.core.errors import InputError
from cocite.core.tables import files
from cocite.core.tables.files import vector_column, vectors_of_papers, write_table

PAPERS = np.arange(1000, 1040)
VECTORS = np.random.default_rng(5).normal(size=(len(PAPERS), 3)).astype(np.float32)


@pytest.fixture
def buckets(tmp_path, monkeypatch):
    """A folder of two buckets, each read in several parts."""
    monkeypatch.setattr(files, "VECTORS_AT_ONCE", 7)
    for bucket in range(2):
        rows = {"corpusid": PAPERS[bucket::2], "vector": vector_column(VECTORS[bucket::2])}
        write_table(tmp_path / f"{bucket}.parquet", "paper_embeddings", pa.table(rows))
    return tmp_path


def test_each_paper_gets_its_own_vector_and_absent_ones_none(buckets):
    asked = np.array([3, 1000, 1007, 1022, 1039, 5000])
    found, is_there = vectors_of_papers(buckets, "paper_embeddings", asked)
    assert is_there.tolist() == [False, True, True, True, True, False]
    np.testing.assert_array_equal(found[1:5], VECTORS[[0, 7, 22, 39]])
    assert not found[[0, 5]].any()


def test_a_table_of_something_else_is_refused(buckets):
    edges = {"source": PAPERS, "target": PAPERS, "weight": pa.array(np.ones(len(PAPERS)), pa.float32())}
    write_table(buckets / "1.parquet", "edges", pa.table(edges))
    with pytest.raises(InputError, match=r"1\.parquet"):
        vectors_of_papers(buckets, "paper_embeddings", PAPERS)
