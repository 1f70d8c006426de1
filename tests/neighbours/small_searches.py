"""Small tables to search in, the search as a list of rows, and neighbours by their definition."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from cocite.config.embeddings import SearchSettings
from cocite.core.tables.files import read_table, vector_column, write_table
from cocite.neighbours.searching import search_neighbours

LINE = {1: [0.0, 0.0], 2: [3.0, 0.0], 3: [5.0, 0.0], 4: [-3.0, 0.0], 5: [0.0, 7.0]}

Row = tuple[int, int, int, float]
"""Query, rank, neighbour, distance."""


class KilledError(Exception):
    """Stands for the end of the process."""


def write_vectors(folder: Path, vectors: Mapping[int, Sequence[float]], *, row_group: int = 100_000) -> Path:
    path = folder / "graph_embeddings.parquet"
    ids = sorted(vectors)
    column = vector_column(np.array([vectors[paper] for paper in ids], dtype=np.float32))
    table = pa.table({"corpusid": ids, "vector": column})
    write_table(path, "graph_embeddings", iter(table.to_batches(row_group)))
    return path


def write_queries(folder: Path, splits: Mapping[int, str]) -> Path:
    path = folder / "queries.parquet"
    papers = sorted(splits)
    write_table(path, "queries", pa.table({"corpusid": papers, "split": [splits[paper] for paper in papers]}))
    return path


def search(
    folder: Path,
    vectors: Mapping[int, Sequence[float]],
    splits: Mapping[int, str],
    *,
    metric: str = "l2",
    k: int = 2,
    row_group: int = 100_000,
    **options: object,
) -> list[Row]:
    """The rows of table `neighbours`; the tables stay in the folder."""
    write_vectors(folder, vectors, row_group=row_group)
    write_queries(folder, splits)
    return search_again(folder, SearchSettings(metric=metric, k=k), **options)


def search_again(folder: Path, settings: SearchSettings, **options: object) -> list[Row]:
    """The rows of table `neighbours` of a search in the tables that are in the folder."""
    tables = folder / "graph_embeddings.parquet", folder / "queries.parquet"
    search_neighbours(*tables, settings, **{"memory_mb": 1000, "threads": 1, **written(folder)} | options)
    return read_rows(folder / "neighbours.parquet")


def written(folder: Path) -> dict[str, Path]:
    """Where neighbours, omissions and the state of a step go."""
    tables = {"output": folder / "neighbours.parquet", "omissions": folder / "omissions.parquet"}
    return {"state": folder / "state", **tables}


def read_counts(folder: Path) -> dict[str, int]:
    """What the step in a folder left out, by reason."""
    rows = read_table(folder / "omissions.parquet", "omissions").to_pylist()
    return {row["reason"]: row["count"] for row in rows}


def read_rows(path: Path) -> list[Row]:
    rows = read_table(path, "neighbours").to_pylist()
    return [(row["query"], row["rank"], row["neighbour"], row["distance"]) for row in rows]


def by_definition(vectors: Mapping[int, Sequence[float]], query: int, metric: str, k: int) -> list[Row]:
    """All other papers by distance, rounded to float32, and id; exact where the vectors hold small whole numbers."""
    one = np.array(vectors[query], dtype=np.float64)
    distances = {paper: _distance(one, np.array(vectors[paper], dtype=np.float64), metric) for paper in vectors}
    ranked = sorted((distance, paper) for paper, distance in distances.items() if paper != query)
    return [(query, rank, paper, distance) for rank, (distance, paper) in enumerate(ranked[:k], start=1)]


def _distance(one: np.ndarray, other: np.ndarray, metric: str) -> float:
    if metric == "l2":
        return float(np.float32(np.square(one - other).sum()))
    if metric == "inner_product":
        return float(np.float32(-(one @ other)))
    lengths = np.sqrt((one @ one) * (other @ other))
    return float(np.float32(max(0.0, 1 - one @ other / lengths))) if lengths else 1.0
