"""The report's tables of benchmarks of the literature: ours with published values, in the literature's columns. Scores
that others reported on tasks of mteb are in the table `reported` only: no mean, figure or test counts them."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from cocite.config.benchmarks.scirepeval import TASKS as SCIREPEVAL
from cocite.config.benchmarks.scirepeval import Mdcr
from cocite.config.configuration import Configuration
from cocite.config.runs import names_in_order
from cocite.config.tasks import BOTH, WITH_FEW_SHOT
from cocite.report.labels import PUBLISHED, mean_cell, metric_in_words, over_seeds, over_seeds_of_one, with_mode

PUBLISHED_TABLES = Path(__file__).parents[2] / "report" / "published"
WEIGHTS = {"classification": 6, "regression": 5, "proximity": 11, "search": 3}
"""How many values of each format the published average is over."""
GROUPS = {"in-train": "in-train", "out-of-train": "out-of-train", "scidocs": "SciDocs"}
SCIDOCS: dict[str, tuple[str | None, str]] = {
    "MAG F1": ("mag", "f1_macro"),
    "MeSH F1": ("mesh", "f1_macro"),
    **{
        f"{label} {measure}": (f"scidocs_{name}", metric)
        for label, name in (("view", "view"), ("read", "read"), ("cite", "cite"), ("co-cite", "cocite"))
        for measure, metric in (("MAP", "map"), ("nDCG", "ndcg"))
    },
    "recommendation nDCG": ("recomm", "ndcg_adjusted"),
    "recommendation P@1": ("recomm", "P_1_adjusted"),
}
LABELS = {"f1": "F1", "f1_macro": "F1", "kendall_tau": "τ", "map": "MAP", "ndcg": "nDCG", "P_5": "P@5", "P_10": "P@10"}
COLUMNS: dict[str, dict[str, tuple[str | None, str]]] = {
    # The 25 values of SciRepEval's average, and the four of reviewer matching, which is not in it.
    "scirepeval": {
        f"{task.name} {LABELS[metric]}": (task.name, metric) for task in SCIREPEVAL for metric in task.metrics
    },
    "scidocs": SCIDOCS,
    "mdcr": {"MAP": (None, "map"), "nDCG": (None, "ndcg"), "recall@5": (None, "recall_5")},
    "mdcr_fields": {task.test: (task.name, "map") for task in Mdcr.declared},
}
"""Task and metric of each column of a table; without a task, the plain mean over all."""
REPORTED = "reported"
"""The beginning of the source of rows that this run did not measure."""


def read_published(name: str) -> pl.DataFrame:
    """A published table, as text with as many digits as were published."""
    return pl.read_csv(PUBLISHED_TABLES / f"{name}.csv", infer_schema=False)


def scirepeval(averages: pl.DataFrame, configuration: Configuration) -> pl.DataFrame:
    """One row per model and mode of each benchmark in SciRepEval's layout, then the published rows. `values` is the
    number of values that the average is over, and of how many if a task has no score; the published average is over 25.
    A published average that its own formats contradict is shown with theirs."""
    own = averages.filter(pl.col("benchmark").is_in(_benchmarks("scirepeval", configuration)))
    if own.is_empty():
        return pl.DataFrame(schema=["model"])
    rows = [_row_of_averages(part) for part in own.partition_by("benchmark", "model", "mode", maintain_order=True)]
    order = names_in_order(configuration)
    return pl.DataFrame([*sorted(rows, key=lambda row: order.index(row["model"])), *published_rows()])


def published_rows() -> list[dict[str, str]]:
    """The published averages, as rows of the table, with that of their formats if they contradict it."""
    rows = []
    for row in read_published("scirepeval_averages").iter_rows(named=True):
        formats, average = {name: row[name] for name in WEIGHTS}, row["average"]
        of_formats = sum(weight * float(row[name].partition(" ")[0]) for name, weight in WEIGHTS.items())
        computed = of_formats / sum(WEIGHTS.values())
        if abs(float(average.partition(" ")[0]) - computed) > 0.1:  # both are rounded
            average += f" (its formats give {computed:.1f})"
        groups = {label: row[label] or "–" for label in GROUPS.values()}
        rows.append({**_referenced(row), **formats, "average": average, **groups, "values": "25"})
    return rows


def with_published(table: str, scores: pl.DataFrame, configuration: Configuration) -> pl.DataFrame:
    """One row per model, benchmark of the table's kind and mode, then the published rows. Empty without such a
    benchmark. Columns in which none of our models has a value are left out, and then published rows without any."""
    own = scores.filter(pl.col("benchmark").is_in(_benchmarks(table.partition("_")[0], configuration)))
    if own.is_empty():
        return pl.DataFrame(schema=["model"])
    order = names_in_order(configuration)
    rows = [row for part in own.partition_by("benchmark", "model") for row in _own_rows(part, COLUMNS[table])]
    others = read_published({"scirepeval": "scirepeval_tasks"}.get(table, table.removesuffix("_fields")))
    if table == "mdcr":
        others = others.filter(field="mean")
    if table == "mdcr_fields":
        others = others.pivot("field", index=["model", "reference"], values="MAP")
    columns = [name for name in COLUMNS[table] if any(row[name] != "–" for row in rows)]
    published = [{**_referenced(row), **{name: row.get(name) or "–" for name in columns}} for row in others.to_dicts()]
    comparable = [row for row in published if any(row[name] != "–" for name in columns)]
    all_rows = pl.DataFrame([*sorted(rows, key=lambda row: order.index(row["model"])), *comparable])
    return all_rows.select("model", "source", *columns)


def with_reported(scores: pl.DataFrame, reported: pl.DataFrame, configuration: Configuration) -> pl.DataFrame:
    """One row per model and benchmark, then one per baseline whose scores were reported; one column per task. The tasks
    are those with a reported score, by the metric that was reported. Empty if there are none."""
    if reported.is_empty():
        return pl.DataFrame(schema=["model"])
    labels = pl.format("{} {}", "mteb_task", pl.col("metric").map_elements(metric_in_words, return_dtype=pl.String))
    labelled = reported.with_columns(column=labels)
    asked = labelled.select("benchmark", "task", "metric", "column").unique()
    measured = scores.join(asked, on=["benchmark", "task", "metric"])
    ours = over_seeds(measured, ["model", "benchmark", "column"]).rename({"benchmark": "source"})
    revision = pl.col("mteb_revision").str.head(8).fill_null("")
    known = pl.format("{}: {} {}", pl.lit(REPORTED), "mteb_model", revision).str.strip_chars_end()
    source = pl.when(pl.col("mteb_model").is_null()).then(pl.lit(REPORTED)).otherwise(known)
    cell = pl.col("value").round(1).cast(pl.String)
    parts = filter(len, (ours, labelled.select("column", model="baseline", source=source, cell=cell)))
    wide = [of.pivot("column", index=["model", "source"], values="cell", aggregate_function="first") for of in parts]
    order = {name: place for place, name in enumerate(names_in_order(configuration))}
    benchmarks = {name: place for place, name in enumerate(configuration.benchmarks)}
    rows = pl.concat(wide, how="diagonal").to_dicts()
    rows.sort(key=lambda row: (row["source"] not in benchmarks, order[row["model"]], benchmarks.get(row["source"], 0)))
    return pl.DataFrame(rows).select("model", "source", *sorted(set(asked["column"]))).fill_null("–")


def _benchmarks(kind: str, configuration: Configuration) -> list[str]:
    return [name for name, entry in configuration.benchmarks.items() if entry.kind == kind]


def _referenced(row: Mapping[str, str]) -> dict[str, str]:
    return {"model": f"{row['model']} [{row['reference']}]", "source": PUBLISHED}


def _row_of_averages(part: pl.DataFrame) -> dict[str, str]:
    first = part.row(0, named=True)
    cells = {}
    for row in part.iter_rows(named=True):
        runs = "" if row["deviation"] is None else f" ({row['runs']})"
        cells[row["over"], row["average"]] = mean_cell(row["mean"], row["deviation"]) + runs
    [(found, expected)] = part.filter(over="all").select("values", "expected").rows() or [(0, 0)]
    return {
        "model": first["model"],
        "source": with_mode(first["benchmark"], first["mode"]),
        **{name: cells.get(("format", name), "–") for name in WEIGHTS},
        "average": cells.get(("all", "all"), "–"),
        **{label: cells.get(("group", name), "–") for name, label in GROUPS.items()},
        "values": str(found) if found in (0, expected) else f"{found} of {expected}",
    }


def _own_rows(part: pl.DataFrame, columns: Mapping[str, tuple[str | None, str]]) -> Iterator[dict[str, str]]:
    """A row for each mode of one model on one benchmark; rankings are the same in each."""
    first = part.row(0, named=True)
    for mode in sorted(set(part["mode"]) - {BOTH}) or [BOTH]:
        of_mode = part.filter(pl.col("mode").is_in([mode, BOTH]))
        row = {"model": first["model"], "source": with_mode(first["benchmark"], mode)}
        for name, (task, metric) in columns.items():
            found = of_mode.filter(pl.col("metric").is_in([metric, metric + WITH_FEW_SHOT]))
            found = found if task is None else found.filter(task=task)
            row[name] = "–" if found.is_empty() else over_seeds_of_one(found)
        yield row
