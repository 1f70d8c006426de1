"""The two ways into PyTorch-BigGraph: their speed and memory, what is learned after either, and what measuring says."""

import shutil
import statistics
import sys
from pathlib import Path

import numpy as np
from tests.benchmarks.engines import import_command, settings_of, training_command
from tests.benchmarks.made_graphs import write_pairs, write_random
from tests.benchmarks.measuring import Cost, cocite, mean_and_deviation, python, run, say

from cocite.config.engine import EdgeSettings
from cocite.core.tables.files import read_table

EDGES, RIVAL_ROUNDS, ROUNDS = 2_000_000, 1, 5
MANY_EDGES = 100_000_000
RIVAL = Path(sys.executable).with_name("torchbiggraph_import_from_tsv")
RIVAL_CONFIGURATION = """
def get_torchbiggraph_config():
    return dict(
        entity_path={entities!r}, edge_paths=[{training!r}, {holdout!r}], checkpoint_path={entities!r}, dimension=2,
        entities=dict(paper=dict(num_partitions=1)),
        relations=[dict(name="edge", lhs="paper", rhs="paper", operator="none")],
    )
"""
SEEDS, CHUNKS, EPOCHS = (1, 2, 3, 4, 5), (1, 10), 15
PAPERS, COMMUNITIES, MEMBERS = 4000, 400, 25
METRICS = ("loss", "mean_rank", "mrr", "hits_at_10", "auc")
RANDOM_PAPERS, RANDOM_PAIRS = 10_000, 100_000


def importing(folder: Path) -> None:
    """Whole commands: ours from the table `edges` to PyTorch-BigGraph's files, against its own importer,
    `torchbiggraph_import_from_tsv`, from files of lines that are there already to the same files."""
    _compare_ways(folder / "few")
    edges = _random_graph(folder / "many", MANY_EDGES)
    for partitions in (1, 4):
        imported = folder / "many/imported"
        cost = run(import_command(edges, imported, partitions=partitions))
        size = sum(path.stat().st_size for path in imported.rglob("*.h5")) / 1e9
        say(f"Importing {MANY_EDGES:,} edges, partitions: {partitions}: {cost}, {size:.1f} GB written.")


def _compare_ways(folder: Path) -> None:
    from cocite.embeddings.imported import split_edges

    edges = _random_graph(folder, EDGES)
    lines = {"training": folder / "training.tsv", "holdout": folder / "holdout.tsv"}
    split_edges([edges], EdgeSettings(), directed=True, seed=1, memory_mb=2000, threads=1, **lines)
    ours = [run(import_command(edges, folder / "ours", partitions=1)) for _ in range(1 + ROUNDS)][1:]
    rival = [_run_rival(folder, lines) for _ in range(RIVAL_ROUNDS)]
    seconds, rivals = (statistics.median(cost.wall for cost in costs) for costs in (ours, rival))
    peaks = " to ".join(f"{costs[-1].peak_mb:.0f} MB" for costs in (ours, rival))
    say(
        f"Importing {EDGES:,} edges: {rivals / seconds:.0f} × faster than torchbiggraph_import_from_tsv "
        f"({seconds:.2f} s, median of {ROUNDS}, to {rivals:.1f} s; peak memory {peaks})."
    )
    shutil.rmtree(folder)


def _random_graph(folder: Path, edges: int) -> Path:
    run(python(write_random, folder / "edges.parquet", edges))
    return folder / "edges.parquet"


def _run_rival(folder: Path, lines: dict[str, Path]) -> Cost:
    made, configuration = folder / "rival", folder / "configuration.py"
    shutil.rmtree(made, ignore_errors=True)
    paths = {name: str(made / name) for name in ("entities", *lines)}
    configuration.write_text(RIVAL_CONFIGURATION.format(**paths))
    return run([RIVAL, "--lhs-col", "0", "--rhs-col", "1", configuration, *lines.values()])


def learning(folder: Path) -> None:
    """What is learned after either way into PyTorch-BigGraph, on overlapping communities, over five seeds."""
    edges = folder / "edges.parquet"
    write_pairs(edges, _overlapping())
    for chunks in CHUNKS:
        learned = {way: [_learn(folder, edges, way, chunks, seed) for seed in SEEDS] for way in ("arrow", "tsv")}
        for filtered in (False, True):
            for metric in METRICS:
                of_way = {way: [scores[metric, filtered] for scores in runs] for way, runs in learned.items()}
                told = ", ".join(f"{way} {mean_and_deviation(values)}" for way, values in of_way.items())
                say(f"chunks {chunks}, {'filtered' if filtered else 'raw'} {metric} after import: {told}")


def _overlapping() -> np.ndarray:
    """Papers in communities drawn at random; papers of a community have an edge with a probability of a quarter."""
    drawn = np.random.default_rng(1)
    pairs: list[np.ndarray] = []
    for _ in range(COMMUNITIES):
        members = np.sort(drawn.choice(PAPERS, MEMBERS, replace=False))
        ends = np.stack(np.triu_indices(MEMBERS, k=1))
        pairs.append(members[ends[:, drawn.random(ends.shape[1]) < 0.25]].T)
    return np.unique(np.concatenate(pairs), axis=0)


def _learn(folder: Path, edges: Path, way: str, chunks: int, seed: int) -> dict[tuple[str, bool], float]:
    """The metrics after the last epoch, by name and whether they are filtered."""
    asked = {"settings": {"holdout": 0.1, "import": way}, "memory_mb": 1000, "threads": 1, "seed": seed}
    run(cocite("embeddings", "import", edges, undirected=True, **asked, output=folder / "imported"))
    settings = settings_of("biggraph", cores=1, dimension=32, epochs=EPOCHS, chunks=chunks)
    run(training_command(folder / "imported", settings, seed=seed, output=folder))
    rows = read_table(folder / "scores", "graph_scores").to_pylist()
    return {(row["metric"], row["filtered"]): row["value"] for row in rows if row["epoch"] == EPOCHS}


def leakage(folder: Path) -> None:
    """What link prediction says of a graph in which there is nothing to predict, by what is held out of it.

    Every pair of papers is as likely as any other, so an honest measure is at chance: among 2,000 negatives an MRR of
    .004, Hits@10 of .005, an AUC of .5.
    """
    from cocite.embeddings.biggraph_training import train_graph_embedding
    from cocite.embeddings.engines import BigGraph
    from cocite.embeddings.imported import import_edges

    edges, settings = folder / "edges.parquet", settings_of("biggraph", cores=1, dimension=128, epochs=10, chunks=1)
    drawn = np.random.default_rng(1).integers(0, RANDOM_PAPERS, size=(2 * RANDOM_PAIRS, 2))
    write_pairs(edges, np.unique(drawn[drawn[:, 0] < drawn[:, 1]], axis=0))
    for held_out in ("pairs", "edges"):
        imported = folder / held_out
        import_edges([edges], EdgeSettings(holdout_of=held_out), directed=False, seed=1, output=imported)
        last = train_graph_embedding(imported, BigGraph(**settings), seed=1, state=folder / "state").scores[-1]
        for kind in ("raw", "filtered"):
            told = ", ".join(f"{name} {last[kind][name]:.3f}" for name in ("mrr", "hits_at_10", "auc"))
            say(f"No structure, holdout_of: {held_out}, {kind}: {told} ({last['edges']:,} edges).")
