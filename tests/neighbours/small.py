"""Small tables to search and graphs to walk, both as lists of rows, and neighbours by their definition."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tests.rows import write_rows
from tests.triplets import blocks
from tests.triplets.blocks import write_queries

from cocite.config.embeddings import Links, SearchSettings, WalkSettings
from cocite.core.tables.files import read_table
from cocite.neighbours.adjacency import build_adjacency
from cocite.neighbours.searching import search_neighbours
from cocite.neighbours.walking import walk_neighbours

LINE = {1: [0.0, 0.0], 2: [3.0, 0.0], 3: [5.0, 0.0], 4: [-3.0, 0.0], 5: [0.0, 7.0]}

Row = tuple[int, int, int, float]
"""Query, rank, neighbour, distance."""
Edges = Mapping[tuple[int, int], float]
"""Source and target → weight."""

# 1 – 2 – 3 – 4, 2 – 5, and 8 – 9 apart.
TREE = dict.fromkeys([(1, 2), (2, 3), (3, 4), (5, 2), (8, 9)], 1.0)


class KilledError(Exception):
    """Stands for the end of the process."""


def write_vectors(folder: Path, vectors: Mapping[int, Sequence[float]], *, row_group: int = 100_000) -> Path:
    return blocks.write_vectors(folder / "graph_embeddings.parquet", vectors, rows=row_group)


def write_papers(folder: Path, abstracts: dict[int, str | None]) -> Path:
    return blocks.write_papers(folder, {paper: ("title", abstracts[paper]) for paper in abstracts}) / "0.parquet"


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


def write_edges(folder: Path, edges: Edges, *, buckets: int = 1) -> list[Path]:
    """The edges, each in the bucket of its source."""
    paths = []
    for bucket in range(buckets):
        rows = sorted((*ends, weight) for ends, weight in edges.items() if ends[0] % buckets == bucket)
        paths.append(write_rows(folder / f"edges/{bucket}.parquet", "edges", "source target weight", rows))
    return paths


def links_of(folder: Path, edges: Edges, *, weighted: bool = False, buckets: int = 1, memory_mb: int = 1000) -> Path:
    """The folder of the links of a graph."""
    paths = write_edges(folder, edges, buckets=buckets)
    build_adjacency(paths, Links(weighted=weighted), memory_mb=memory_mb, output=folder / "links")
    return folder / "links"


def walk(
    folder: Path,
    edges: Edges,
    splits: Mapping[int, str],
    *,
    weighted: bool = False,
    papers: Sequence[Path] = (),
    shard: tuple[int, int] = (0, 1),
    threads: int = 1,
    **settings: object,
) -> list[Row]:
    """The rows of table `neighbours`; the tables stay in the folder."""
    tables = links_of(folder, edges, weighted=weighted), write_queries(folder, splits)
    asked = WalkSettings(**{"k": 2, "tolerance": 1e-12, **settings})
    walk_neighbours(*tables, asked, papers=papers, shard=shard, memory_mb=1000, threads=threads, **written(folder))
    return read_rows(folder / "neighbours.parquet")


def matrix_of(edges: Edges, *, weighted: bool) -> tuple[list[int], NDArray[np.float64]]:
    """The papers with an edge, and the links between them, which go either way."""
    papers = sorted({paper for ends in edges for paper in ends})
    links = np.zeros((len(papers), len(papers)))
    for (source, target), weight in edges.items():
        one, other = papers.index(source), papers.index(target)
        links[[one, other], [other, one]] += weight if weighted else 1
    return papers, links


def chances_by_definition(edges: Edges, query: int, restart: float, *, weighted: bool = False) -> dict[int, float]:
    """The chance that a walk from the query stops at each paper: restart · (I − (1 − restart) · Pᵀ)⁻¹ · e, solved."""
    papers, links = matrix_of(edges, weighted=weighted)
    steps = links / links.sum(axis=1, keepdims=True)
    start = np.array([float(paper == query) for paper in papers])
    solved = np.linalg.solve(np.eye(len(papers)) - (1 - restart) * steps.T, restart * start)
    return dict(zip(papers, solved.tolist(), strict=True))


def degrees_by_definition(edges: Edges, *, weighted: bool = False) -> dict[int, float]:
    papers, links = matrix_of(edges, weighted=weighted)
    return dict(zip(papers, links.sum(axis=1).tolist(), strict=True))


def walks_by_definition(
    edges: Edges, query: int, k: int, *, restart: float = 0.15, score: str = "symmetric", weighted: bool = False
) -> list[Row]:
    """The k papers with the highest scores that are linked with the query, directly or not."""
    degrees = degrees_by_definition(edges, weighted=weighted)
    chances = chances_by_definition(edges, query, restart, weighted=weighted)
    power = 0.5 if score == "symmetric" else 0
    factor = {paper: (degrees[query] / degree) ** power for paper, degree in degrees.items()}
    ranked = sorted(
        (float(np.float32(-np.log(chance * factor[paper]))), paper)
        for paper, chance in chances.items()
        if paper != query and chance > 1e-15
    )
    return [(query, rank, paper, distance) for rank, (distance, paper) in enumerate(ranked[:k], start=1)]
