"""The DuckDB file shows every table, with what the files' paths tell as columns."""

import json

import duckdb
import numpy as np
import pyarrow as pa

from cocite.files import vector_column, write_table
from cocite.report.views import write_views


def query(path, sql):
    with duckdb.connect(path, read_only=True) as database:
        return database.sql(sql).fetchall()


def write_edges(path, *ends):
    columns = {"source": [a for a, _ in ends], "target": [b for _, b in ends], "weight": pa.array([1.0] * len(ends))}
    write_table(path, "edges", pa.table(columns))


def test_buckets_are_united_and_graphs_told_apart(tmp_path):
    write_edges(tmp_path / "graph/cited/edges/0.parquet", (2, 3))
    write_edges(tmp_path / "graph/cited/edges/1.parquet", (1, 3), (3, 4))
    write_edges(tmp_path / "graph/both/edges/0.parquet", (2, 3))
    write_views(tmp_path, tmp_path / "cocite.duckdb")
    assert query(tmp_path / "cocite.duckdb", "SELECT graph, count(*) FROM edges GROUP BY ALL ORDER BY ALL") == [
        ("both", 1),
        ("cited", 3),
    ]


def test_what_is_left_of_entries_that_are_gone_is_in_no_view(tmp_path):
    for name in ("cited", "renamed"):
        write_edges(tmp_path / f"graph/{name}/edges/0.parquet", (2, 3))
    (tmp_path / "provenance.json").write_text(json.dumps({"configuration": {"graphs": {"cited": {}}}}))
    write_views(tmp_path, tmp_path / "cocite.duckdb")
    assert query(tmp_path / "cocite.duckdb", "SELECT graph FROM edges") == [("cited",)]


def test_vectors_of_different_dimension_stand_in_one_view(tmp_path):
    for name, dimension in (("small", 2), ("large", 3)):
        rows = pa.table({"corpusid": [1], "vector": vector_column(np.ones((1, dimension)))})
        write_table(tmp_path / f"biggraph/{name}/graph_embeddings.parquet", "graph_embeddings", rows)
    write_views(tmp_path, tmp_path / "cocite.duckdb")
    lengths = "SELECT embedding, len(vector) FROM graph_embeddings ORDER BY ALL"
    assert query(tmp_path / "cocite.duckdb", lengths) == [("large", 3), ("small", 2)]


def test_only_tables_that_are_there_have_a_view(tmp_path):
    write_edges(tmp_path / "graph/cited/edges/0.parquet", (2, 3))
    assert write_views(tmp_path, tmp_path / "cocite.duckdb") == ["edges"]


def test_a_seed_is_a_number(tmp_path):
    rows = pa.table({"step": [1], "metric": ["validation_loss"], "value": [0.5]})
    write_table(tmp_path / "encoder/model-a/seed-12/training_curves.parquet", "training_curves", rows)
    write_views(tmp_path, tmp_path / "cocite.duckdb")
    assert query(tmp_path / "cocite.duckdb", "SELECT model, seed FROM training_curves") == [("model-a", 12)]
