"""Train a graph embedding in processes that are killed at random moments, and resume it; called by test_torch_training.

    python killed_embedding.py IMPORTED FOLDER SETTINGS KILLS

One process imports the libraries and forks each training, so that kills fall into the training and not into its start.
FOLDER/whole/ holds what an undisturbed training left, FOLDER/killed-<n>/ what the n-th killed one left in the end. Each
is killed and resumed until it ends, and another begins until there were so many KILLS. FOLDER/told.json says how many
kills and trainings there were, and how many processes found a state to resume from.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from cocite.config.embeddings import AnyEngine
from cocite.config.settings import parse_settings
from cocite.embeddings import torch_training
from cocite.embeddings.trained import train

SEED = 1
SHORTEST = 0.05
"""Part of the time of a whole training that a process gets at least before it is killed."""


torch_training.STRETCH = 5000  # an epoch of a small graph has several, and so several places for a checkpoint


def fork(imported: Path, folder: Path, settings: str, seconds: float | None = None) -> int:
    """Train in a process of its own and kill it after so many seconds; return its status, or minus the signal."""
    child = os.fork()
    if child == 0:
        results = {name: folder / name for name in ("vectors", "scores", "written_settings", "omissions")}
        try:
            train(imported, parse_settings(AnyEngine, settings), seed=SEED, state=folder / "state", **results)
        except BaseException as failure:
            sys.stderr.write(f"{failure!r}\n")
            os._exit(1)
        os._exit(0)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_at_random(imported: Path, folder: Path, settings: str, whole: float, kills: int) -> dict[str, int]:
    """Kill and resume trainings until there were so many kills, and let the last one end."""
    drawn = random.Random(kills)
    told = {"kills": 0, "trainings": 1, "resumed": 0}
    while True:
        at = folder / f"killed-{told['trainings'] - 1}"
        told["resumed"] += (at / "state").exists()
        left = told["kills"] < kills
        ended = fork(imported, at, settings, whole * drawn.uniform(SHORTEST, 1) if left else None)
        if ended not in (0, -signal.SIGKILL):
            sys.exit(f"A training ended with {ended} after {told['kills']} kills.")
        told["kills"] += ended == -signal.SIGKILL
        if ended == 0 and not left:
            return told
        told["trainings"] += ended == 0


if __name__ == "__main__":
    imported, folder, settings = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    start = time.monotonic()
    if status := fork(imported, folder / "whole", settings):
        sys.exit(f"The undisturbed training ended with {status}.")
    told = kill_at_random(imported, folder, settings, time.monotonic() - start, int(sys.argv[4]))
    (folder / "told.json").write_text(json.dumps(told))
