"""The search for neighbours: exact and with the vectors on disk, against FAISS with all of them in memory; IVF; memory.

Like for like are whole commands: ours from the table of vectors to the table of neighbours, against FAISS's
IndexFlatL2 from the same table to its answer, which it does not write, and against `faiss.knn` on each block of
vectors, merged. FAISS's search alone, without reading, is reported as well.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.clustered_vectors import GAP
from tests.benchmarks.measuring import Command, Cost, compare, run, say

from cocite.core.tables.files import read_table

PAPERS, DIMENSION, QUERIES, K, THREADS = 500_000, 256, 2000, 5000, 2
TIMES = 10
LISTS, PROBES, LEAST_RECALL = 1024, (16, 20, 24, 32, 48, 64, 96), 0.95
ROUNDS = 3
COCITE = Path(sys.executable).with_name("cocite")


def main(folder: Path) -> None:
    """Print the ratios, and time and memory with ten times the vectors."""
    folder = folder / "searching"
    shutil.rmtree(folder, ignore_errors=True)
    _write_vectors(folder, PAPERS)
    exact, _ = compare(
        f"Exact search of {QUERIES:,} queries in {PAPERS:,} vectors, k = {K:,}, to IndexFlatL2 with its reading",
        lambda: run(_search(folder, {"index": "flat"})),
        lambda: run(_rival(folder)),
        "wall",
        rounds=ROUNDS,
    )
    rival = run(_rival(folder))
    alone = median(_rival_search(folder) for _ in range(ROUNDS))
    compare(
        "The same to faiss.knn in each block of vectors",
        lambda: run(_search(folder, {"index": "flat"})),
        lambda: run(_rival(folder, "faiss_blocks")),
        "cpu",
        rounds=ROUNDS,
    )
    say(f"IndexFlatL2's search alone took {alone:.2f} s; peak memory {exact.peak_mb:.0f} MB to {rival.peak_mb:.0f} MB.")
    compare_lists(folder)
    compare_ids(folder)
    shutil.rmtree(folder)
    search_many(folder / "many", exact)
    shutil.rmtree(folder)


def compare_lists(folder: Path) -> None:
    """The fewest lists that reach the recall, and how long reading them takes beside the exact search."""
    ivf = {"kind": "ivf", "nlist": LISTS}
    built = run(_neighbours("index", folder, {"index": ivf}, "--output", folder / "index", "--seed", "1"))
    say(f"IVF: {LISTS} lists built in {built.wall:.1f} s, peak memory {built.peak_mb:.0f} MB.")
    for probes in PROBES:
        chosen = {"index": {"kind": "ivf", "nprobe": probes}, "k": K}
        rows = [_measure(folder, chosen) for _ in range(ROUNDS)]
        faster, recall = median(row["exact_seconds"] / row["seconds"] for row in rows), rows[0]["recall"]
        say(f"IVF of {probes} probes: recall {recall:.3f}, {faster:.1f} × faster than the exact search to search.")
        if recall >= LEAST_RECALL:
            break
    title = f"IVF of {probes} probes to the exact search, whole commands"
    lists, flat = _search(folder, chosen, "--index", folder / "index"), _search(folder, {"index": "flat"})
    compare(title, lambda: run(lists), lambda: run(flat), "wall", rounds=ROUNDS)


def compare_ids(folder: Path) -> None:
    """The same vectors with ids all over 63 bits."""
    spread = folder / "spread"
    _write_vectors(spread, PAPERS, gap=2**63 // PAPERS)
    cost, _ = compare(
        "Exact search with ids all over 63 bits to that with small ones",
        lambda: run(_search(spread, {"index": "flat"})),
        lambda: run(_search(folder, {"index": "flat"})),
        "wall",
        rounds=ROUNDS,
    )
    say(f"With ids all over 63 bits it takes {cost.peak_mb:.0f} MB.")


def _measure(folder: Path, chosen: dict[str, object]) -> dict[str, Any]:
    """The recall at k, and the seconds of either search without reading queries and writing the table."""
    quality = folder / "search_quality.parquet"
    run(
        _neighbours(
            *("measure", folder, chosen, "--queries", folder / "queries.parquet", "--index", folder / "index"),
            *("--sample", str(QUERIES), "--seed", "1", "--output", quality),
        )
    )
    row: dict[str, Any] = read_table(quality, "search_quality").to_pylist()[-1]
    return row


def search_many(folder: Path, few: Cost) -> None:
    """Ten times the vectors."""
    _write_vectors(folder, TIMES * PAPERS)
    cost = run(_search(folder, {"index": "flat"}))
    say(
        f"{TIMES * PAPERS:,} vectors: {cost.wall:.0f} s, peak memory {cost.peak_mb:.0f} MB, "
        f"{cost.peak_mb / few.peak_mb:.2f} × that of {PAPERS:,}."
    )


def _write_vectors(folder: Path, papers: int, gap: int = GAP) -> None:
    sizes = map(str, (papers, DIMENSION, QUERIES, gap))
    run([sys.executable, "-m", "tests.benchmarks.clustered_vectors", folder, *sizes])


def _search(folder: Path, chosen: dict[str, object], *more: str | Path) -> Command:
    return _neighbours(
        *(
            "search",
            folder,
            {"k": K, **chosen},
            "--queries",
            folder / "queries.parquet",
            "--shard",
            "0",
            "--shards",
            "1",
        ),
        *("--memory-mb", "1000", "--state", folder / "state"),
        *("--output", folder / "neighbours.parquet", "--omissions", folder / "omissions.parquet", *more),
    )


def _neighbours(command: str, folder: Path, chosen: dict[str, object], *more: str | Path) -> Command:
    return [
        *(COCITE, "neighbours", command, "--vectors", folder / "graph_embeddings.parquet"),
        *("--settings", json.dumps({"metric": "l2", **chosen}), "--threads", str(THREADS), *more),
    ]


def _rival(folder: Path, module: str = "faiss_flat") -> Command:
    return [sys.executable, "-m", f"tests.benchmarks.{module}", folder, str(K), str(THREADS)]


def _rival_search(folder: Path) -> float:
    told = subprocess.run([str(part) for part in _rival(folder)], capture_output=True, check=True, text=True)
    return float(told.stdout.split()[-1])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
