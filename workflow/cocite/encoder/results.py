"""What a training leaves: the encoder with its model card, the curves, and the settings as they were resolved."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from cocite.encoder.environment import library_versions
from cocite.encoder.model import Encoder, save_trained
from cocite.files import atomic_path, write_json, write_table

CURVES = {
    "loss": "training_loss",
    "eval_loss": "validation_loss",
    "eval_accuracy": "validation_accuracy",
    "eval_spearman": "validation_spearman",
    "learning_rate": "learning_rate",
}
CARD = """---
library_name: sentence-transformers
pipeline_tag: feature-extraction
tags:
- sentence-transformers
- scientific-publications
---
# An encoder of scientific publications

It embeds a title and an abstract, joined by the tokenizer's separator, so that publications that belong together lie
near each other. It was fine-tuned on triplets (query, positive, negative); of the states that were validated on further
triplets, it is the one with the smallest validation loss ({loss:.4f} at step {step}, where {accuracy:.1%} of the
positives were nearer than their negatives).

    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer("this folder")
    vectors = model.encode([title + model.tokenizer.sep_token + abstract])

| score on the validation triplets | value |
|---|---|
{scores}

| data | number |
|---|---|
{data}

| setting | value |
|---|---|
{settings}

| library | version |
|---|---|
{versions}
"""


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
    card = CARD.format(
        loss=best["eval_loss"],
        step=best["step"],
        accuracy=best["eval_accuracy"],
        scores=_rows({name: f"{best[key]:.4f}" for key, name in CURVES.items() if key in best}),
        data=_rows({f"{name} triplets": number for name, number in triplets.items()}),
        settings=_rows({**settings, **{f"seed of the {name}": seed for name, seed in seeds.items()}}),
        versions=_rows(provenance["versions"]),
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


def _rows(values: dict[str, Any]) -> str:
    """Rows of a table in Markdown, of the values that there are."""
    return "\n".join(f"| {name} | {value} |" for name, value in values.items() if value is not None)
