"""The engines of graph embeddings, whole trainings of generated graphs, each in a process of its own.

Edges a second come from the lines that each engine reports an epoch, which count the time of training alone: neither
import and start nor the measurement of link prediction. To try them:

    python -m tests.benchmarks engines .bench --papers 5000 --edges 40000 --seeds 1 --dimensions 32
    python -m tests.benchmarks warm_start .bench --papers 5000 --edges 40000 --dimension 32 --epochs 3
    python -m tests.benchmarks engine_memory .bench --papers 20000 --edges 40000 --partitions 1
    python -m tests.benchmarks large_graph .bench --cpu --papers 20000 --edges 100000
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from tests.benchmarks.made_graphs import write_communities, write_imported
from tests.benchmarks.measuring import (
    Command,
    Cost,
    answer,
    cocite,
    mean_and_deviation,
    median_ratio,
    python,
    run,
    run_and_read,
    say,
    say_header,
    say_row,
)

from cocite.core.tables.files import read_table
from cocite.embeddings.engines import Torch

PRODUCTS = 2 * 3 * 2
"""Operations for each edge, negative and dimension: two sides of an edge; the product of scores and, backwards, the
two of its factors; a multiplication and an addition. With 100 negatives, 1,200 operations an edge and dimension: three
products of (50 + 50)² × dimension for each 50 edges."""
PRECISIONS = ("float32", "bfloat16")
CORES = os.cpu_count() or 1
RATE = re.compile(r"training loss \S+, ([\d,]+) edges/s")
CUT = re.compile(r"papers in (\d+) partition")
SHARED = {
    **{"comparator": "dot", "lr": 0.1, "loss": {"kind": "ranking", "margin": 0.15}, "max_norm": 1.0},
    **{"batch_size": 1000, "batch_negatives": 50, "uniform_negatives": 50},
}
"""Settings of every training that is compared."""
CORES_SETTING = {"biggraph": "workers", "torch": "threads"}
"""The setting of each engine that says how many cores it uses."""
WHOLE_EPOCHS, NO_CHECKPOINT_MINUTES = 20, 100_000
ROW_MOVES = 3 * (2 + 2 * SHARED["uniform_negatives"] / SHARED["batch_negatives"])
"""Rows that an edge moves at least: its two ends and its share of the uniform negatives are read for the scores, and
read and written for the update."""


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


def engines(
    folder: Path,
    engines: tuple[str, ...] = ("biggraph", "torch"),
    papers: int = 200_000,
    edges: int = 1_950_000,
    dimensions: tuple[int, ...] = (128, 768),
    seeds: tuple[int, ...] = (1, 2, 3),
    epochs: int = 2,
    cores: int = CORES,
) -> None:
    """The engines torch and biggraph in turn, on a graph with structure: edges a second, link prediction and memory.

    Both train on the same edges with the same batches, negatives and epochs, on as many cores. The machine's matrix
    product is measured in the same run; the share of it counts the products alone.
    """
    table = folder / "edges.parquet"
    run(python(write_communities, table, papers, edges))
    imported = import_graph(table, folder / "imported")
    peaks = {precision: answer("bert_base:product_peak", precision)[1] for precision in PRECISIONS}
    told = ", ".join(f"{peak / 1e9:,.0f} GFLOP/s in {precision}" for precision, peak in peaks.items())
    say(f"{cores} cores; a product of large matrices makes {told}")
    for dimension in dimensions:
        trained: dict[str, list[Training]] = {engine: [] for engine in engines}
        for seed in seeds:
            for engine in engines:
                settings = settings_of(engine, cores=cores, dimension=dimension, epochs=epochs)
                trained[engine].append(train(imported, settings, seed=seed, output=folder / "trained"))
        _tell(dimension, trained, peaks)


def _tell(dimension: int, trained: dict[str, list[Training]], peaks: dict[str, float]) -> None:
    shares = [f"of {precision}" for precision in PRECISIONS]
    say_header(f"{dimension} dimensions", "edges/s", *shares, "MRR", "peak memory", "whole command")
    for engine, runs in trained.items():
        speed = statistics.median(training.speed for training in runs)
        shares = [f"{operations(dimension) * speed / peaks[name]:.0%}" for name in PRECISIONS]
        mrr = mean_and_deviation([training.mrr[-1] for training in runs])
        memory = max(training.cost.peak_mb for training in runs)
        wall = statistics.median(training.cost.wall for training in runs)
        say_row(engine, f"{speed:,.0f}", *shares, mrr, f"{memory:,.0f} MB", f"{wall:.0f} s")
    if len(trained) > 1:
        first, *_, last = trained
        new, old = ((training.speed for training in trained[engine]) for engine in (last, first))
        say(f"\n{last} to {first}: {median_ratio(new, old)}")


def warm_start(
    folder: Path,
    papers: int = 200_000,
    edges: int = 1_950_000,
    dimension: int = 128,
    epochs: int = 10,
    cores: int = CORES,
) -> None:
    """A graph embedding that starts from the vectors of the release before, beside one that starts from drawn vectors.

    The newer release has a tenth more papers, with all their edges. Which edges are held out depends on the seed and
    their papers alone, so the older training has seen none of those that both trainings of the newer release are
    measured on.
    """
    for release, more in {"older": {"older": True}, "newer": {}}.items():
        table = folder / f"{release}.parquet"
        run(python(write_communities, table, papers, edges, **more))
        import_graph(table, folder / release)
    settings: dict[str, Any] = settings_of("torch", cores=cores, dimension=dimension, epochs=epochs)
    train(folder / "older", settings, seed=1, output=folder / "before")
    warm_settings = {**settings, "start": str(folder / "before" / "vectors")}
    cold, warm = (
        train(folder / "newer", either, seed=1, output=folder / "trained").mrr for either in (settings, warm_settings)
    )
    say_header("epoch", "MRR from drawn vectors", "MRR from the older release's")
    for epoch, (drawn, older) in enumerate(zip(cold, warm, strict=True), start=1):
        say_row(epoch, f"{drawn:.4f}", f"{older:.4f}")
    best = max(cold)
    reached = next((epoch for epoch, mrr in enumerate(warm, start=1) if mrr >= best), None)
    told = f"after epoch {reached}" if reached else "not within as many epochs"
    say(f"\nThe best MRR from drawn vectors, {best:.4f}, comes after epoch {cold.index(best) + 1}; warm, {told}.")


def engine_memory(
    folder: Path,
    engines: tuple[str, ...] = ("torch", "biggraph"),
    papers: int = 10_000_000,
    edges: int = 10_000_000,
    dimension: int = 128,
    partitions: tuple[int, ...] = (1, 4, 16),
    cores: int = CORES,
) -> None:
    """Memory and time of an edge where the papers are cut into partitions: the engine torch, and biggraph beside it.

    Edges are random, and there is one epoch. The memory is that of the largest process of the whole command, files
    that it maps included. torch is given the least `memory_mb` that allows as many partitions, and no bound for one;
    it never takes two. It needs some 20 GB of disk and of memory, so `make bench` leaves it out.
    """
    of_vectors = papers * dimension * 4 / 1e6
    say(f"{papers:,} papers × {dimension}: {of_vectors:,.0f} MB of vectors; {edges:,} edges")
    say_header("engine", "partitions", "memory_mb", "peak memory", "µs an edge", "whole command")
    for engine in engines:
        for number, count in enumerate(partitions):
            settings, bound = settings_of(engine, cores=cores, dimension=dimension, epochs=1), ""
            if engine == "torch":
                settings["memory_mb"] = _bound_for(count, papers, Torch(**settings))
                bound = settings["memory_mb"] or "no bound"
            if number == 0 or engine == "biggraph":  # whose partitions are those of the import
                shutil.rmtree(folder)
                cut = count if engine == "biggraph" else 1
                run(python(write_imported, folder / "imported", papers, edges, cut))
            training = train(folder / "imported", settings, seed=1, output=folder / "trained")
            if found := CUT.search(training.log) if engine == "torch" else None:
                count = int(found[1])
            peak, micros = training.cost.peak_mb, 1e6 / training.rates[-1]
            say_row(engine, count, bound, f"{peak:,.0f} MB", f"{micros:.2f}", f"{training.cost.wall:.0f} s")


def _bound_for(partitions: int, papers: int, settings: Torch) -> int | None:
    """The least `memory_mb` of so many partitions, two of which are held at a time; no bound for one."""
    if partitions == 1:
        return None
    held = 2 * settings.vectors_mb(papers) / partitions
    return ceil(settings.overhead_mb(papers) + held)


def large_graph(
    folder: Path,
    papers: int = 50_000_000,
    edges: int = 450_000_000,
    dimensions: tuple[int, ...] = (128, 768),
    cpu: bool = False,
) -> None:
    """A graph as large as SciNCL's on one GPU: edges a second, and what part of the device they use.

    Edges are random, which is harder than real ones: hardly a paper comes twice in a batch. The training is stopped
    once its first epoch is reported, since 50 million vectors of 768 dimensions are a table of 154 GB, and no
    checkpoint is asked for within it. `make bench` leaves it out: it needs 20 GB of disk and 10 minutes.
    """
    import torch
    from tests.benchmarks.bert_base import copy_peak, product_peak

    if not (torch.cuda.is_available() or cpu):
        sys.exit("There is no GPU; --cpu tries it with small sizes.")
    made = run(python(write_imported, folder / "imported", papers, edges, 1))
    product, copied = product_peak("bfloat16"), copy_peak()
    torch.cuda.empty_cache()
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    say(
        f"{device}: a product of large matrices makes {product / 1e12:.1f} TFLOP/s in bfloat16, a copy moves "
        f"{copied / 1e9:,.0f} GB/s; {papers:,} papers, {edges:,} edges (made in {made.wall:.0f} s)"
    )
    shares = ("of the copy", "of the product")
    say_header("dimension", "edges/s", *shares, "memory", "epoch with start", f"{WHOLE_EPOCHS} epochs")
    for dimension in dimensions:
        rate, seconds, memory = _first_epoch(folder, dimension)
        moved, computed = 2 * dimension * ROW_MOVES * rate / copied, operations(dimension) * rate / product
        shares = (f"{moved:.0%}", f"{computed:.0%}")
        whole = f"{WHOLE_EPOCHS * edges / rate / 60:.1f} min"
        say_row(dimension, f"{rate:,.0f}", *shares, f"{memory:,.0f} MB", f"{seconds:.0f} s", whole)


def _first_epoch(folder: Path, dimension: int) -> tuple[float, float, float]:
    """Edges a second, seconds from the start of the command and memory of the device in use, MB, after an epoch."""
    import torch

    asked = {"dimension": dimension, "epochs": 1, "storage": "bfloat16", "checkpoint_minutes": NO_CHECKPOINT_MINUTES}
    settings = settings_of("torch", cores=CORES, **asked)
    command = training_command(folder / "imported", settings, seed=1, output=folder / "trained")
    start, told = time.perf_counter(), []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as training:
        for line in training.stderr or ():
            told.append(line)
            if found := RATE.search(line):
                free, total = torch.cuda.mem_get_info() if torch.cuda.is_available() else (0, 0)
                seconds = time.perf_counter() - start
                training.kill()
                shutil.rmtree(folder / "trained", ignore_errors=True)
                return float(found[1].replace(",", "")), seconds, (total - free) / 1e6
    sys.exit(f"The training ended with {training.returncode}: {''.join(told)[-2000:]}")


def operations(dimension: int) -> int:
    return PRODUCTS * (SHARED["batch_negatives"] + SHARED["uniform_negatives"]) * dimension


def import_graph(edges: Path, output: Path, **settings: Any) -> Path:
    """Import a directed graph."""
    run(import_command(edges, output, **settings))
    return output


def import_command(edges: Path, output: Path, *, memory_mb: int = 2000, seed: int = 1, **settings: Any) -> Command:
    """The command that imports a directed graph; `partitions` are those of biggraph, torch chooses its own."""
    limits = {"memory_mb": memory_mb, "threads": 1}
    return cocite("embeddings", "import", edges, directed=True, settings=settings, seed=seed, **limits, output=output)


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
