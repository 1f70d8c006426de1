"""Models that differ in one thing only, side by side: in their loss, or in how difficult their triplets are."""

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from cocite.config.choices import choices
from cocite.report.labels import over_seeds
from cocite.report.tables import models_by_format

Configuration = Mapping[str, Any]
Curves = Mapping[str, pl.DataFrame]
LOSSES = choices("encoder/losses")
OF_DIFFICULTY = {
    "k_positive": "k⁺",
    "k_negative": "k⁻",
    "distance_positive": "positives within",
    "distance_negative": "hard negatives within",
}
"""What a set of triplets is told of its bands of neighbours, and what that is called."""


def losses(scores: pl.DataFrame, curves: Curves, configuration: Configuration) -> pl.DataFrame:
    """Models that differ in their loss only; accuracy is the share of validation triplets in order."""
    models = configuration["models"]

    def differ(one: str, other: str) -> bool:
        return models[one]["loss"] != models[other]["loss"] and _of_all(models[one]) == _of_all(models[other])

    told = {name: {key: entry[key] for key in ("loss", "triplets", "encoder")} for name, entry in models.items()}
    return _side_by_side(differ, told, scores, curves, configuration)


def difficulties(scores: pl.DataFrame, curves: Curves, configuration: Configuration) -> pl.DataFrame:
    """Models whose triplets differ only in the bands that positives and hard negatives are from.

    The nearer the ranks of the two, the harder the triplets (CoCite, 2024).
    """
    models, sets = configuration["models"], configuration["triplets"]

    def differ(one: str, other: str) -> bool:
        mine, others = sets[models[one]["triplets"]], sets[models[other]["triplets"]]
        return (
            mine != others
            and _without(mine, OF_DIFFICULTY) == _without(others, OF_DIFFICULTY)
            and _without(models[one], ["triplets"]) == _without(models[other], ["triplets"])
        )

    bands = {name: sets[entry["triplets"]] for name, entry in models.items()}
    there = [key for key in OF_DIFFICULTY if any(key in entry for entry in bands.values())]
    told = {
        name: {
            "triplets": models[name]["triplets"],
            **{OF_DIFFICULTY[key]: _limits(entry.get(key)) for key in there},
        }
        for name, entry in bands.items()
    }
    return _side_by_side(differ, told, scores, curves, configuration)


def _side_by_side(
    differ: Callable[[str, str], bool],
    told: Mapping[str, Mapping[str, str]],
    scores: pl.DataFrame,
    curves: Curves,
    configuration: Configuration,
) -> pl.DataFrame:
    """What is told of each model that differs from another one, its accuracy and its scores."""
    rows = [
        {"model": name, **told[name], "validation accuracy": _best_accuracy(curves[name])}
        for name in told
        if any(differ(name, other) for other in told)
    ]
    if not rows:
        return pl.DataFrame(schema=["model", "validation accuracy"])
    return pl.DataFrame(rows).join(models_by_format(scores, configuration), on="model", maintain_order="left")


def _of_all(model: Mapping[str, Any]) -> dict[str, Any]:
    """What a model is told but for its loss, and what that is told."""
    return _without(model, ["loss", *LOSSES[model["loss"]].keys])


def _without(entry: Mapping[str, Any], keys: Any) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in keys}


def _limits(limit: Any) -> str:
    """The end of a band, or its first and last rank."""
    if limit is None:
        return "–"
    return f"{limit[0]}–{limit[1]}" if isinstance(limit, list) else str(limit)


def _best_accuracy(curve: pl.DataFrame) -> str:
    """Accuracy, %, of the states that were kept, those of the least validation loss, over the seeds of a model."""
    wide = curve.filter(pl.col("metric").str.starts_with("validation_")).pivot(
        "metric", index=["seed", "step"], values="value"
    )
    kept = wide.sort("validation_loss", "step").group_by("seed").first()
    values = kept.select("seed", value=100 * pl.col("validation_accuracy"), model=pl.lit(""))
    return str(over_seeds(values, ["model"])["cell"].item())
