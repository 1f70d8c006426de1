"""The cards of trained models with their scores: copies of the cards that the trainings wrote, with scores added."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from cocite.config.origins import CARD_SCORES
from cocite.config.runs import model_of, training_seeds, with_weights
from cocite.config.terms import generated_benchmarks
from cocite.config.triplets import oracle_models
from cocite.core.tables.files import atomic_path
from cocite.report.labels import measure, over_seeds


def write_cards(results: Path, scores: pl.DataFrame, provenance: Mapping[str, Any], output: Path) -> None:
    """Write `<model>/seed-<seed>/README.md` into a folder, for each training of a model, further pooling and mean."""
    configuration = provenance["configuration"]
    with atomic_path(output) as folder:
        folder.mkdir()
        for model in with_weights(configuration):
            of_model = scores.filter(model=model)
            for seed in training_seeds(configuration, model):
                card = (results / f"encoder/{model}/seed-{seed}/model/README.md").read_text(encoding="utf-8")
                path = folder / model / f"seed-{seed}" / "README.md"
                path.parent.mkdir(parents=True)
                path.write_text(with_scores(card, of_model, seed, provenance), encoding="utf-8")


def with_scores(card: str, scores: pl.DataFrame, seed: int, provenance: Mapping[str, Any]) -> str:
    """A card whose last section has the scores of one seed of its model; `scores` are those of all seeds."""
    before = card.partition(CARD_SCORES)[0].rstrip()
    if scores.is_empty():
        return f"{before}\n\n{CARD_SCORES}\n\nThe run had no benchmark.\n"
    remark = "Scores × 100, higher is better, as means over the evaluation seeds."
    if given_away := oracle_models(provenance["configuration"]).get(model_of(scores["model"][0])):
        remark += (
            f" This model is an oracle: it has learned from the answers of {', '.join(given_away)}. Its scores there "
            "bound from above what can be reached, and are no results."
        )
    if generated := generated_benchmarks(provenance):
        remark += f" The documents of {', '.join(generated)} are generated and say nothing about real papers."
    return f"{before}\n\n{CARD_SCORES}\n\n{remark}\n\n{_table(scores, seed)}\n"


def _table(scores: pl.DataFrame, seed: int) -> str:
    """Each metric of each task: the value of this seed, and that of all training seeds where there are several."""
    keys = ["benchmark", "task", "metric", "mode"]
    own = scores.filter(seed=seed).group_by(keys).agg(pl.col("value").mean().round(1) + 0.0)
    found = own.join(over_seeds(scores, keys), on=keys).sort(keys)
    seeds = scores["seed"].n_unique()
    columns = ["benchmark", "measure", "score", *([f"mean of {seeds} seeds"] if seeds > 1 else [])]
    rows = [
        [row["benchmark"], measure(row["task"], row["metric"], row["mode"]), str(row["value"]), row["cell"]]
        for row in found.iter_rows(named=True)
    ]
    lines = [columns, ["---"] * len(columns), *(row[: len(columns)] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
