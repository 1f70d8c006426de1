"""Embedding documents beside sentence-transformers' own `encode`, both as whole processes on two threads.

Time is measured with an encoder of MiniLM's size. Memory is measured with a small one over more documents than a window
holds, and over four times as many.
"""

import shutil
import sys
from functools import partial
from pathlib import Path

from tests.benchmarks.measuring import Command, compare, run, say

DOCUMENTS, MANY = 1000, (20_000, 80_000)
ROUNDS = 3
THREADS = 2
COCITE = Path(sys.executable).with_name("cocite")


def main(folder: Path) -> None:
    """Print the ratio of the times, and the peaks of memory."""
    folder = folder / "embedding"
    shutil.rmtree(folder, ignore_errors=True)
    run([sys.executable, "-m", "tests.benchmarks.made_documents", folder, *map(str, (DOCUMENTS, *MANY))])
    for precision in ("float32", "auto"):
        cost, _ = compare(
            f"embedding {DOCUMENTS} documents in {precision}, beside sentence-transformers in float32",
            partial(run, ours(folder, "encoder", DOCUMENTS, precision)),
            partial(run, rival(folder, "encoder", DOCUMENTS)),
            "wall",
            rounds=ROUNDS,
        )
        say(f"{DOCUMENTS / cost.wall:.1f} documents a second, start included; peak {cost.peak_mb:.0f} MB")
    for documents in MANY:
        peaks = [
            run(command).peak_mb for command in (ours(folder, "small", documents), rival(folder, "small", documents))
        ]
        say(f"{documents} documents: peak {peaks[0]:.0f} MB, sentence-transformers {peaks[1]:.0f} MB")
    shutil.rmtree(folder)


def ours(folder: Path, encoder: str, documents: int, precision: str = "float32") -> Command:
    """The command that embeds a table with the stage encoder."""
    options = {"--model": folder / encoder, "--state": folder / "state", "--output": folder / "ours"}
    options |= {"--precision": precision}
    asked = (str(part) for option in options.items() for part in option)
    return [COCITE, "encoder", "embed", folder / f"{documents}.parquet", *asked, "--threads", str(THREADS)]


def rival(folder: Path, encoder: str, documents: int) -> Command:
    """The command that embeds it with sentence-transformers alone."""
    paths = (folder / encoder, folder / f"{documents}.parquet")
    return [sys.executable, "-m", "tests.benchmarks.encode_alone", *paths, str(THREADS), folder / "rival.parquet"]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
