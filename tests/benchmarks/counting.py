"""Counting co-citations beside a dictionary, a sparse product, and the same with large ids; and four times the size."""

import json
import sys
from pathlib import Path

import duckdb
from tests.benchmarks.citations import FAR_APART, write_citations, write_queries
from tests.benchmarks.measuring import Command, Cost, compare, run, run_together, say

CITATIONS = 25_500_000
QUERIES = 20_000
BUCKETS = 2
MEMORY_MB = 1000
"""Limit of one of two jobs that run side by side."""


def main(folder: Path) -> None:
    """Print each ratio that the limits are about."""
    once = _corpus(folder / "citations" / "once", CITATIONS)
    count = _count(folder, once, QUERIES)
    compare(
        "Counting to a sparse product that holds everything",
        lambda: run_together(count),
        lambda: run(_rival("sparse_product", folder, once)),
        "wall",
        rounds=3,
    )
    compare(
        "One Python dictionary to counting",
        lambda: run(_rival("dictionary", folder, once)),
        lambda: run_together(count),
        "wall",
        rounds=1,
    )
    cost = _tell(folder, count, CITATIONS, QUERIES)
    _compare_ids(folder, count)

    fourfold = _corpus(folder / "citations" / "fourfold", 4 * CITATIONS)
    larger = _tell(folder, _count(folder, fourfold, QUERIES), 4 * CITATIONS, QUERIES)
    say(f"Counting four times the citations within the same limit: {larger.wall / cost.wall:.2f} × the time.")
    _tell(folder, _count(folder, fourfold, 3 * QUERIES), 4 * CITATIONS, 3 * QUERIES)


def _compare_ids(folder: Path, count: list[list[Command]]) -> None:
    """The same citations with ids all over 63 bits, beside those with ids as dense as Semantic Scholar's."""
    spread = _count(folder, _corpus(folder / "citations" / "spread", CITATIONS, FAR_APART), QUERIES, FAR_APART)
    title = "Counting with ids all over 63 bits to counting with small ones"
    for of in ("wall", "cpu"):
        compare(title, lambda: run_together(spread), lambda: run_together(count), of, rounds=3)
    _tell(folder, spread, CITATIONS, QUERIES)


def _corpus(folder: Path, citations: int, factor: int = 1) -> list[Path]:
    """The buckets of citations, made where they are not there yet."""
    paths = [folder / f"{bucket}.parquet" for bucket in range(BUCKETS)]
    if not all(path.exists() for path in paths):
        write_citations(folder, citations=citations, buckets=BUCKETS, factor=factor)
    return paths


def _count(folder: Path, citations: list[Path], queries: int, factor: int = 1) -> list[list[Command]]:
    """Two jobs to run side by side, one a bucket."""
    asked = folder / f"queries-{queries}-{factor}.parquet"
    write_queries(asked, queries=queries, factor=factor)
    settings = json.dumps({"signal": "cocitation", "pairs": "query"})
    limits = ["--settings", settings, "--buckets", str(BUCKETS), "--memory-mb", str(MEMORY_MB)]
    program = [Path(sys.executable).with_name("cocite"), "graph", "count", *citations, "--queries", asked]
    outputs = [["--output", path, "--omissions", path.with_suffix(".omissions")] for path in _counted(folder)]
    return [[[*program, *limits, "--bucket", str(bucket), *outputs[bucket]]] for bucket in range(BUCKETS)]


def _counted(folder: Path) -> list[Path]:
    return [folder / "cocitations" / f"{bucket}.parquet" for bucket in range(BUCKETS)]


def _rival(name: str, folder: Path, citations: list[Path]) -> Command:
    queries = folder / f"queries-{QUERIES}-1.parquet"
    program = [sys.executable, "-m", "tests.benchmarks.counters", name]
    return [*program, citations[0].parent, queries, "query", folder / "rival.parquet"]


def _tell(folder: Path, count: list[list[Command]], citations: int, queries: int) -> Cost:
    """Count, and say what it took; the memory of the jobs that run side by side is summed."""
    cost = run_together(count)
    counted = [str(path) for path in _counted(folder)]
    (joined, pairs), *_ = duckdb.execute("SELECT sum(count), count(*) FROM read_parquet(?)", [counted]).fetchall()
    say(
        f"Counting {joined:,} joined pairs of {citations:,} citations and {queries:,} queries, "
        f"{pairs:,} of them distinct: {cost.wall:.1f} s, peak memory {BUCKETS * cost.peak_mb:.0f} MB."
    )
    return cost


if __name__ == "__main__":
    main(Path(sys.argv[1]))
