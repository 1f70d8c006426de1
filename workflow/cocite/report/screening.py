"""Screening of reviews in the report: what was found by how much was read, and on which review by what."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib import ticker
from scipy.special import stdtrit

from cocite.config.benchmark import SMALL
from cocite.config.benchmarks.screening import FIRST_TENTH, FOUND_EARLY
from cocite.config.configuration import Configuration
from cocite.config.runs import names_in_order
from cocite.report.canvas import canvas, look, styles
from cocite.report.labels import over_seeds
from cocite.report.results import read_scored

SIZE = (3.4, 2.6)
"""Width and height of the axes, inches."""
SHARES = np.arange(2, 101, 2)
"""Percentages of the papers at which curves have a point."""
KEYS = ["benchmark", "task", "model"]


def read_screening(results: Path, configuration: Configuration) -> pl.DataFrame:
    """The outcomes of all that screened reviews; without a benchmark of reviews, there are none."""
    of = [name for name, entry in configuration.benchmarks.items() if entry.screens]
    return read_scored(results, configuration, "outcomes", benchmarks=of, suite=SMALL)


def by_review(found: pl.DataFrame, configuration: Configuration) -> pl.DataFrame:
    """A row for each benchmark, task and model: on each review, the recall after a tenth of the papers."""
    if found.is_empty():
        return pl.DataFrame(schema=[*KEYS, "metric"])
    cells = over_seeds(found.filter(metric=FIRST_TENTH), [*KEYS, "item"]).sort("item")
    rank = pl.col("model").replace_strict(names := names_in_order(configuration), range(len(names)))
    return cells.pivot("item", index=KEYS, values="cell", maintain_order=True).sort(*KEYS[:2], rank)


def curves(found: pl.DataFrame) -> pl.DataFrame:
    """The share of included papers found by the share screened, with its 95% interval (Student's t) over reviews."""
    rows = list[Any]()
    for key, of_model in found.filter(metric=FOUND_EARLY).group_by(KEYS, maintain_order=True):
        reviews = []
        for _, of_review in of_model.group_by("item", maintain_order=True):
            places, papers = of_review["predicted"].explode().cast(pl.Int64), int(of_review["expected"][0][0])
            reviews.append(100 * np.mean(places.to_numpy()[:, None] <= papers * SHARES / 100, axis=0))
        number, mean = len(reviews), np.mean(reviews, axis=0)
        reach = stdtrit(number - 1, 0.975) * np.std(reviews, axis=0, ddof=1) / number**0.5 if number > 1 else 0 * mean
        points = (each.round(2).tolist() for each in (mean, mean - reach, mean + reach))
        rows += [(*key, *point) for point in zip(SHARES.tolist(), *points, strict=True)]
    return pl.DataFrame(rows, schema=[*KEYS, "screened", "recall", "low", "high"], orient="row")


def draw_screening(found: pl.DataFrame, output: Path) -> None:
    """A panel for each task, with a curve for each model and its interval."""
    parts = curves(found).partition_by(KEYS[:2], as_dict=True)
    entries = styles(found["model"].unique(maintain_order=True).to_list(), markers=False)
    with canvas(output, panels=max(len(parts), 1), size=SIZE, entries=entries) as axes:
        for panel, (axis, ((_, task), part)) in enumerate(zip(axes, parts.items(), strict=False)):
            for (model,), curve in part.partition_by("model", as_dict=True).items():
                line = look(entries, str(model), panel)
                axis.plot(curve["screened"], curve["recall"], **line)
                band = {"color": line["color"], "gid": f"{line['gid']}-band"}
                axis.fill_between(curve["screened"], curve["low"], curve["high"], alpha=0.12, linewidth=0, **band)
            axis.set(xlabel="papers screened", title=f"included papers found, {task}", xlim=(0, 100), ylim=(0, 100))
            for each in (axis.xaxis, axis.yaxis):
                each.set_major_formatter(ticker.PercentFormatter())
