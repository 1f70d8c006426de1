"""A graph as large as SciNCL's on one GPU: edges a second, and what part of the device they use.

50 million papers and 450 million random edges, which are harder than real ones: hardly a paper comes twice in a batch.
The training is stopped once its first epoch is reported, since 50 million vectors of 768 dimensions are a table of
154 GB, and no checkpoint is asked for within it. `make bench` leaves it out: it needs 20 GB of disk and 10 minutes.

    python -m tests.benchmarks large_graph .bench --cpu --papers 20000 --edges 100000   # to try it
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import torch
from tests.benchmarks.engines import CORES, RATE, SHARED, operations, settings_of, training_command
from tests.benchmarks.made_graphs import write_imported
from tests.benchmarks.matrix_peak import copy_peak, product_peak
from tests.benchmarks.measuring import python, run, say

EPOCHS = 20
NO_CHECKPOINT_MINUTES = 100_000
ROW_MOVES = 3 * (2 + 2 * SHARED["uniform_negatives"] / SHARED["batch_negatives"])
"""Rows that an edge moves at least: its two ends and its share of the uniform negatives are read for the scores, and
read and written for the update."""


def main(
    folder: Path,
    papers: int = 50_000_000,
    edges: int = 450_000_000,
    dimensions: tuple[int, ...] = (128, 768),
    cpu: bool = False,
) -> None:
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
    say("\n| dimension | edges/s | of the copy | of the product | memory | epoch with start | 20 epochs |")
    say("|---|---|---|---|---|---|---|")
    for dimension in dimensions:
        rate, seconds, memory = first_epoch(folder, dimension)
        moved, computed = 2 * dimension * ROW_MOVES * rate / copied, operations(dimension) * rate / product
        say(
            f"| {dimension} | {rate:,.0f} | {moved:.0%} | {computed:.0%} | {memory:,.0f} MB | {seconds:.0f} s | "
            f"{EPOCHS * edges / rate / 60:.1f} min |"
        )


def first_epoch(folder: Path, dimension: int) -> tuple[float, float, float]:
    """Edges a second, seconds from the start of the command and memory of the device in use, MB, after an epoch."""
    asked = {"dimension": dimension, "epochs": 1, "storage": "bfloat16", "checkpoint_minutes": NO_CHECKPOINT_MINUTES}
    settings = settings_of("torch", cores=CORES, **asked)
    command = training_command(folder / "imported", settings, seed=1, output=folder / "trained")
    start, told = time.perf_counter(), []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as training:
        for line in training.stderr or ():
            told.append(line)
            if found := RATE.search(line):
                memory, seconds = device_memory(), time.perf_counter() - start
                training.kill()
                shutil.rmtree(folder / "trained", ignore_errors=True)
                return float(found[1].replace(",", "")), seconds, memory
    sys.exit(f"The training ended with {training.returncode}: {''.join(told)[-2000:]}")


def device_memory() -> float:
    """Memory of the GPU that is in use, by whatever process, MB; 0 without a GPU."""
    if not torch.cuda.is_available():
        return 0.0
    free, total = torch.cuda.mem_get_info()
    return (total - free) / 1e6
