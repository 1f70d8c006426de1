"""The report's tables, one a question: models by format, graph embeddings, searches, leaks, what was left out.

Each is a frame of text, ready to be read; numbers are means, with the standard deviation over seeds behind ± where
there are several.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from cocite.config.runs import names_in_order
from cocite.config.stale import is_configured
from cocite.config.tasks import BOTH
from cocite.report.labels import METRICS, over_seeds
from cocite.report.results import GRAPH_METRICS
from cocite.tables.files import read_table
from cocite.tables.places import path_of

SHARES = {"corpus": r"-\d+$", "graph": r"-\d+$", "neighbours": r"_\d+$"}
"""How the name of a step ends that several jobs share, by stage; names of configured entries may end in numbers."""
FORMATS = ("classification", "regression", "proximity", "reviewer-matching", "search", "disambiguation")


def models_by_format(scores: pl.DataFrame, configuration: Mapping[str, Any]) -> pl.DataFrame:
    """One row a model or baseline, one column a benchmark and format (or task of the hold-out).

    Models come as configured, then the untrained encoders, BM25 and random vectors. A mean that lacks tasks which
    others have says over how many it is.
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
    order = names_in_order(configuration)
    return _in_order(wide, "model", order).select("model", *_columns(labelled, configuration["benchmarks"]))


def graph_embeddings(scores: Mapping[str, pl.DataFrame], configuration: Mapping[str, Any]) -> pl.DataFrame:
    """Two rows a graph embedding: link prediction on its hold-out after the last epoch, raw and filtered."""
    rows = []
    for name, table in scores.items():
        last = table.filter(pl.col("epoch") == pl.col("epoch").max())
        for filtered in (False, True):
            of_kind = last.filter(filtered=filtered)
            values = dict(zip(of_kind["metric"], of_kind["value"], strict=True))
            rows.append(
                {
                    "embedding": name,
                    "graph": configuration["embeddings"][name]["graph"],
                    "epochs": str(last["epoch"][0]),
                    "held-out edges": f"{last['edges'][0]:,}",
                    "negatives": "filtered" if filtered else "raw",
                    **{label: f"{values[metric]:.3f}" for metric, label in GRAPH_METRICS.items() if metric in values},
                }
            )
    return pl.DataFrame(rows) if rows else pl.DataFrame(schema=["embedding", "epochs"])


def searches(results: Path, configuration: Mapping[str, Any]) -> pl.DataFrame:
    """What each approximate search leads to of the true neighbours, and the time it takes beside the exact one."""
    rows = []
    for name, entry in configuration["embeddings"].items():
        if entry["neighbours"]["index"] == "flat":
            continue
        for row in read_table(path_of(results, "search_quality", embedding=name), "search_quality").to_pylist():
            rows.append(
                {
                    "embedding": name,
                    "index": row["index"],
                    "metric": row["metric"],
                    "queries": f"{row['queries']:,}",
                    "k": f"{row['k']:,}",
                    "recall": f"{row['recall']:.3f}",
                    "seconds": f"{row['seconds']:.1f}",
                    "exact": f"{row['exact_seconds']:.1f}",
                }
            )
    return pl.DataFrame(rows) if rows else pl.DataFrame(schema=["embedding", "recall"])


def leaks(results: Path) -> pl.DataFrame:
    """Where papers that are kept out were looked for, and how many of them were found."""
    numbers = {"rows": "rows", "papers looked for": "kept_out", "papers found": "leaked"}
    rows = [
        {"table": row["path"], "column": row["column_name"], **{name: f"{row[of]:,}" for name, of in numbers.items()}}
        for row in read_table(path_of(results, "leaks"), "leaks").to_pylist()
    ]
    return pl.DataFrame(rows, schema=["table", "column", *numbers])


def omissions(results: Path, configuration: Mapping[str, Any]) -> pl.DataFrame:
    """Everything that a step met and left out, by step and reason, but for steps of entries that are gone.

    The jobs that share a step, one a shard or bucket, count together.
    """
    rows = [
        {"stage": path.parts[-3], "step": re.sub(SHARES.get(path.parts[-3], "$"), "", path.stem), **row}
        for path in sorted(results.glob("*/omissions/*.parquet"))
        if is_configured({"stage": path.parts[-3], "step": path.stem}, configuration)
        for row in read_table(path, "omissions").to_pylist()
        if row["count"]
    ]
    schema = {"stage": pl.String, "step": pl.String, "reason": pl.String, "count": pl.Int64}
    return (
        pl.DataFrame(rows, schema=schema)
        .group_by("stage", "step", "reason", maintain_order=True)
        .agg(pl.col("count").sum())
    )


def leaks_in_words(found: pl.DataFrame) -> str:
    """What the table of leaks says, in one sentence."""
    numbers = [int(number.replace(",", "")) for number in found["papers found"]]
    tables = found["table"].n_unique()
    searched = f"{len(found)} columns of {tables} tables were searched for papers that are kept out"
    return f"{searched}: {sum(numbers):,} were found." if sum(numbers) else f"{searched}, and none was found."


def _labelled(scores: pl.DataFrame, benchmarks: Mapping[str, Any]) -> pl.DataFrame:
    """The scores with the name of the column that each belongs to, which says the mode where there are two."""
    is_holdout = pl.col("benchmark").is_in([name for name, entry in benchmarks.items() if entry["kind"] == "holdout"])
    mode = pl.when(pl.col("mode") == BOTH).then(pl.lit("")).otherwise(pl.format(" ({})", "mode"))
    column = (
        pl.when(is_holdout)
        .then(pl.format("{}: {} {}", "benchmark", "task", pl.col("metric").replace(METRICS)))
        .otherwise(pl.format("{}: {}{}", "benchmark", "format", mode))
    )
    return scores.with_columns(column=column)


def _columns(labelled: pl.DataFrame, benchmarks: Mapping[str, Any]) -> Sequence[str]:
    """Columns in reading order: benchmarks as configured, formats in the order of the literature."""
    order = {"benchmark": list(benchmarks), "format": FORMATS}
    ranks = [pl.col(name).replace_strict(values, range(len(values))) for name, values in order.items()]
    return labelled.sort(*ranks, "task", "metric", "mode")["column"].unique(maintain_order=True).to_list()


def _in_order(frame: pl.DataFrame, column: str, order: Sequence[str]) -> pl.DataFrame:
    names = pl.DataFrame({column: order}, schema={column: pl.String})
    return names.join(frame, on=column, how="inner", maintain_order="left")
