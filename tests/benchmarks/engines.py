"""The engines torch and biggraph in turn, on a graph with structure: edges a second, link prediction and memory.

Both train on the same edges with the same batches, negatives and epochs, each training in a process of its own and on
as many cores. The machine's matrix product is measured in the same run; the share of it counts the products alone.

    python -m tests.benchmarks.engines .bench --papers 5000 --edges 40000 --seeds 1 --dimensions 32   # to try it
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.engine_training import SHARED, Training, import_graph, settings_of, train
from tests.benchmarks.measuring import run, say

PRODUCTS = 2 * 3 * 2
"""Operations for each edge, negative and dimension: two sides of an edge; the product of scores and, backwards, the
two of its factors; a multiplication and an addition. With 100 negatives, 1,200 operations an edge and dimension: three
products of (50 + 50)² × dimension for each 50 edges."""
PRECISIONS = ("float32", "bfloat16")


def main(chosen: argparse.Namespace) -> None:
    """Print a table for each number of dimensions."""
    folder = chosen.folder / "engines"
    shutil.rmtree(folder, ignore_errors=True)
    edges = folder / "edges.parquet"
    sizes = map(str, (chosen.papers, chosen.edges))
    run([sys.executable, "-m", "tests.benchmarks.made_communities", edges, *sizes])
    imported = import_graph(edges, folder / "imported")
    peaks = {precision: product_peak(precision) for precision in PRECISIONS}
    told = ", ".join(f"{peak / 1e9:,.0f} GFLOP/s in {precision}" for precision, peak in peaks.items())
    say(f"{chosen.cores} cores; a product of large matrices makes {told}")
    for dimension in chosen.dimensions:
        trained: dict[str, list[Training]] = {engine: [] for engine in chosen.engines}
        for seed in chosen.seeds:
            for engine in chosen.engines:
                settings = settings_of(engine, cores=chosen.cores, dimension=dimension, epochs=chosen.epochs)
                trained[engine].append(train(imported, settings, seed=seed, output=folder / "trained"))
        tell(dimension, trained, peaks)
    shutil.rmtree(folder)


def tell(dimension: int, trained: dict[str, list[Training]], peaks: dict[str, float]) -> None:
    """Print what each engine made of it, and the ratio of the last to the first."""
    names = " | ".join(f"of {precision}" for precision in PRECISIONS)
    say(f"\n| {dimension} dimensions | edges/s | {names} | MRR | peak memory | whole command |")
    say("|---|---|---|---|---|---|---|")
    for engine, runs in trained.items():
        speed = statistics.median(training.speed for training in runs)
        shares = " | ".join(f"{operations(dimension) * speed / peaks[name]:.0%}" for name in PRECISIONS)
        mrr = mean_and_deviation([training.mrr[-1] for training in runs])
        memory = max(training.cost.peak_mb for training in runs)
        wall = statistics.median(training.cost.wall for training in runs)
        say(f"| {engine} | {speed:,.0f} | {shares} | {mrr} | {memory:,.0f} MB | {wall:.0f} s |")
    if len(trained) > 1:
        first, *_, last = trained
        rounds = [new.speed / old.speed for old, new in zip(trained[first], trained[last], strict=True)]
        spread = f"{min(rounds):.2f} to {max(rounds):.2f}"
        say(f"\n{last} to {first}: {statistics.median(rounds):.2f} × (round by round {spread})")


def operations(dimension: int) -> int:
    """Operations of matrix products that an edge takes."""
    return PRODUCTS * (SHARED["batch_negatives"] + SHARED["uniform_negatives"]) * dimension


def mean_and_deviation(values: list[float]) -> str:
    """Mean ± standard deviation, or the one value there is."""
    deviation = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.4f}{deviation}"


def product_peak(precision: str) -> float:
    """Operations a second of a product of large matrices, measured by a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.matrix_peak", precision]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engines", nargs="+", default=["biggraph", "torch"])
    parser.add_argument("--papers", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=1_950_000)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[128, 768])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    main(parser.parse_args())
