"""The report's tables of what the models score: by format, by task, what was not scored, and models side by side.

Each is a frame of text; numbers are means, with the standard deviation over seeds behind ± where there are several.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from cocite.config.benchmarks import is_held_out, tasks_of
from cocite.config.lineage import encoder_under
from cocite.config.runs import names_in_order, repooled
from cocite.config.tasks import BOTH, FORMATS, without_unions
from cocite.report.labels import loss_of, measure, metric_in_words, over_seeds, sets_in_words

Configuration = Mapping[str, Any]
Curves = Mapping[str, pl.DataFrame]
OF_DIFFICULTY = {
    "k_positive": "k⁺",
    "k_negative": "k⁻",
    "distance_positive": "positives within",
    "distance_negative": "hard negatives within",
}
"""The keys that say which bands of neighbours a set of triplets takes, and what they are called."""


OF_SEARCHES = {
    "unfindable": "judged relevant, but not in the collection",
    "copies": "documents that repeat a text",
}
"""The columns of the table scores that say what no model can find or tell apart, and what they are called."""


def models_by_format(scores: pl.DataFrame, configuration: Mapping[str, Any]) -> pl.DataFrame:
    """One row a model or baseline, one column a benchmark and format (or task of the hold-out).

    A format is the mean over its tasks by the first metric of each, since other metrics have other scales. Models come
    as configured, then the untrained encoders and the baselines. A mean that lacks tasks which others have says over
    how many it is.
    """
    labelled = _labelled(scores, configuration["benchmarks"])
    runs = labelled.group_by("model", "seed", "evaluation_seed", "column").agg(
        pl.col("value").mean(), pl.col("task").n_unique().alias("tasks")
    )
    counted = runs.with_columns(pl.col("tasks").max().over("column").alias("most"))
    least = counted.group_by("model", "column").agg(pl.col("tasks").min(), pl.col("most").first())
    partial = pl.format("{} ({} of {} tasks)", "cell", "tasks", "most")
    cells = (
        over_seeds(runs, ["model", "column"])
        .join(least, on=["model", "column"])
        .select("model", "column", cell=pl.when(pl.col("tasks") < pl.col("most")).then(partial).otherwise("cell"))
    )
    wide = cells.pivot("column", index="model", values="cell").fill_null("–")
    return _in_order(wide, configuration).select("model", *_columns(labelled, configuration["benchmarks"]))


def failures(found: pl.DataFrame) -> pl.DataFrame:
    """One row a benchmark, task, model and seed that has no score because the data make one impossible."""
    order = ["benchmark", "task", "model", "seed", "reason"]
    return found.select(order).sort(order).with_columns(pl.col("seed").cast(pl.String))


def tasks(scores: pl.DataFrame, configuration: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """Of each benchmark that has scores, one row a model and one column a metric of a task."""
    keys = ["benchmark", "task", "metric", "mode"]
    cells = over_seeds(scores, [*keys, "model"]).sort(keys)
    names = pl.struct("task", "metric", "mode").map_elements(lambda names: measure(**names), return_dtype=pl.String)
    tables = {}
    for benchmark in configuration["benchmarks"]:
        named = cells.filter(benchmark=benchmark).select("model", "cell", measure=names)
        if len(named):
            wide = named.pivot("measure", index="model", values="cell", maintain_order=True).fill_null("–")
            tables[benchmark] = _in_order(wide, configuration)
    return tables


def incomplete(scores: pl.DataFrame) -> pl.DataFrame:
    """One row a task on which documents have no vector, queries or test documents no score, or searches a blind spot.

    Columns about searches are there only where one has something to count.
    """
    of_searches = [name for name in OF_SEARCHES if name in scores.columns and scores[name].fill_null(0).sum() > 0]
    counts = ["missing", "unscored", *of_searches]
    of = ["documents", *(["searched"] if of_searches else []), *counts]
    counted = scores.group_by("benchmark", "task").agg(pl.col(of).max())
    rows = counted.filter(pl.any_horizontal(pl.col(counts) > 0)).sort("benchmark", "task")
    cells = {
        "missing": pl.format("{} of {}", "missing", "documents").alias("documents without a vector"),
        "unscored": pl.col("unscored").cast(pl.String).alias("left out of the score"),
        "unfindable": pl.col("unfindable").cast(pl.String).fill_null("–").alias(OF_SEARCHES["unfindable"]),
        "copies": pl.format("{} of {}", "copies", "searched").fill_null("–").alias(OF_SEARCHES["copies"]),
    }
    return rows.select("benchmark", "task", *(cells[name] for name in counts))


def losses(scores: pl.DataFrame, curves: Curves, configuration: Configuration) -> pl.DataFrame:
    """Models that differ in their loss only; accuracy is the share of validation triplets in order."""
    models = configuration["models"]
    keys = ["loss", "objectives"]
    differing = {name: ([entry.get(key) for key in keys], _without(entry, keys)) for name, entry in models.items()}
    known = {
        name: {"loss": loss_of(entry), "triplets": sets_in_words(entry), "encoder": encoder_under(name, models)}
        for name, entry in models.items()
    }
    return _side_by_side(differing, known, scores, curves, configuration)


def difficulties(scores: pl.DataFrame, curves: Curves, configuration: Configuration) -> pl.DataFrame:
    """Models whose triplets differ only in the bands that positives and hard negatives are from.

    The nearer the ranks of the two, the harder the triplets (CoCite, 2024).
    """
    models = {name: entry for name, entry in configuration["models"].items() if "triplets" in entry}
    bands = {name: configuration["triplets"][entry["triplets"]] for name, entry in models.items()}
    differing = {
        name: (bands[name], (_without(bands[name], OF_DIFFICULTY), _without(entry, ["triplets"])))
        for name, entry in models.items()
    }
    there = [key for key in OF_DIFFICULTY if any(key in entry for entry in bands.values())]
    known = {
        name: {
            "triplets": models[name]["triplets"],
            **{OF_DIFFICULTY[key]: _limits(entry.get(key)) for key in there},
        }
        for name, entry in bands.items()
    }
    return _side_by_side(differing, known, scores, curves, configuration)


def _labelled(scores: pl.DataFrame, benchmarks: Mapping[str, Any]) -> pl.DataFrame:
    """The scores that are shown, with the column of each, which names the mode if there are two."""
    is_holdout = pl.col("benchmark").is_in([name for name, entry in benchmarks.items() if is_held_out(entry)])
    mode = pl.when(pl.col("mode") == BOTH).then(pl.lit("")).otherwise(pl.format(" ({})", "mode"))
    column = (
        pl.when(is_holdout)
        .then(
            pl.format(
                "{}: {} {}", "benchmark", "task", pl.col("metric").map_elements(metric_in_words, return_dtype=pl.String)
            )
        )
        .otherwise(pl.format("{}: {}{}", "benchmark", "format", mode))
    )
    shown = {(name, task.name): task for name, entry in benchmarks.items() for task in without_unions(tasks_of(entry))}
    keys = ["benchmark", "task", "metric"]
    measured = [
        row
        for row in scores.select(keys).unique().iter_rows()
        if (task := shown.get(row[:2])) and (is_held_out(benchmarks[row[0]]) or task.is_main(row[2]))
    ]
    found = pl.DataFrame(measured, schema=dict.fromkeys(keys, pl.String), orient="row")
    return scores.join(found, on=keys, maintain_order="left").with_columns(column=column)


def _columns(labelled: pl.DataFrame, benchmarks: Mapping[str, Any]) -> Sequence[str]:
    """Columns in reading order: benchmarks as configured, formats in the order of the literature."""
    order = {"benchmark": list(benchmarks), "format": list(dict.fromkeys(FORMATS.values()))}
    ranks = [pl.col(name).replace_strict(values, range(len(values))) for name, values in order.items()]
    return labelled.sort(*ranks, "task", "metric", "mode")["column"].unique(maintain_order=True).to_list()


def _in_order(frame: pl.DataFrame, configuration: Configuration) -> pl.DataFrame:
    names = pl.DataFrame({"model": names_in_order(configuration)}, schema={"model": pl.String})
    return names.join(frame, on="model", how="inner", maintain_order="left")


def _side_by_side(
    differing: Mapping[str, tuple[Any, Any]],
    known: Mapping[str, Mapping[str, str]],
    scores: pl.DataFrame,
    curves: Curves,
    configuration: Configuration,
) -> pl.DataFrame:
    """Each model that differs from another one in one thing, with what is known of it, its accuracy and its scores.

    `differing` holds the thing, and all else that the configuration says of a model. A model has a further row with
    each of its further poolings.
    """
    rows = [
        {"model": called, **known[name], "validation accuracy": _best_accuracy(curves[name]) if called == name else "–"}
        for name, (thing, rest) in differing.items()
        if any(thing != other and rest == others for other, others in differing.values())
        for called in (name, *repooled(name, configuration["models"][name]))
    ]
    if not rows:
        return pl.DataFrame(schema=["model", "validation accuracy"])
    return pl.DataFrame(rows).join(models_by_format(scores, configuration), on="model", maintain_order="left")


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
