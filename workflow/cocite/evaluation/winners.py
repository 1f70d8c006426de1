"""The best sets and trainings of a probe as entries that a configuration can hold: sets of triplets, and models."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from cocite.config.probes import described_loss
from cocite.core.options import Seed
from cocite.core.tables.files import write_text
from cocite.evaluation.probes import Point, write_scores

MOST = 5
HEAD = """\
# The best of the probe, the best first, by the held-out papers that choose. Copy what you want to train into a
# configuration with the same graphs, embeddings and encoders. A probe does not choose the epochs and the learning rate
# of a fine-tuning.
"""


def rank_probe(
    outcomes: Annotated[list[Path], typer.Argument(help="Tables probe_outcomes, each under the name of its set.")],
    *,
    settings: Annotated[str, typer.Option(help="The probe, and its sets by name, as JSON.")],
    seed: Seed,
    scores: Annotated[Path, typer.Option(help="Table probe_scores, written.")],
    winners: Annotated[Path, typer.Option(help="The best sets and trainings as entries of a configuration, written.")],
) -> None:
    """Rank the sets and losses of a probe by the papers that choose."""
    ranked = write_scores({path.stem: path for path in outcomes}, seed, scores)
    write_winners(ranked, json.loads(settings), winners)


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
