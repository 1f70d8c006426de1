"""Make the weights that come with the program again, from finished runs, one of each corpus.

    python -m tests.retrieval.shipped results/hci-index results/synergy-index

They are the means over the indexes that learn their weights and are balanced, over hold-outs and seeds, and then over
corpora. Cosines by several models count as one: the weight of an index is what theirs add up to.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np

from cocite.core.atomic import read_json, write_json
from cocite.retrieval.weights import COSINE, SHIPPED


def mean_weights(run: Path):
    """The weights by column, and the offset of each class of rarely cited papers."""
    of_columns, offsets = [], []
    for path in sorted(run.glob("retrieval/*/seed-*/*/weights.json")):
        of = read_json(path)
        if of["queries"] and of["known"] == "balanced":
            of_columns.append(Counter())
            for row in of["weights"]:
                of_columns[-1][COSINE if row["name"].startswith(f"{COSINE} ") else row["name"]] += row["weight"]
            offsets.append([row["balanced"] for row in of["offsets"]])
    return {name: np.mean([of[name] for of in of_columns]) for name in of_columns[0]}, np.mean(offsets, axis=0)


def shipped(runs):
    """What the file has."""
    of_runs = [mean_weights(run) for run in runs]
    return {
        "corpora": [run.name.partition("-")[0] for run in runs],
        "weights": {name: round(float(np.mean([of[name] for of, _ in of_runs])), 3) for name in of_runs[0][0]},
        "offsets": np.mean([offsets for _, offsets in of_runs], axis=0).round(3).tolist(),
    }


if __name__ == "__main__":
    write_json(SHIPPED, shipped([Path(run) for run in sys.argv[1:]]))
