"""One training of a graph embedding by either engine, as a whole command: its speed, memory and link prediction.

Edges a second come from the lines that each engine reports an epoch, which count the time of training alone: neither
import and start nor the measurement of link prediction.
"""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import harmonic_mean
from typing import Any

from tests.benchmarks.measuring import Command, Cost, cocite, run, run_and_read

from cocite.core.tables.files import read_table

RATE = re.compile(r"training loss \S+, ([\d,]+) edges/s")
SHARED = {
    **{"comparator": "dot", "lr": 0.1, "loss": {"kind": "ranking", "margin": 0.15}, "max_norm": 1.0},
    **{"batch_size": 1000, "batch_negatives": 50, "uniform_negatives": 50},
}
"""Settings of every training that is compared."""
CORES = {"biggraph": "workers", "torch": "threads"}
"""The setting of each engine that says how many cores it uses."""


@dataclass(frozen=True, kw_only=True)
class Training:
    rates: list[float]
    """Edges a second of each epoch."""
    mrr: list[float]
    """Filtered MRR after each epoch."""
    cost: Cost
    """Cost of the whole command; its memory is that of the largest process, with what it shares with others."""
    log: str
    """What it reported."""

    @property
    def speed(self) -> float:
        """Edges a second of all its epochs together, which have as many edges each."""
        return harmonic_mean(self.rates)


def import_graph(edges: Path, output: Path, *, partitions: int = 1, holdout: float = 0.05) -> Path:
    """Import a directed graph; `partitions` are those of biggraph, torch chooses its own."""
    asked = {"settings": {"holdout": holdout, "partitions": partitions}, "seed": 1, "memory_mb": 2000, "threads": 1}
    run(cocite("embeddings", "import", edges, directed=True, **asked, output=output))
    return output


def settings_of(engine: str, *, cores: int = 2, **changed: Any) -> dict[str, Any]:
    """The settings of a training that uses so many cores, with some changed."""
    return {"engine": engine, **SHARED, CORES[engine]: cores, **changed}


def train(imported: Path, settings: Mapping[str, Any], *, seed: int, output: Path) -> Training:
    """Train in a process of its own. The vectors are left in `output`/vectors."""
    shutil.rmtree(output, ignore_errors=True)
    cost, log = run_and_read(training_command(imported, settings, seed=seed, output=output))
    rates = [float(rate.replace(",", "")) for rate in RATE.findall(log)]
    rows = read_table(output / "scores", "graph_scores").to_pylist()
    mrr = {row["epoch"]: row["value"] for row in rows if row["metric"] == "mrr" and row["filtered"]}
    return Training(rates=rates, mrr=[mrr[epoch] for epoch in sorted(mrr)], cost=cost, log=log)


def training_command(imported: Path, settings: Mapping[str, Any], *, seed: int, output: Path) -> Command:
    """The command of a training whose results lie in the folder `output`."""
    files = {name: output / name for name in ("state", "vectors", "scores", "written_settings", "omissions")}
    return cocite("embeddings", "train", imported, settings=dict(settings), seed=seed, **files)
