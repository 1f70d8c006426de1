"""Neighbours by walks on a large graph: time and memory to lay its links out and to rank, beside power iteration.

10 million papers and 100 million edges in communities, with a heavy tail of citations. Commands are whole: from the
tables of edges to the links, and from the links to the table of neighbours. The rival is what one writes by hand: the
graph as a sparse matrix of scipy in memory, and power iteration from each query, a query after the other,
until less than a thousandth of its walks has not stopped.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from tests.benchmarks.made_graphs import write_cited
from tests.benchmarks.measuring import answer, cocite, python, run, run_and_read, say

from cocite.core.tables.files import read_table

PAPERS, EDGES, QUERIES, BY_HAND = 10_000_000, 100_000_000, 2000, 2
TOLERANCES = (1e-5, 1e-6)
RESTART, K, THREADS = 0.15, 1000, 2
LEFT = 1e-3


def main(
    folder: Path,
    papers: int = PAPERS,
    edges: int = EDGES,
    queries: int = QUERIES,
    by_hand: int = BY_HAND,
    memory_mb: tuple[int, ...] = (1000, 3000),
) -> None:
    made, links = run(python(write_cited, folder, papers, edges, queries)), folder / "links"
    say(f"{papers:,} papers, about {edges:,} edges, made in {made.wall:.0f} s")
    tables = sorted((folder / "edges").glob("*.parquet"))
    for limit in memory_mb:
        laying = cocite("neighbours", "adjacency", *tables, settings={}, memory_mb=limit, output=links)
        laid, told = run_and_read(laying)
        say(f"Links with {limit:,} MB: {laid} ({told.splitlines()[0]})")
    files = {"adjacency": links, "queries": folder / "queries.parquet", "state": folder / "state"}
    limits = {"shard": (0, 1), "memory_mb": memory_mb[-1], "threads": THREADS}
    for tolerance in TOLERANCES:
        written = {"output": _neighbours(folder, tolerance), "omissions": folder / "omissions.parquet"}
        settings = {"k": K, "tolerance": tolerance}
        walked = run(cocite("neighbours", "walk", settings=settings, **files, **limits, **written))
        say(
            f"Walks from {queries:,} queries, tolerance {tolerance:g}, {THREADS} threads: {walked}, "
            f"{1000 * walked.cpu / queries:.0f} ms of processors a query"
        )
    found = (_neighbours(folder, tolerance) for tolerance in TOLERANCES)
    _, (seconds, shares) = answer(iterate, links, by_hand, *found)
    of_each = ", ".join(f"{share:.1%} at {at:g}" for share, at in zip(shares, TOLERANCES, strict=True))
    say(
        f"Power iteration: {seconds:.1f} s of processor time a query; among our neighbours are of its {K:,} best "
        f"{of_each}"
    )


def iterate(folder: Path, queries: int, *neighbours: Path) -> tuple[float, list[float]]:
    """The seconds of processor time that a query takes by power iteration, without reading the graph, and for each of
    our tables of neighbours the share of the best papers of the iteration that are in it."""
    from scipy.sparse import csr_array

    from cocite.core.adjacency import open_adjacency

    graph = open_adjacency(folder)
    ids, degrees = np.array(graph.ids), np.array(graph.degrees)
    links = csr_array((np.ones(len(graph.others), dtype=np.float32), np.array(graph.others), np.array(graph.starts)))
    tables = [read_table(table, "neighbours", ["query", "neighbour"]) for table in neighbours]
    asked = np.unique(tables[0]["query"].to_numpy())[:queries]
    start = time.process_time()
    best = [best_papers(links, degrees, int(np.searchsorted(ids, query))) for query in asked]
    seconds = (time.process_time() - start) / len(asked)
    shares = []
    for table in tables:
        found = [table.filter(pc.equal(table["query"], query))["neighbour"].to_numpy() for query in asked]
        of_queries = [np.isin(ids[places], own).mean() for places, own in zip(best, found, strict=True)]
        shares.append(float(np.mean(of_queries)))
    return seconds, shares


def _neighbours(folder: Path, tolerance: float) -> Path:
    return folder / f"neighbours-{tolerance:g}.parquet"


def best_papers(links: Any, degrees: NDArray[np.float64], query: int) -> NDArray[np.int64]:
    """The places of the papers with the best symmetric scores."""
    walks = np.zeros(len(degrees), dtype=np.float32)
    walks[query] = 1
    stopped, left = RESTART * walks, 1 - RESTART
    while left > LEFT:
        walks = (1 - RESTART) * (links @ (walks / degrees).astype(np.float32))
        stopped += RESTART * walks
        left *= 1 - RESTART
    score = stopped / np.sqrt(degrees)
    score[query] = 0
    return np.argpartition(-score, K)[:K]
