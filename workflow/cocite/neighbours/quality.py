"""How much of the true neighbours an approximate index finds, measured on some of the queries.

In comes what a search takes; out goes the table `search_quality`: for a seeded sample of the queries, the share of the
k nearest papers of the exact search that the index led to, at several k, and the seconds that either search took.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from cocite.ground.randomness import priorities
from cocite.neighbours.choices import SearchSettings
from cocite.neighbours.distances import FARTHEST, Block, Keys, numbers_in
from cocite.neighbours.pools import Workers, start_workers
from cocite.neighbours.searching import Search, anchors, check_papers, choose_search
from cocite.neighbours.vectors import open_vectors
from cocite.tables.files import write_table

RANKS = (10, 100, 1000)
"""Recall is told at these, where k is larger, and at k."""


def measure_search(
    vectors: Path,
    queries: Path,
    settings: SearchSettings,
    *,
    index: Path,
    papers: Sequence[Path] = (),
    sample: int,
    seed: int,
    threads: int,
    output: Path,
) -> None:
    """Write the table `search_quality` of an index, from this many queries."""
    table = open_vectors(vectors, papers)
    check_papers(table, queries, settings.k)
    approximate = choose_search(settings, table, index)
    exact = choose_search(replace(settings, index="flat"), table, None)
    with start_workers(threads) as workers:
        found = approximate.find(anchors(queries), workers)
        ids = table.numbering.ids_of(found.numbers)
        order = np.argsort(priorities(seed, "sample of search_quality", ids), kind="stable")
        chosen = found.choose(np.sort(order[:sample]))
        reached, seconds = _timed(approximate, chosen, settings.k, workers)
        true, exact_seconds = _timed(exact, chosen, settings.k, workers)
    ranks = sorted({*(rank for rank in RANKS if rank < settings.k), settings.k})
    same = {
        "metric": settings.metric,
        "index": settings.index,
        "queries": len(chosen.numbers),
        "seconds": seconds,
        "exact_seconds": exact_seconds,
    }
    rows = [{**same, "k": k, "recall": recall(reached[:, :k], true[:, :k])} for k in ranks]
    write_table(output, "search_quality", pa.Table.from_pylist(rows))


def recall(reached: Keys, true: Keys) -> float:
    """The share of the true neighbours that were reached; 1 where there is no query."""
    numbers = [numbers_in(keys[keys != FARTHEST]) for keys in reached]
    shared = sum(np.isin(numbers_in(expected), own).sum() for own, expected in zip(numbers, true, strict=True))
    return float(shared / true.size) if true.size else 1.0


def _timed(search: Search, queries: Block, k: int, workers: Workers) -> tuple[Keys, float]:
    start = time.perf_counter()
    return search.nearest(queries, k, workers), time.perf_counter() - start
