"""Sampling triplets and materialising them beside a loop over dictionaries, and with large ids."""

import json
import statistics
import sys
from functools import partial
from pathlib import Path

from tests.benchmarks.measuring import Command, Cost, compare, run, say
from tests.benchmarks.triplet_corpus import FAR_APART

PAPERS, QUERIES, K = 5_000_000, 143_000, 5_000
SETTINGS = {"sampler": "neighbours", "embedding": "e", "k_positive": 25, "k_negative": 5000, "per_query": 7, "easy": 0}
PART = 5
"""The loop is measured on a part of the papers and queries, since the whole would not fit into memory. Its time grows
faster than the part, so that the ratio for the whole is rather underrated."""
THREADS = 2
ROUNDS = 3
STEPS = SAMPLING, MATERIALISING = "Sampling", "Materialising"
LOOP = f"A loop over Python dictionaries, one part of {PART}"


def main(folder: Path) -> None:
    """Print what the steps take, and the ratio to the loop."""
    whole, part = folder / "triplets" / "whole", folder / "triplets" / "part"
    for corpus, papers, queries in ((whole, PAPERS, QUERIES), (part, PAPERS // PART, QUERIES // PART)):
        _write_corpus(corpus, papers, queries)
    _round(whole, part)  # all start with warm caches
    rounds = [_round(whole, part) for _ in range(ROUNDS)]
    for name in rounds[0]:
        costs = [each[name] for each in rounds]
        wall = statistics.median(cost.wall for cost in costs)
        say(f"{name}: {wall:.1f} s, peak memory {max(cost.peak_mb for cost in costs):.0f} MB.")
    ratios = sorted(PART * each[LOOP].wall / sum(each[step].wall for step in STEPS) for each in rounds)
    say(
        f"{QUERIES * SETTINGS['per_query']:,} triplets from {PAPERS:,} papers and {QUERIES * K:,} neighbours, steps "
        f"against {PART} times the loop: {statistics.median(ratios):.1f} × as fast, median of {ROUNDS}; "
        f"round by round {ratios[0]:.1f} to {ratios[-1]:.1f}"
    )
    _compare_ids(folder / "triplets" / "spread", whole)


def _write_corpus(corpus: Path, papers: int, queries: int, factor: int = 1) -> None:
    """Write the tables of a corpus where they are not there yet."""
    if not (corpus / "neighbours/0.parquet").exists():
        sizes = map(str, (papers, queries, K, factor))
        run([sys.executable, "-m", "tests.benchmarks.triplet_corpus", corpus, *sizes])


def _compare_ids(spread: Path, whole: Path) -> None:
    """The same papers with ids all over 63 bits, beside those with ids as dense as Semantic Scholar's."""
    _write_corpus(spread, PAPERS, QUERIES, FAR_APART)
    for step in STEPS:
        large, small = (_steps(corpus)[step] for corpus in (spread, whole))
        title = f"{step} with ids all over 63 bits to that with small ones"
        cost, _ = compare(title, partial(run, large), partial(run, small), "wall", rounds=ROUNDS)
        say(f"With ids all over 63 bits it takes {cost.peak_mb:.0f} MB.")


def _round(whole: Path, part: Path) -> dict[str, Cost]:
    """What each step takes on the whole, and the loop on a part."""
    loop: Command = [sys.executable, "-m", "tests.benchmarks.triplet_loop", part, part / "loop.parquet"]
    return {name: run(command) for name, command in {**_steps(whole), LOOP: loop}.items()}


def _steps(corpus: Path) -> dict[str, Command]:
    """The commands from the tables of a corpus to examples and their documents, one after the other."""
    program = [Path(sys.executable).with_name("cocite"), "triplets"]
    triplets = corpus / "triplets.parquet"
    common = ["--papers", corpus / "papers", "--seed", "1", "--threads", str(THREADS)]
    sampling = ["--settings", json.dumps(SETTINGS), "--queries", corpus / "queries.parquet"]
    written = ["--omissions", corpus / "omissions.parquet", "--written-settings", corpus / "settings.json"]
    return {
        SAMPLING: [
            *[*program, "sample", corpus / "neighbours/0.parquet", *sampling, *common],
            *["--output", triplets, *written],
        ],
        MATERIALISING: [
            *[*program, "materialise", triplets, "--triplets", triplets, *common],
            *["--output", corpus / "examples.parquet", "--documents", corpus / "documents"],
        ],
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
