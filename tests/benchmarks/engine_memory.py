"""Memory and time of an edge where the papers are cut into partitions: the engine torch, and biggraph beside it.

10 million papers × 128 dimensions with 10 million random edges, one epoch. The memory is that of the largest process of
the whole command, files that it maps included. torch is given the least `memory_mb` that allows as many partitions, and
no bound for one; it never takes two. It needs some 20 GB of disk and of memory, so `make bench` leaves it out.

    python -m tests.benchmarks engine_memory .bench --papers 20000 --edges 40000 --partitions 1   # to try it
"""

import re
import shutil
from math import ceil
from pathlib import Path
from typing import Any

from tests.benchmarks.engines import CORES, Training, settings_of, train
from tests.benchmarks.made_graphs import write_imported
from tests.benchmarks.measuring import python, run, say

from cocite.embeddings.engines import Torch

PARTITIONS = re.compile(r"papers in (\d+) partition")


def main(
    folder: Path,
    engines: tuple[str, ...] = ("torch", "biggraph"),
    papers: int = 10_000_000,
    edges: int = 10_000_000,
    dimension: int = 128,
    partitions: tuple[int, ...] = (1, 4, 16),
    cores: int = CORES,
) -> None:
    of_vectors = papers * dimension * 4 / 1e6
    say(f"{papers:,} papers × {dimension}: {of_vectors:,.0f} MB of vectors; {edges:,} edges")
    say("| engine | partitions | memory_mb | peak memory | µs an edge | whole command |\n|---|---|---|---|---|---|")
    changed: dict[str, Any] = {"dimension": dimension, "epochs": 1, "cores": cores}
    if "torch" in engines:
        write(folder, papers, edges, 1)
        for count in partitions:
            settings = settings_of("torch", **changed)
            memory_mb = bound_for(count, papers, Torch(**settings))
            settings["memory_mb"] = memory_mb
            training = train(folder / "imported", settings, seed=1, output=folder / "trained")
            found = PARTITIONS.search(training.log)
            tell("torch", int(found[1]) if found else count, str(memory_mb or "no bound"), training)
    if "biggraph" in engines:
        for count in partitions:
            write(folder, papers, edges, count)
            training = train(folder / "imported", settings_of("biggraph", **changed), seed=1, output=folder / "trained")
            tell("biggraph", count, "", training)


def bound_for(partitions: int, papers: int, settings: Torch) -> int | None:
    """The least `memory_mb` of so many partitions, two of which are held at a time; no bound for one."""
    if partitions == 1:
        return None
    held = 2 * settings.vectors_mb(papers) / partitions
    return ceil(settings.overhead_mb(papers) + held)


def write(folder: Path, papers: int, edges: int, partitions: int) -> None:
    """Make the imported graph in place of the one before."""
    shutil.rmtree(folder)
    run(python(write_imported, folder / "imported", papers, edges, partitions))


def tell(engine: str, partitions: int, bound: str, training: Training) -> None:
    micros = 1e6 / training.rates[-1]
    say(
        f"| {engine} | {partitions} | {bound} | {training.cost.peak_mb:,.0f} MB | {micros:.2f} | "
        f"{training.cost.wall:.0f} s |"
    )
