"""What link prediction says of a graph in which there is nothing to predict, by what is held out of it.

Every pair of papers is as likely as any other, so an honest measure is at chance: among 2,000 negatives an MRR of .004,
Hits@10 of .005, an AUC of .5.
"""

from pathlib import Path

import numpy as np
from tests.benchmarks.made_graphs import write_pairs
from tests.benchmarks.measuring import say

from cocite.config.engine import EdgeSettings
from cocite.embeddings.biggraph_training import train_graph_embedding
from cocite.embeddings.engines import BigGraph
from cocite.embeddings.imported import import_edges

PAPERS, PAIRS = 10_000, 100_000
SETTINGS = BigGraph(
    **{"engine": "biggraph", "comparator": "dot", "dimension": 128, "epochs": 10, "lr": 0.1, "loss": "ranking"},
    **{"max_norm": 1.0, "batch_size": 1000, "batch_negatives": 50, "uniform_negatives": 50, "chunks": 1, "workers": 1},
)


def main(folder: Path) -> None:
    edges = folder / "edges.parquet"
    drawn = np.random.default_rng(1).integers(0, PAPERS, size=(2 * PAIRS, 2))
    write_pairs(edges, np.unique(drawn[drawn[:, 0] < drawn[:, 1]], axis=0))
    for held_out in ("pairs", "edges"):
        chosen = EdgeSettings(holdout=0.05, holdout_of=held_out, weights=False, max_repetitions=1, partitions=1)
        imported = folder / held_out
        import_edges([edges], chosen, directed=False, seed=1, output=imported)
        last = train_graph_embedding(imported, SETTINGS, seed=1, state=folder / "state").scores[-1]
        for kind in ("raw", "filtered"):
            told = ", ".join(f"{name} {last[kind][name]:.3f}" for name in ("mrr", "hits_at_10", "auc"))
            say(f"No structure, holdout_of: {held_out}, {kind}: {told} ({last['edges']:,} edges).")
