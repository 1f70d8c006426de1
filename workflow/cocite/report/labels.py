"""What metrics are called on the page, and how a mean is written beside its deviation."""

from collections.abc import Sequence

import polars as pl

from cocite.config.tasks import BOTH

METRICS = {
    "map": "MAP",
    "ndcg": "nDCG",
    "f1": "F1",
    "f1_with_few_shot": "F1, few-shot included",
    "f1_macro": "macro F1",
    "f1_macro_with_few_shot": "macro F1, few-shot included",
    "kendall_tau": "Kendall τ",
    "P_5": "P@5",
    "P_10": "P@10",
    "recall_5": "recall@5",
    "recall_100": "recall@100",
    "ndcg_cut_10": "nDCG@10",
    "ndcg_adjusted": "adjusted nDCG",
    "P_1_adjusted": "adjusted P@1",
    "b3_f1": "B³ F1",
    "b3_precision": "B³ precision",
    "b3_recall": "B³ recall",
}


def measure(task: str, metric: str, mode: str) -> str:
    """What a metric of a task is called; the mode is part of it where there are two."""
    return f"{task} {METRICS.get(metric, metric)}" + ("" if mode == BOTH else f" ({mode})")


def over_seeds(values: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Mean and deviation over seeds, as text in the column `cell`, of the values of each group.

    Values are averaged over evaluation seeds first, and deviate over training seeds; those of what was trained once
    deviate over evaluation seeds. A single value has no deviation.
    """
    trained = values.group_by(*by, "seed").agg(pl.col("value").mean(), pl.col("value").std().alias("evaluated"))
    deviation = pl.when(pl.len() > 1).then(pl.col("value").std()).otherwise(pl.col("evaluated").first())
    summed = trained.group_by(*by).agg(_rounded(pl.col("value").mean()).alias("mean"), _rounded(deviation).alias("±"))
    alone, several = pl.format("{}", "mean"), pl.format("{} ± {}", "mean", "±")
    return summed.select(*by, cell=pl.when(pl.col("±").is_null()).then(alone).otherwise(several))


def _rounded(value: pl.Expr) -> pl.Expr:
    return value.round(1) + 0.0  # −0.0 + 0.0 is 0.0
