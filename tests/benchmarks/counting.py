"""Counting co-citations beside DuckDB, a dictionary, a sparse product, and large ids; and four times the size.

Two numbers behind the folder, citations and queries, choose another size; DuckDB is asked at two sizes of its own.
"""

import json
import statistics
import sys
from pathlib import Path

import duckdb
from tests.benchmarks.citations import FAR_APART, write_citations, write_queries
from tests.benchmarks.measuring import Command, Cost, compare, run, run_together, say

CITATIONS = 25_500_000
QUERIES = 20_000
JOINED = ((3_000_000, 3_000), (12_000_000, 20_000))
"""Citations and queries of the runs beside DuckDB's join, which spills to disk beyond."""
BUCKETS = 2
MEMORY_MB = 1000
"""Limit of one of two jobs that run side by side."""


def main(folder: Path, citations: int = CITATIONS, queries: int = QUERIES) -> None:
    """Print each ratio that the limits are about."""
    for sizes in JOINED:
        _compare_join(folder, *sizes)
    once = _corpus(folder / "citations" / f"once-{citations}", citations)
    count = _count(folder, once, queries)
    compare(
        "Counting to a sparse product that holds everything",
        lambda: run_together(count),
        lambda: run(_rival("sparse_product", folder, once, queries)),
        "wall",
        rounds=3,
    )
    compare(
        "One Python dictionary to counting",
        lambda: run(_rival("dictionary", folder, once, queries)),
        lambda: run_together(count),
        "wall",
        rounds=1,
    )
    cost = _tell(folder, count, citations, queries)
    _compare_ids(folder, count, citations, queries)

    fourfold = _corpus(folder / "citations" / f"fourfold-{citations}", 4 * citations)
    larger = _tell(folder, _count(folder, fourfold, queries), 4 * citations, queries)
    say(f"Counting four times the citations within the same limit: {larger.wall / cost.wall:.2f} × the time.")
    _tell(folder, _count(folder, fourfold, 3 * queries), 4 * citations, 3 * queries)


def _compare_join(folder: Path, citations: int, queries: int) -> None:
    """Beside DuckDB's join of the citations with themselves, with the same memory and threads, and the same output."""
    corpus = _corpus(folder / "citations" / f"once-{citations}", citations)
    count = _count(folder, corpus, queries)
    joined = folder / "joined.parquet"
    program = [sys.executable, "-m", "tests.benchmarks.duckdb_join"]
    limits = [str(BUCKETS * MEMORY_MB), str(BUCKETS)]
    join = [*program, "join", corpus[0].parent, _queries(folder, queries, 1), joined, *limits]
    rounds = [(run_together(count), run(join)) for _ in range(3)]
    run([*program, "check", _counted(folder)[0].parent, joined])
    say(f"Of {citations:,} citations and {queries:,} queries:")
    for title, costs in zip(("Counting", "DuckDB's self-join"), zip(*rounds, strict=True), strict=True):
        wall, cpu, peak = (statistics.median(getattr(cost, of) for cost in costs) for of in ("wall", "cpu", "peak_mb"))
        peak *= BUCKETS if title == "Counting" else 1
        say(f"{title}, with the same pairs and counts: {wall:.2f} s, {cpu:.2f} s of CPU, peak memory {peak:.0f} MB.")
    ratios = sorted(joining.wall / counting.wall for counting, joining in rounds)
    median, lowest, highest = statistics.median(ratios), ratios[0], ratios[-1]
    say(f"DuckDB's self-join to counting: {median:.2f} × the time (round by round {lowest:.2f} to {highest:.2f})")


def _compare_ids(folder: Path, count: list[list[Command]], citations: int, queries: int) -> None:
    """The same citations with ids all over 63 bits, beside those with ids as dense as Semantic Scholar's."""
    corpus = _corpus(folder / "citations" / f"spread-{citations}", citations, FAR_APART)
    spread = _count(folder, corpus, queries, FAR_APART)
    title = "Counting with ids all over 63 bits to counting with small ones"
    for of in ("wall", "cpu"):
        compare(title, lambda: run_together(spread), lambda: run_together(count), of, rounds=3)
    _tell(folder, spread, citations, queries)


def _corpus(folder: Path, citations: int, factor: int = 1) -> list[Path]:
    """The buckets of citations, made where they are not there yet."""
    paths = [folder / f"{bucket}.parquet" for bucket in range(BUCKETS)]
    if not all(path.exists() for path in paths):
        write_citations(folder, citations=citations, buckets=BUCKETS, factor=factor)
    return paths


def _count(folder: Path, citations: list[Path], queries: int, factor: int = 1) -> list[list[Command]]:
    """Two jobs to run side by side, one a bucket."""
    asked = _queries(folder, queries, factor)
    write_queries(asked, queries=queries, factor=factor)
    settings = json.dumps({"signal": "cocitation", "pairs": "query"})
    limits = ["--settings", settings, "--buckets", str(BUCKETS), "--memory-mb", str(MEMORY_MB)]
    program = [Path(sys.executable).with_name("cocite"), "graph", "count", *citations, "--queries", asked]
    outputs = [["--output", path, "--omissions", path.with_suffix(".omissions")] for path in _counted(folder)]
    return [[[*program, *limits, "--bucket", str(bucket), *outputs[bucket]]] for bucket in range(BUCKETS)]


def _queries(folder: Path, queries: int, factor: int) -> Path:
    return folder / f"queries-{queries}-{factor}.parquet"


def _counted(folder: Path) -> list[Path]:
    return [folder / "cocitations" / f"{bucket}.parquet" for bucket in range(BUCKETS)]


def _rival(name: str, folder: Path, citations: list[Path], queries: int) -> Command:
    program = [sys.executable, "-m", "tests.benchmarks.counters", name]
    return [*program, citations[0].parent, _queries(folder, queries, 1), "query", folder / "rival.parquet"]


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
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
