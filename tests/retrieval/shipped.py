"""Make the weights that come with the program again, from finished runs.

    python -m tests.retrieval.shipped results/hci-index-later results/synergy-index-later

Both hold out later papers, as new texts are. The weights are the means over the balanced indexes that learned theirs,
over seeds, and then over corpora. Cosines by several models count as one: the weight of an index is what theirs add up
to.
"""

import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from cocite.core.atomic import read_json, write_json
from cocite.retrieval.ranker import SHIPPED, kind_of


def shipped(runs):
    """What the file has; a run is called by its corpus, and what follows a hyphen."""
    weights, offsets = defaultdict(list), defaultdict(list)
    for path in sorted(path for run in runs for path in run.glob("retrieval/*/seed-*/*/weights.json")):
        of, corpus = read_json(path), path.parts[-6].partition("-")[0]
        if of["queries"] and of["known"] == "balanced":
            of_columns = Counter()
            for row in of["weights"]:
                of_columns[kind_of(row["name"])] += row["weight"]
            weights[corpus].append(of_columns)
            offsets[corpus].append([row["balanced"] for row in of["offsets"]])
    means = [{name: np.mean([one[name] for one in of]) for name in of[0]} for of in weights.values()]
    return {
        "corpora": sorted(weights),
        "weights": {name: round(float(np.mean([of[name] for of in means])), 3) for name in means[0]},
        "offsets": np.mean([np.mean(of, axis=0) for of in offsets.values()], axis=0).round(3).tolist(),
    }


if __name__ == "__main__":
    write_json(SHIPPED, shipped([Path(run) for run in sys.argv[1:]]))
