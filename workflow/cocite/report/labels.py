"""What metrics, modes and relations are called in the report, and how a mean is written with its deviation."""

import re
from collections.abc import Mapping, Sequence

import polars as pl

from cocite.config.models import Model
from cocite.config.tasks import BOTH, OVER_FOLDS, WITH_FEW_SHOT

METRICS = {
    "map": "MAP",
    "ndcg": "nDCG",
    "f1": "F1",
    "f1_macro": "macro F1",
    "kendall_tau": "Kendall τ",
    "ndcg_adjusted": "adjusted nDCG",
    "P_1_adjusted": "adjusted P@1",
    "Rprec": "R-precision",
    "Rprec_csfcube": "R-precision as CSFCube has it",
    "recip_rank": "MRR",
    "ndcg_csfcube": "nDCG as CSFCube has it",
    "ndcg_20_csfcube": "nDCG@20 as CSFCube has it",
    "ndcg_20%_csfcube": "nDCG at 20% as CSFCube has it",
    "ndcg_10%": "nDCG at 10%",
    "ndcg_10%_exp": "nDCG at 10%, gains of 2 to the grade",
    "recip_rank_10_best": "MRR@10 of the highest grade",
    "recall_10%": "recall after 10%",
    "wss_95": "WSS@95",
    "found_early": "100 − time to discovery",
    "b3_f1": "B³ F1",
    "b3_precision": "B³ precision",
    "b3_recall": "B³ recall",
}
AT_A_DEPTH = {"P": "P", "recall": "recall", "success": "success", "ndcg_cut": "nDCG", "map_cut": "MAP"}
AT_A_DEPTH |= {"recip_rank": METRICS["recip_rank"], "recall_cap": "R"}
"""Metrics with a depth after their name."""
_RELEVANT = {"cite": "papers it cites", "cocite": "papers cited with it"}
TASKS = {
    **_RELEVANT,
    **{f"{task}_matched": f"{words} (equally cited candidates)" for task, words in _RELEVANT.items()},
    **{f"{task}_search": f"{words} (whole corpus)" for task, words in _RELEVANT.items()},
    "title_search": "search by title",
    "cite_count": "number of citations",
    "drsm": "DRSM",
    "fos": "fields of study",
    "high_influence_cite": "influential citations",
    "hIndex": "h-index of its authors",
    "mesh_descriptors": "MeSH descriptors",
    "nfcorpus": "NFCorpus",
    "paper_reviewer_matching_hard": "reviewers (hard)",
    "paper_reviewer_matching_soft": "reviewers (soft)",
    "peer_review_score": "score in peer review",
    "pub_year": "year of publication",
    "relish": "RELISH",
    "same_author": "papers of the same author",
    "screening": "screening by texts",
    "screening_citations": "screening by texts and citations",
    "trec_covid": "TREC-COVID",
    "tweet_mentions": "mentions in tweets",
}
"""What tasks ask for, in words; others go by their name."""
AVERAGED = {WITH_FEW_SHOT: ", few-shot included", OVER_FOLDS: " (mean over folds)"}
"""Suffixes of metrics' names for averages."""
GRAPH_METRICS = {"loss": "loss", "mean_rank": "mean rank", "mrr": "MRR"}
GRAPH_METRICS |= {f"hits_at_{depth}": f"Hits@{depth}" for depth in (1, 10, 50)} | {"auc": "AUC"}
RELATIONS = {"cocited": "co-cited with the query", "cited": "citing it or cited by it"}
"""How a neighbour can be related to its query, by the column of the table band_quality."""
PUBLISHED = "published"
NUMBER = re.compile(r"[-−+]?\d[\d,]*(?:\.\d+)?")


def with_mode(name: str, mode: str) -> str:
    """A name with the mode behind it, where scores depend on the mode."""
    return name if mode == BOTH else f"{name} ({mode})"


def metric_in_words(metric: str) -> str:
    """What a metric is called; an unknown one goes by its name."""
    for end, words in AVERAGED.items():
        if metric.endswith(end):
            return f"{metric_in_words(metric.removesuffix(end))}{words}"
    name, _, depth = metric.rpartition("_")
    if name in AT_A_DEPTH and depth.isdecimal():
        return f"{AT_A_DEPTH[name]}@{depth}"
    return METRICS.get(metric, metric)


def measure(task: str, metric: str, mode: str) -> str:
    """What a metric of a task is called."""
    return with_mode(f"{TASKS.get(task, task)}, {metric_in_words(metric)}", mode)


def loss_of(model: Model) -> str:
    """What the loss of a configured model is called; losses that are added up, with the space of each."""
    if model.loss is not None:
        return model.loss.kind
    terms = model.objectives or ()
    losses = [f"{term.loss.kind}{' by aspect' if term.space == 'aspects' else ''}" for term in terms]
    return " + ".join(losses if model.triplets is not None else dict.fromkeys(losses))


def sets_in_words(model: Model) -> str:
    """The sets that a configured model learns from, and how they are mixed."""
    return " + ".join(model.learns_from) + (" alternating" if model.mixing == "alternating" else "")


def mean_cell(mean: float, deviation: float | None) -> str:
    """A mean with its deviation, if it has one."""
    return f"{mean:.1f}" if deviation is None else f"{mean:.1f} ± {deviation:.1f}"


def with_commas(column: str) -> pl.Expr:
    """The whole numbers of a column as text."""
    return pl.col(column).map_elements("{:,}".format, return_dtype=pl.String)


def rows_or(rows: Sequence[Mapping[str, str | None]], *columns: str) -> pl.DataFrame:
    """A table of these rows; without any, one of these columns."""
    return pl.DataFrame(rows) if rows else pl.DataFrame(schema=columns)


def over_seeds(values: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Mean and deviation over seeds, as text in the column `cell`, of the values of each group. Values are averaged
    over evaluation seeds first, and the deviation is over training seeds, or over evaluation seeds if there is one
    training. A single value has no deviation."""
    trained = values.group_by(*by, "seed").agg(pl.col("value").mean(), pl.col("value").std().alias("evaluated"))
    deviation = pl.when(pl.len() > 1).then(pl.col("value").std()).otherwise(pl.col("evaluated").first())
    summed = trained.group_by(*by).agg(pl.col("value").mean().alias("mean"), deviation.alias("±"))
    rounded = summed.with_columns(pl.col("mean", "±").round(1) + 0.0)  # −0.0 + 0.0 is 0.0
    alone, several = pl.format("{}", "mean"), pl.format("{} ± {}", "mean", "±")
    return rounded.select(*by, cell=pl.when(pl.col("±").is_null()).then(alone).otherwise(several))


def over_seeds_of_one(scores: pl.DataFrame) -> str:
    """The same of one model, whose value in a run is the plain mean over all of its rows."""
    runs = scores.group_by("seed", "evaluation_seed").agg(pl.col("value").mean())
    return str(over_seeds(runs.with_columns(of=pl.lit("")), ["of"])["cell"].item())


def number_in(text: str | None) -> float | None:
    """The number that a cell begins with; none if it begins with none."""
    found = NUMBER.match(text or "")
    return float(found[0].replace(",", "").replace("−", "-")) if found else None
