"""The best sets and trainings of a probe as entries that a configuration can hold: sets of triplets, and models."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from cocite.config.probes import described_loss
from cocite.evaluation.probes import Point
from cocite.tables.files import write_text

MOST = 5
HEAD = """\
# The best of the probe, the best first, by the held-out papers that choose. Copy what you want to train into a
# configuration with the same graphs, embeddings and encoders. A probe does not choose the epochs and the learning rate
# of a fine-tuning.
"""


def write_winners(ranked: Sequence[Point], settings: Mapping[str, Any], output: Path) -> None:
    """Write the best points as entries of `triplets` and `models`. `settings` has the probe, and its sets by name."""
    losses = {described_loss(loss): loss for loss in settings["probe"]["losses"]}
    best = ranked[:MOST]
    models = {
        f"winner-{place}": {
            "triplets": point.triplets,
            "encoder": settings["probe"]["encoder"],
            "loss": losses[point.loss],
            "batch_size": point.batch_size,
            "seeds": list(settings["probe"]["seeds"]),
        }
        for place, point in enumerate(best, start=1)
    }
    sets = {name: settings["triplets"][name] for name in dict.fromkeys(point.triplets for point in best)}
    entries = yaml.safe_dump({"triplets": sets, "models": models}, sort_keys=False, width=120)
    write_text(output, HEAD + entries)
