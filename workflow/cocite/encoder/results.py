"""What a training leaves: the encoder with its model card, the curves, and the settings as they were resolved."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from cocite.encoder.card import card_of
from cocite.encoder.environment import library_versions
from cocite.encoder.model import Encoder, save_trained
from cocite.tables.files import atomic_path, write_json, write_table

CURVES = {
    "loss": "training_loss",
    "eval_loss": "validation_loss",
    "eval_accuracy": "validation_accuracy",
    "eval_spearman": "validation_spearman",
    "learning_rate": "learning_rate",
}


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """What a training writes."""

    model: Path
    """Folder of the encoder."""
    curves: Path
    """Table training_curves."""
    settings: Path
    """JSON file of the resolved settings."""
    events: Path
    """Folder of the curves in TensorBoard's format."""
    origin: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What the card says of where the model comes from; see `cocite.config.origins`."""


def write_results(
    outputs: Outputs,
    encoder: Encoder,
    log: list[dict[str, Any]],
    *,
    source: Path,
    events: Path,
    settings: dict[str, Any],
    seeds: dict[str, int],
    triplets: dict[str, int],
) -> None:
    """Write all that a training leaves, each whole or not at all.

    `log` is what the training has measured; `source` is the folder of the encoder that it started from, and `events`
    that of its curves in TensorBoard's format.
    """
    write_table(outputs.curves, "training_curves", curves_of(log))
    with atomic_path(outputs.events) as folder:
        shutil.copytree(events, folder)
    provenance = {"settings": settings, "seeds": seeds, "triplets": triplets, "versions": library_versions()}
    write_json(outputs.settings, provenance)
    best = min((entry for entry in log if "eval_loss" in entry), key=lambda entry: entry["eval_loss"])
    card = card_of(
        origin=outputs.origin,
        encoder={
            "pooling": encoder.pooling,
            "longest text": f"{encoder.tokenizer.max_length} tokens; what is longer is cut",
            "dimension": encoder.dimension,
        },
        best={"step": best["step"], **{name: best[key] for key, name in CURVES.items() if key in best}},
        **provenance,
    )
    with atomic_path(outputs.model) as folder:
        save_trained(encoder, source, folder, card)


def curves_of(log: list[dict[str, Any]]) -> pa.Table:
    """The table training_curves of what a training has measured."""
    points = sorted(
        (entry["step"], CURVES[name], float(value)) for entry in log for name, value in entry.items() if name in CURVES
    )
    steps, metrics, values = zip(*points, strict=True)
    return pa.table({"step": steps, "metric": metrics, "value": values})
