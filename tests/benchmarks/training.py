"""Training beside sentence-transformers' own trainer: MiniLM's size, five triplets a query, two threads."""

import json
import shutil
import statistics
import sys
from itertools import product
from pathlib import Path

import torch
from tests.benchmarks.made_triplets import PER_QUERY, write_encoder, write_triplets
from tests.benchmarks.measuring import Cost, run, say

from cocite.core.precision import computes_in

QUERIES = {"training": 24, "validation": 8}
ROUNDS = 3
PRECISIONS = ("float32", "bfloat16") if computes_in("auto", torch.device("cpu")) == torch.bfloat16 else ("float32",)
WAYS = list(product(("ours", "rival"), PRECISIONS))
"""Who trains, and what in: in bfloat16 as well where the CPU has instructions for it."""


def main(folder: Path) -> None:
    """Print the triplets a second and the peak memory of each way, and how much faster ours are than the rival's."""
    folder = folder / "training"
    shutil.rmtree(folder, ignore_errors=True)
    write_encoder(folder / "encoder")
    for seed, (name, queries) in enumerate(QUERIES.items()):
        write_triplets(folder / name, queries, seed, folder / "encoder")
    measured = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way, rounds in measured.items():
            rounds.append(train(folder, *way))
    triplets = QUERIES["training"] * PER_QUERY
    for (who, precision), rounds in measured.items():
        seconds = statistics.median(taken for taken, _ in rounds)
        say(
            f"{who} in {precision}: {triplets / seconds:.2f} triplets a second ({seconds:.1f} s for {triplets}, "
            f"validation included), {statistics.median(cost.cpu for _, cost in rounds):.0f} s of the processors, "
            f"peak {max(cost.peak_mb for _, cost in rounds):.0f} MB"
        )
    for ours, rival in product(*([way for way in WAYS if way[0] == who] for who in ("ours", "rival"))):
        ratios = sorted(theirs / mine for (mine, _), (theirs, _) in zip(measured[ours], measured[rival], strict=True))
        spread = f"{statistics.median(ratios):.2f} × the triplets a second ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        say(f"ours in {ours[1]} to the rival in {rival[1]}: {spread}")
    shutil.rmtree(folder)


def train(folder: Path, way: str, precision: str) -> tuple[float, Cost]:
    """The seconds of a training, and what its process took."""
    shutil.rmtree(folder / "work", ignore_errors=True)
    (folder / "work").mkdir()
    seconds = folder / "work" / "seconds.json"
    cost = run([sys.executable, "-m", "tests.benchmarks.one_training", way, precision, folder, seconds])
    return json.loads(seconds.read_text()), cost


if __name__ == "__main__":
    main(Path(sys.argv[1]))
