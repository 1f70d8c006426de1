"""What is learned after either way into PyTorch-BigGraph, on a graph of overlapping communities, over five seeds."""

from pathlib import Path

import numpy as np
from tests.benchmarks.engines import mean_and_deviation, training_command
from tests.benchmarks.made_graphs import write_pairs
from tests.benchmarks.measuring import cocite, run, say

from cocite.core.tables.files import read_table

SEEDS = (1, 2, 3, 4, 5)
CHUNKS = (1, 10)
PAPERS, COMMUNITIES, MEMBERS = 4000, 400, 25
METRICS = ("loss", "mean_rank", "mrr", "hits_at_10", "auc")
EDGE_SETTINGS = {"holdout": 0.1, "holdout_of": "pairs", "weights": False, "max_repetitions": 1, "partitions": 1}
SETTINGS = {
    **{"comparator": "dot", "dimension": 32, "epochs": 15, "lr": 0.1, "loss": {"kind": "ranking", "margin": 0.15}},
    **{"max_norm": 1.0, "batch_size": 1000, "batch_negatives": 50, "uniform_negatives": 50, "workers": 1},
}


def main(folder: Path) -> None:
    edges = write_communities(folder / "edges.parquet")
    for chunks in CHUNKS:
        tell(chunks, {way: [learn(folder, edges, way, chunks, seed) for seed in SEEDS] for way in ("arrow", "tsv")})


def tell(chunks: int, learned: dict[str, list[dict[tuple[str, bool], float]]]) -> None:
    for filtered in (False, True):
        for metric in METRICS:
            of_way = {way: [scores[metric, filtered] for scores in runs] for way, runs in learned.items()}
            told = ", ".join(f"{way} {mean_and_deviation(values)}" for way, values in of_way.items())
            say(f"chunks {chunks}, {'filtered' if filtered else 'raw'} {metric} after import: {told}")


def write_communities(path: Path) -> Path:
    """Papers in communities drawn at random; papers of a community have an edge with a probability of a quarter."""
    drawn = np.random.default_rng(1)
    pairs = set()
    for _ in range(COMMUNITIES):
        members = np.sort(drawn.choice(PAPERS, MEMBERS, replace=False))
        first, second = np.triu_indices(MEMBERS, k=1)
        chosen = drawn.random(len(first)) < 0.25
        pairs.update(zip(members[first[chosen]].tolist(), members[second[chosen]].tolist(), strict=True))
    write_pairs(path, np.array(sorted(pairs)))
    return path


def learn(folder: Path, edges: Path, way: str, chunks: int, seed: int) -> dict[tuple[str, bool], float]:
    """The metrics after the last epoch, by name and whether they are filtered."""
    imported = folder / "imported"
    asked = {"settings": {**EDGE_SETTINGS, "import": way}, "memory_mb": 1000, "threads": 1}
    run(cocite("embeddings", "import", edges, undirected=True, **asked, seed=seed, output=imported))
    run(training_command(imported, {**SETTINGS, "chunks": chunks}, seed=seed, output=folder))
    rows = read_table(folder / "scores", "graph_scores").to_pylist()
    return {(row["metric"], row["filtered"]): row["value"] for row in rows if row["epoch"] == SETTINGS["epochs"]}
