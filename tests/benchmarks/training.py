"""Training beside sentence-transformers' own trainer: MiniLM's size, five triplets a query, two threads."""

import json
import shutil
import statistics
import sys
from pathlib import Path

from tests.benchmarks.made_triplets import PER_QUERY, write_encoder, write_triplets
from tests.benchmarks.measuring import Cost, run, say

QUERIES = {"training": 24, "validation": 8}
ROUNDS = 3


def main(folder: Path) -> None:
    """Print the triplets a second of both, their ratio, and the peak memory."""
    folder = folder / "training"
    shutil.rmtree(folder, ignore_errors=True)
    write_encoder(folder / "encoder")
    for seed, (name, queries) in enumerate(QUERIES.items()):
        write_triplets(folder / name, queries, seed, folder / "encoder")
    measured = {way: [] for way in ("ours", "rival")}
    for _ in range(ROUNDS):
        for way, rounds in measured.items():
            rounds.append(train(folder, way))
    triplets = QUERIES["training"] * PER_QUERY
    for way, rounds in measured.items():
        seconds = statistics.median(taken for taken, _ in rounds)
        say(
            f"{way}: {triplets / seconds:.2f} triplets a second ({seconds:.1f} s for {triplets}, validation included), "
            f"{statistics.median(cost.cpu for _, cost in rounds):.0f} s of the processors, "
            f"peak {max(cost.peak_mb for _, cost in rounds):.0f} MB"
        )
    ratios = sorted(rival / ours for (ours, _), (rival, _) in zip(measured["ours"], measured["rival"], strict=True))
    say(f"training: {statistics.median(ratios):.2f} × the triplets a second ({ratios[0]:.2f} to {ratios[-1]:.2f})")
    shutil.rmtree(folder)


def train(folder: Path, way: str) -> tuple[float, Cost]:
    """The seconds of a training, and what its process took."""
    shutil.rmtree(folder / "work", ignore_errors=True)
    (folder / "work").mkdir()
    cost = run([sys.executable, "-m", "tests.benchmarks.one_training", way, folder, folder / "work" / "seconds.json"])
    return json.loads((folder / "work" / "seconds.json").read_text()), cost


if __name__ == "__main__":
    main(Path(sys.argv[1]))
