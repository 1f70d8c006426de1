"""Neighbours by walks on a large graph: time and memory to lay its links out and to rank, beside power iteration.

10 million papers and 100 million edges in communities, with a heavy tail of citations. Commands are whole: from the
tables of edges to the links, and from the links to the table of neighbours. The rival is what one writes by hand: the
graph as a sparse matrix of scipy in memory, and power iteration from each query (`walks_by_iteration.py`).
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.measuring import Command, run, run_and_read, say

PAPERS, EDGES, QUERIES, BY_HAND = 10_000_000, 100_000_000, 2000, 2
K, THREADS = 1000, 2
TOLERANCES = (1e-5, 1e-6)
COCITE = Path(sys.executable).with_name("cocite")


def main(chosen: argparse.Namespace) -> None:
    """Print time and memory of each step, and how many of the rival's neighbours are found."""
    folder = chosen.folder / "walks"
    shutil.rmtree(folder, ignore_errors=True)
    sizes = map(str, (chosen.papers, chosen.edges, chosen.queries))
    made = run([sys.executable, "-m", "tests.benchmarks.made_citations", folder, *sizes])
    say(f"{chosen.papers:,} papers, about {chosen.edges:,} edges, made in {made.wall:.0f} s")
    for memory_mb in chosen.memory_mb:
        laid, told = run_and_read(_adjacency(folder, memory_mb))
        size = told.splitlines()[0]
        say(
            f"Links with {memory_mb:,} MB: {laid.wall:.1f} s, {laid.cpu:.1f} s of processor time, peak memory "
            f"{laid.peak_mb:,.0f} MB ({size})"
        )
    for tolerance in TOLERANCES:
        walked = run(_walk(folder, tolerance, chosen.memory_mb[-1]))
        say(
            f"Walks from {chosen.queries:,} queries, tolerance {tolerance:g}, {THREADS} threads: {walked.wall:.1f} s, "
            f"{1000 * walked.cpu / chosen.queries:.0f} ms of processor time a query, "
            f"peak memory {walked.peak_mb:,.0f} MB"
        )
    by_hand = [sys.executable, "-m", "tests.benchmarks.walks_by_iteration", folder / "links", str(chosen.by_hand)]
    command = list(map(str, [*by_hand, *(_neighbours(folder, tolerance) for tolerance in TOLERANCES)]))
    told = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    seconds, *shares = map(float, told.split())
    of_each = ", ".join(f"{share:.1%} at {at:g}" for share, at in zip(shares, TOLERANCES, strict=True))
    say(
        f"Power iteration: {seconds:.1f} s of processor time a query; among our neighbours are of its {K:,} best "
        f"{of_each}"
    )
    shutil.rmtree(folder)


def _adjacency(folder: Path, memory_mb: int) -> Command:
    return [
        *(COCITE, "neighbours", "adjacency", *sorted((folder / "edges").glob("*.parquet")), "--settings", "{}"),
        *("--memory-mb", str(memory_mb), "--output", folder / "links"),
    ]


def _walk(folder: Path, tolerance: float, memory_mb: int) -> Command:
    return [
        *(COCITE, "neighbours", "walk", "--adjacency", folder / "links", "--queries", folder / "queries.parquet"),
        *("--settings", json.dumps({"k": K, "tolerance": tolerance}), "--shard", "0", "--shards", "1"),
        *("--memory-mb", str(memory_mb), "--threads", str(THREADS), "--state", folder / "state"),
        *("--output", _neighbours(folder, tolerance), "--omissions", folder / "omissions.parquet"),
    ]


def _neighbours(folder: Path, tolerance: float) -> Path:
    return folder / f"neighbours-{tolerance:g}.parquet"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--papers", type=int, default=PAPERS)
    parser.add_argument("--edges", type=int, default=EDGES)
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--by-hand", type=int, default=BY_HAND)
    parser.add_argument("--memory-mb", type=int, nargs="+", default=[1000, 3000])
    main(parser.parse_args())
