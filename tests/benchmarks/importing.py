"""The two ways into PyTorch-BigGraph: their speed, the memory of ours, and what is learned after either.

Like for like are whole commands: ours from the table `edges` to PyTorch-BigGraph's files, against its own importer,
`torchbiggraph_import_from_tsv`, from files of lines that are there already to the same files.
"""

import shutil
import statistics
import sys
from pathlib import Path

from tests.benchmarks.made_graphs import write_random
from tests.benchmarks.measuring import Command, Cost, cocite, python, run, say

from cocite.config.engine import EdgeSettings
from cocite.embeddings.imported import split_edges

EDGES, RIVAL_ROUNDS, ROUNDS = 2_000_000, 1, 5
MANY_EDGES = 100_000_000
SETTINGS = {"holdout": 0.05, "holdout_of": "pairs", "weights": False, "max_repetitions": 1, "partitions": 1}
RIVAL = Path(sys.executable).with_name("torchbiggraph_import_from_tsv")

RIVAL_CONFIGURATION = """
def get_torchbiggraph_config():
    return dict(
        entity_path={entities!r}, edge_paths=[{training!r}, {holdout!r}], checkpoint_path={entities!r}, dimension=2,
        entities=dict(paper=dict(num_partitions=1)),
        relations=[dict(name="edge", lhs="paper", rhs="paper", operator="none")],
    )
"""


def main(folder: Path) -> None:
    compare_ways(folder / "few")
    import_many(folder / "many")


def compare_ways(folder: Path) -> None:
    edges = _write_graph(folder, EDGES)
    lines = {"training": folder / "training.tsv", "holdout": folder / "holdout.tsv"}
    split_edges([edges], EdgeSettings(**SETTINGS), directed=True, seed=1, memory_mb=2000, threads=1, **lines)
    ours = [run(_our_command(edges, folder / "ours", partitions=1)) for _ in range(1 + ROUNDS)][1:]
    rival = [_run_rival(folder, lines) for _ in range(RIVAL_ROUNDS)]
    seconds, rivals = (statistics.median(cost.wall for cost in costs) for costs in (ours, rival))
    peaks = " to ".join(f"{costs[-1].peak_mb:.0f} MB" for costs in (ours, rival))
    say(
        f"Importing {EDGES:,} edges: {rivals / seconds:.0f} × faster than torchbiggraph_import_from_tsv "
        f"({seconds:.2f} s, median of {ROUNDS}, to {rivals:.1f} s; peak memory {peaks})."
    )
    shutil.rmtree(folder)


def import_many(folder: Path) -> None:
    edges = _write_graph(folder, MANY_EDGES)
    for partitions in (1, 4):
        cost = run(_our_command(edges, folder / "imported", partitions))
        size = sum(path.stat().st_size for path in (folder / "imported").rglob("*.h5")) / 1e9
        say(f"Importing {MANY_EDGES:,} edges, partitions: {partitions}: {cost}, {size:.1f} GB written.")


def _write_graph(folder: Path, edges: int) -> Path:
    path = folder / "edges.parquet"
    run(python(write_random, path, edges))
    return path


def _our_command(edges: Path, output: Path, partitions: int) -> Command:
    options = {"settings": {**SETTINGS, "partitions": partitions}, "seed": 1, "memory_mb": 2000, "threads": 1}
    return cocite("embeddings", "import", edges, directed=True, **options, output=output)


def _run_rival(folder: Path, lines: dict[str, Path]) -> Cost:
    made = folder / "rival"
    shutil.rmtree(made, ignore_errors=True)
    configuration = folder / "configuration.py"
    paths = {name: str(made / name) for name in ("entities", *lines)}
    configuration.write_text(RIVAL_CONFIGURATION.format(**paths))
    return run([RIVAL, "--lhs-col", "0", "--rhs-col", "1", configuration, *lines.values()])
