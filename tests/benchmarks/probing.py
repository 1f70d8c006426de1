"""A probe of a set beside one fine-tuning on it, and the memory of a probe as the papers become more.

The set has 15,000 triplets of 3,000 queries, and vectors of 384 dimensions. A probe trains six maps: two losses with
three seeds. The fine-tuning is that of an encoder of MiniLM's size on the texts of a part of such a set, by the triplet
loss; its time for all triplets is reckoned from it.
"""

import json
import shutil
import statistics
import sys
from pathlib import Path

from tests.benchmarks.made_probed import IN_TRIPLETS, QUERIES
from tests.benchmarks.made_triplets import PER_QUERY, write_encoder, write_triplets
from tests.benchmarks.measuring import run, say
from tests.benchmarks.training import train

PAPERS = (IN_TRIPLETS, 10 * IN_TRIPLETS, 30 * IN_TRIPLETS)
ROUNDS = 3
TUNED = {"training": 24, "validation": 4}
"""Queries of the fine-tuning."""
SETTINGS = {"losses": ["triplet", {"kind": "mnrl", "temperature": 10.0}], "seeds": [1, 2, 3]}


def main(folder: Path) -> None:
    """Print the time and memory of a probe, and the time of a fine-tuning."""
    folder = folder / "probing"
    shutil.rmtree(folder, ignore_errors=True)
    seconds = {}
    for papers in PAPERS:
        made = [sys.executable, "-m", "tests.benchmarks.made_probed", folder / str(papers), str(papers)]
        run(made)
        costs = [run(probe(folder / str(papers))) for _ in range(ROUNDS)]
        seconds[papers] = statistics.median(cost.wall for cost in costs)
        say(
            f"Six maps of {QUERIES * PER_QUERY:,} triplets among {papers:,} papers: {seconds[papers]:.1f} s, "
            f"{statistics.median(cost.cpu for cost in costs):.1f} s of the processors, peak "
            f"{max(cost.peak_mb for cost in costs):.0f} MB (medians of {ROUNDS}, start included)"
        )
    write_encoder(folder / "encoder")
    for seed, (name, queries) in enumerate(TUNED.items()):
        write_triplets(folder / name, queries, seed, folder / "encoder")
    taken, cost = train(folder, "ours", "float32")
    triplets = TUNED["training"] * PER_QUERY
    whole = taken / triplets * QUERIES * PER_QUERY
    say(
        f"One fine-tuning by the triplet loss: {taken:.0f} s for {triplets} triplets, peak {cost.peak_mb:.0f} MB; an "
        f"epoch of {QUERIES * PER_QUERY:,} would take {whole / 60:.0f} minutes, {whole / seconds[PAPERS[0]]:.0f} × the "
        "time of the six maps."
    )
    shutil.rmtree(folder)


def probe(folder: Path) -> list[str | Path]:
    """The command that trains the maps of the set in a folder."""
    return [
        *(Path(sys.executable).with_name("cocite"), "encoder", "probe", folder / "examples.parquet"),
        *("--vectors", folder / "papers", "--settings", json.dumps(SETTINGS), "--seed", "1", "--threads", "2"),
        *("--output", folder / "maps.safetensors"),
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
