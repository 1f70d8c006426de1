"""Mining hard negatives: ours against sentence-transformers' `mine_hard_negatives`, with vectors that are ready.

Like for like are whole commands from the same tables of vectors. Ours searches, compares what it finds with the
positives, and writes the candidates and the set with its mined negatives; the rival searches with the options that
mean the same, by products and `torch.topk` or by FAISS. The seconds of its function alone, and of our ranking, with all
vectors in memory and without imports, are reported as well. Both are compared with a brute force in float64: the share
of its negatives that they found.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

import numpy as np
from tests.benchmarks.measuring import Command, Cost, compare, run, say
from tests.benchmarks.mining_tables import NEGATIVES, RELATIVE_MARGIN

from cocite.core.tables.files import read_table

PAPERS, DIMENSION, QUERIES, THREADS = 500_000, 384, 1000, 2
LAST_RANK = 100
MEMORY_MB = 4000
"""As the workflow gives a job with so many vectors."""
ROUNDS = 3
COCITE = Path(sys.executable).with_name("cocite")


def main(folder: Path) -> None:
    """Print the ratios, and the recall and memory of both."""
    folder = folder / "mining"
    shutil.rmtree(folder, ignore_errors=True)
    run([sys.executable, "-m", "tests.benchmarks.mining_tables", folder, *map(str, (PAPERS, DIMENSION, QUERIES))])
    for by in ("topk", "faiss"):
        rival = _rival(folder, by)
        cost, _ = compare(
            f"Mining for {QUERIES:,} queries in {PAPERS:,} vectors, to mine_hard_negatives by {by}",
            lambda: _ours(folder),
            lambda rival=rival: run(rival),  # type: ignore[misc]
            "wall",
            rounds=ROUNDS,
        )
        alone = [(_seconds(_alone(folder)), _seconds(rival)) for _ in range(ROUNDS)]
        ours, theirs = (median(pair[side] for pair in alone) for side in (0, 1))
        ratios = sorted(pair[0] / pair[1] for pair in alone)
        say(
            f"With vectors in memory, our ranking to its function: {ours / theirs:.2f} × ({ours:.2f} s to "
            f"{theirs:.2f} s; round by round {ratios[0]:.2f} to {ratios[-1]:.2f})."
        )
        say(f"Peak memory {cost.peak_mb:.0f} MB to {run(rival).peak_mb:.0f} MB.")
        say(f"Recall of its negatives: {_recall(folder, np.load(folder / f'{by}.npy')):.4f}.")
    mined = read_table(folder / "mined.parquet", "sampled_examples").to_pylist()
    pairs = np.array([(row["query"], paper) for row in mined for paper in row["negatives"]])
    say(f"Recall of ours: {_recall(folder, pairs):.4f}.")
    shutil.rmtree(folder)


def _ours(folder: Path) -> Cost:
    """Both commands, one after the other."""
    settings = {"by": {"kind": "encoder", "name": "ready"}, "ranks": [1, LAST_RANK]}
    same = ["--papers", folder / "papers", "--queries", folder / "queries.parquet", "--threads", str(THREADS)]
    candidates, positives = folder / "candidates.parquet", folder / "positives.parquet"
    search: Command = [
        *(COCITE, "neighbours", "mine", folder / "triplets.parquet", folder / "paper_embeddings.parquet", *same),
        *("--settings", json.dumps(settings), "--memory-mb", str(MEMORY_MB), "--state", folder / "state"),
        *("--candidates", candidates, "--positives", positives, "--omissions", folder / "missing.parquet"),
    ]
    picked = {"sampler": "mined", "of": "set", "negatives": NEGATIVES, "relative_margin": RELATIVE_MARGIN}
    sample: Command = [
        *(COCITE, "triplets", "sample", folder / "triplets.parquet", candidates, positives, *same, "--seed", "1"),
        *("--settings", json.dumps({**settings, **picked, "duplicates": None})),
        *("--output", folder / "mined.parquet", "--omissions", folder / "left-out.parquet"),
        *("--written-settings", folder / "settings.json"),
    ]
    costs = [run(search), run(sample)]
    return Cost(
        wall=sum(cost.wall for cost in costs),
        cpu=sum(cost.cpu for cost in costs),
        peak_mb=max(cost.peak_mb for cost in costs),
    )


def _alone(folder: Path) -> Command:
    return [sys.executable, "-m", "tests.benchmarks.mining_alone", folder, *map(str, (THREADS, LAST_RANK))]


def _rival(folder: Path, by: str) -> Command:
    numbers = map(str, (THREADS, NEGATIVES, LAST_RANK, RELATIVE_MARGIN))
    return [sys.executable, "-m", "tests.benchmarks.mining_rival", folder, by, *numbers]


def _seconds(rival: Command) -> float:
    told = subprocess.run(list(map(str, rival)), capture_output=True, check=True, text=True)
    return float(told.stdout.split()[-1])


def _recall(folder: Path, pairs: np.ndarray) -> float:
    """The share of the right negatives that are among pairs of a query and a negative."""
    queries = read_table(folder / "queries.parquet", "queries")["corpusid"].to_numpy()
    right = {
        (query, paper) for query, papers in zip(queries, np.load(folder / "true.npy"), strict=True) for paper in papers
    }
    return len(right & set(map(tuple, pairs.tolist()))) / len(right)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
