"""The walks of walks.py by hand: power iteration with scipy, on the whole graph in memory, a query after the other.

    python -m tests.benchmarks.walks_by_iteration LINKS QUERIES NEIGHBOURS …

Each query is iterated until less than a thousandth of its walks has not stopped. Prints the seconds of processor time
that a query takes, without reading the graph, and for each table of neighbours the share of the 1,000 best papers of
the iteration that are among its 1,000 neighbours.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import csr_array
from tests.benchmarks.measuring import say

from cocite.core.tables.files import read_table
from cocite.neighbours.adjacency import open_adjacency

RESTART, K = 0.15, 1000
LEFT = 1e-3


def main(folder: Path, queries: int, neighbours: Sequence[Path]) -> None:
    """Print a line for `walks.py` to read."""
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
        shares.append(np.mean([np.isin(ids[places], own).mean() for places, own in zip(best, found, strict=True)]))
    say(" ".join(f"{number:.4f}" for number in (seconds, *shares)))


def best_papers(links: csr_array, degrees: NDArray[np.float64], query: int) -> NDArray[np.int64]:
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


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), list(map(Path, sys.argv[3:])))
