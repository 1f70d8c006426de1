"""Small graphs to walk on, the walks as a list of rows, and scores by their definition."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tests.neighbours.small_searches import Row, read_rows, write_queries, written

from cocite.config.embeddings import Links, WalkSettings
from cocite.core.tables.files import write_table
from cocite.neighbours.adjacency import build_adjacency
from cocite.neighbours.walking import walk_neighbours

Edges = Mapping[tuple[int, int], float]
"""Source and target → weight."""

# 1 – 2 – 3 – 4, 2 – 5, and 8 – 9 apart.
TREE = dict.fromkeys([(1, 2), (2, 3), (3, 4), (5, 2), (8, 9)], 1.0)


def write_edges(folder: Path, edges: Edges, *, buckets: int = 1) -> list[Path]:
    """The edges, each in the bucket of its source."""
    paths = []
    for bucket in range(buckets):
        rows = sorted((*ends, weight) for ends, weight in edges.items() if ends[0] % buckets == bucket)
        names = {"source": pa.int64(), "target": pa.int64(), "weight": pa.float32()}
        table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=pa.schema(names))
        paths.append(folder / "edges" / f"{bucket}.parquet")
        write_table(paths[-1], "edges", table)
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


def matrix_of(edges: Edges, *, weighted: bool) -> tuple[list[int], NDArray[np.float64]]:
    """The papers with an edge, and the links between them, which go either way."""
    papers = sorted({paper for ends in edges for paper in ends})
    links = np.zeros((len(papers), len(papers)))
    for (source, target), weight in edges.items():
        one, other = papers.index(source), papers.index(target)
        links[one, other] += weight if weighted else 1
        links[other, one] += weight if weighted else 1
    return papers, links


def by_definition(
    edges: Edges, query: int, k: int, *, restart: float = 0.15, score: str = "symmetric", weighted: bool = False
) -> list[Row]:
    """The k papers with the highest scores that are linked with the query, directly or not."""
    degrees = degrees_by_definition(edges, weighted=weighted)
    chances = chances_by_definition(edges, query, restart, weighted=weighted)
    factor = {
        paper: np.sqrt(degrees[query] / degree) if score == "symmetric" else 1.0 for paper, degree in degrees.items()
    }
    ranked = sorted(
        (float(np.float32(-np.log(chance * factor[paper]))), paper)
        for paper, chance in chances.items()
        if paper != query and chance > 1e-15
    )
    return [(query, rank, paper, distance) for rank, (distance, paper) in enumerate(ranked[:k], start=1)]
