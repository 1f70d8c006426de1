"""Memory and time of an edge where the papers are cut into partitions: the engine torch, and biggraph beside it.

10 million papers × 128 dimensions with 10 million random edges, one epoch. The memory is that of the largest process of
the whole command, files that it maps included. torch is given the least `memory_mb` that allows as many partitions, and
no bound for one; it never takes two. It needs some 20 GB of disk and of memory, so `make bench` leaves it out.

    python -m tests.benchmarks.engine_memory .bench --papers 20000 --edges 40000 --partitions 1   # to try it
"""

import argparse
import os
import re
import shutil
import sys
from math import ceil
from pathlib import Path
from typing import Any

from tests.benchmarks.engine_training import Training, settings_of, train
from tests.benchmarks.measuring import run, say

from cocite.embeddings.engines.torch import Torch
from cocite.embeddings.engines.torch.planning import overhead_mb, vectors_mb

PARTITIONS = re.compile(r"papers in (\d+) partition")


def main(chosen: argparse.Namespace) -> None:
    """Print a row for each training."""
    folder = chosen.folder / "engine_memory"
    shutil.rmtree(folder, ignore_errors=True)
    of_vectors = chosen.papers * chosen.dimension * 4 / 1e6
    say(f"{chosen.papers:,} papers × {chosen.dimension}: {of_vectors:,.0f} MB of vectors; {chosen.edges:,} edges")
    say("| engine | partitions | memory_mb | peak memory | µs an edge | whole command |\n|---|---|---|---|---|---|")
    changed: dict[str, Any] = {"dimension": chosen.dimension, "epochs": 1, "cores": chosen.cores}
    if "torch" in chosen.engines:
        write(folder, chosen, partitions=1)
        for partitions in chosen.partitions:
            settings = settings_of("torch", **changed)
            memory_mb = bound_for(partitions, chosen.papers, Torch(**settings))
            settings["memory_mb"] = memory_mb
            training = train(folder / "imported", settings, seed=1, output=folder / "trained")
            found = PARTITIONS.search(training.log)
            tell("torch", int(found[1]) if found else partitions, str(memory_mb or "no bound"), training)
    if "biggraph" in chosen.engines:
        for partitions in chosen.partitions:
            write(folder, chosen, partitions=partitions)
            training = train(folder / "imported", settings_of("biggraph", **changed), seed=1, output=folder / "trained")
            tell("biggraph", partitions, "", training)
    shutil.rmtree(folder)


def bound_for(partitions: int, papers: int, settings: Torch) -> int | None:
    """The least `memory_mb` of so many partitions, two of which are held at a time; no bound for one."""
    if partitions == 1:
        return None
    held = 2 * vectors_mb(papers, settings.dimension, settings.bytes_of_number) / partitions
    return ceil(overhead_mb(papers, settings.values_of_batch) + held)


def write(folder: Path, chosen: argparse.Namespace, *, partitions: int) -> None:
    """Make the imported graph in place of the one before."""
    shutil.rmtree(folder, ignore_errors=True)
    sizes = map(str, (chosen.papers, chosen.edges, partitions))
    run([sys.executable, "-m", "tests.benchmarks.made_imported", folder / "imported", *sizes])


def tell(engine: str, partitions: int, bound: str, training: Training) -> None:
    """Print what a training took."""
    micros = 1e6 / training.rates[-1]
    say(
        f"| {engine} | {partitions} | {bound} | {training.cost.peak_mb:,.0f} MB | {micros:.2f} | "
        f"{training.cost.wall:.0f} s |"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engines", nargs="+", default=["torch", "biggraph"])
    parser.add_argument("--papers", type=int, default=10_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--dimension", type=int, default=128)
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    main(parser.parse_args())
