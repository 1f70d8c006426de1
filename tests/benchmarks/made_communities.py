"""A directed graph of communities as a table `edges`, made by a process of its own.

    python -m tests.benchmarks.made_communities PATH PAPERS EDGES [--older]

Communities have 10 to 500 papers, small ones more often. Four edges of five lead to a paper of the same community, the
others to any, so that link prediction can be learned but not perfectly. Targets within a community are drawn unevenly:
some papers are cited far more often than others. With --older it is the release before: a tenth of the papers, drawn
from all, is not there yet, and neither are their edges.
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.core.tables.files import write_table

SMALLEST, LARGEST = 10, 500
WITHIN = 0.8
NEW = 0.1
GAP = 7
"""Corpus ids are multiples of it, since those of real papers have gaps as well."""


def main(path: Path, papers: int, edges: int, *, older: bool) -> None:
    """Write about so many edges: those drawn twice, and those from a paper to itself, are not there."""
    drawn = np.random.default_rng(1)
    pairs = draw_edges(drawn, papers, edges)
    if older:
        there = drawn.random(papers) >= NEW
        pairs = pairs[there[pairs].all(axis=1)]
    columns = {"source": GAP * (pairs[:, 0] + 1), "target": GAP * (pairs[:, 1] + 1)}
    write_table(path, "edges", pa.table({**columns, "weight": np.ones(len(pairs), dtype=np.float32)}))


def draw_edges(drawn: np.random.Generator, papers: int, edges: int) -> NDArray[np.int64]:
    """Distinct edges between different papers 0, 1, …, in order; edges × 2."""
    firsts = first_papers(drawn, papers)
    community = np.repeat(np.arange(len(firsts) - 1), np.diff(firsts))
    source = drawn.integers(papers, size=edges)
    start, size = firsts[community[source]], np.diff(firsts)[community[source]]
    near = start + (size * drawn.random(edges) ** 2).astype(np.int64)
    target = np.where(drawn.random(edges) < WITHIN, near, drawn.integers(papers, size=edges))
    pairs = np.unique(source * papers + target)
    found = np.stack([pairs // papers, pairs % papers], axis=1)
    return found[found[:, 0] != found[:, 1]]


def first_papers(drawn: np.random.Generator, papers: int) -> NDArray[np.int64]:
    """Number of the first paper of each community, and of papers; sizes are spread evenly over their logarithm."""
    sizes = np.exp(drawn.uniform(np.log(SMALLEST), np.log(LARGEST), papers // SMALLEST + 1)).astype(np.int64)
    firsts = np.cumsum(sizes)
    return np.concatenate([[0], firsts[firsts < papers], [papers]])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("papers", type=int)
    parser.add_argument("edges", type=int)
    parser.add_argument("--older", action="store_true")
    main(**vars(parser.parse_args()))
