"""The engines torch and biggraph in turn, on a graph with structure: edges a second, link prediction and memory.

Both train on the same edges with the same batches, negatives and epochs, each training in a process of its own and on
as many cores. Edges a second come from the lines that each engine reports an epoch, which count the time of training
alone: neither import and start nor the measurement of link prediction. The machine's matrix product is measured in the
same run; the share of it counts the products alone.

    python -m tests.benchmarks engines .bench --papers 5000 --edges 40000 --seeds 1 --dimensions 32   # to try it
"""

import os
import re
import shutil
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.made_graphs import write_communities
from tests.benchmarks.measuring import Command, Cost, answer, cocite, python, run, run_and_read, say, spread_of

from cocite.core.tables.files import read_table

PRODUCTS = 2 * 3 * 2
"""Operations for each edge, negative and dimension: two sides of an edge; the product of scores and, backwards, the
two of its factors; a multiplication and an addition. With 100 negatives, 1,200 operations an edge and dimension: three
products of (50 + 50)² × dimension for each 50 edges."""
PRECISIONS = ("float32", "bfloat16")
CORES = os.cpu_count() or 1
RATE = re.compile(r"training loss \S+, ([\d,]+) edges/s")
SHARED = {
    **{"comparator": "dot", "lr": 0.1, "loss": {"kind": "ranking", "margin": 0.15}, "max_norm": 1.0},
    **{"batch_size": 1000, "batch_negatives": 50, "uniform_negatives": 50},
}
"""Settings of every training that is compared."""
CORES_SETTING = {"biggraph": "workers", "torch": "threads"}
"""The setting of each engine that says how many cores it uses."""


@dataclass(frozen=True, kw_only=True)
class Training:
    rates: list[float]
    """Edges a second of each epoch."""
    mrr: list[float]
    """Filtered MRR after each epoch."""
    cost: Cost
    """Cost of the whole command; its memory is that of the largest process, with what it shares with others."""
    log: str
    """What it reported."""

    @property
    def speed(self) -> float:
        """Edges a second of all its epochs together, which have as many edges each."""
        return statistics.harmonic_mean(self.rates)


def main(
    folder: Path,
    engines: tuple[str, ...] = ("biggraph", "torch"),
    papers: int = 200_000,
    edges: int = 1_950_000,
    dimensions: tuple[int, ...] = (128, 768),
    seeds: tuple[int, ...] = (1, 2, 3),
    epochs: int = 2,
    cores: int = CORES,
) -> None:
    table = folder / "edges.parquet"
    run(python(write_communities, table, papers, edges))
    imported = import_graph(table, folder / "imported")
    peaks = {precision: answer("matrix_peak:product_peak", precision)[1] for precision in PRECISIONS}
    told = ", ".join(f"{peak / 1e9:,.0f} GFLOP/s in {precision}" for precision, peak in peaks.items())
    say(f"{cores} cores; a product of large matrices makes {told}")
    for dimension in dimensions:
        trained: dict[str, list[Training]] = {engine: [] for engine in engines}
        for seed in seeds:
            for engine in engines:
                settings = settings_of(engine, cores=cores, dimension=dimension, epochs=epochs)
                trained[engine].append(train(imported, settings, seed=seed, output=folder / "trained"))
        tell(dimension, trained, peaks)


def tell(dimension: int, trained: dict[str, list[Training]], peaks: dict[str, float]) -> None:
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
        say(f"\n{last} to {first}: {statistics.median(rounds):.2f} × ({spread_of(rounds)})")


def operations(dimension: int) -> int:
    return PRODUCTS * (SHARED["batch_negatives"] + SHARED["uniform_negatives"]) * dimension


def mean_and_deviation(values: list[float]) -> str:
    """Mean ± standard deviation, or the one value there is."""
    deviation = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.4f}{deviation}"


def import_graph(edges: Path, output: Path, *, partitions: int = 1, holdout: float = 0.05) -> Path:
    """Import a directed graph; `partitions` are those of biggraph, torch chooses its own."""
    asked = {"settings": {"holdout": holdout, "partitions": partitions}, "seed": 1, "memory_mb": 2000, "threads": 1}
    run(cocite("embeddings", "import", edges, directed=True, **asked, output=output))
    return output


def settings_of(engine: str, *, cores: int = 2, **changed: Any) -> dict[str, Any]:
    """The settings of a training that uses so many cores, with some changed."""
    return {"engine": engine, **SHARED, CORES_SETTING[engine]: cores, **changed}


def train(imported: Path, settings: Mapping[str, Any], *, seed: int, output: Path) -> Training:
    """Train in a process of its own. The vectors are left in `output`/vectors."""
    shutil.rmtree(output, ignore_errors=True)
    cost, log = run_and_read(training_command(imported, settings, seed=seed, output=output))
    rates = [float(rate.replace(",", "")) for rate in RATE.findall(log)]
    rows = read_table(output / "scores", "graph_scores").to_pylist()
    mrr = {row["epoch"]: row["value"] for row in rows if row["metric"] == "mrr" and row["filtered"]}
    return Training(rates=rates, mrr=[mrr[epoch] for epoch in sorted(mrr)], cost=cost, log=log)


def training_command(imported: Path, settings: Mapping[str, Any], *, seed: int, output: Path) -> Command:
    """The command of a training whose results lie in the folder `output`."""
    files = {name: output / name for name in ("state", "vectors", "scores", "written_settings", "omissions")}
    return cocite("embeddings", "train", imported, settings=dict(settings), seed=seed, **files)
