"""Pages of runs that never ran, written by the code that writes those of real ones."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
from tests.configurations import recorded
from tests.report.made_run import (
    comparisons_of,
    curves_of,
    provenance_of,
    scores_of,
    task_comparisons_of,
)

from cocite.config.benchmarks import sides_of
from cocite.config.configuration import Configuration
from cocite.config.graphs import INTENT_CLASSES
from cocite.config.runs import mapped_runs
from cocite.core.randomness import generator
from cocite.report import scores as of_models
from cocite.report.figures import (
    draw_aspects,
    draw_band_quality,
    draw_link_prediction,
    draw_map,
    draw_pair_counts,
    draw_spaces,
    draw_validation_curves,
)
from cocite.report.inputs import trained_models
from cocite.report.labels import loss_of
from cocite.report.map_page import MapData, agreement_table
from cocite.report.page import write_page
from cocite.report.summary import costs_of_rules, facts
from cocite.report.trade import draw_trade
from cocite.report.verdict import differences, judge, questions_over_tasks

FIELDS = ["physics"] * 20 + ["biology"] * 10
TITLES = [f"Paper {number} & more" for number in range(30)]
EMPTY = ("reported", "scirepeval_formats", "scirepeval_groups", "scirepeval_tasks", "scidocs", "mdcr", "mdcr_fields")
EMPTY += ("searches", "triplets", "objectives", "ablations", "failures", "empty_fields", "popularity")
COSTS = pl.DataFrame(
    [("train_encoder", 10, 600.0, 90.0, 500.0, 900.0), ("ingest", 2, 36_061.0, 36_000.0, 70.0, 300.0)],
    schema=["rule", "jobs", "seconds", "longest_seconds", "cpu_seconds", "peak_mb"],
    orient="row",
)
CORPUS = {"papers": 3000, "papers with text": 2800, "citations": 41_572}
COUNTS = {"label": "field", "papers": 30, "missing": 0, "labelled": 30, "classes": 2, "clusters": 1, "unclustered": 5}
AGREEMENT = {"eps": 0.5, "homogeneity": 0.25, "completeness": 0.5, "v_measure": 1 / 3}
BANDS = pl.DataFrame({"last_rank": [5, 10, 25], "papers": [10, 10, 5], "cocited": [9, 7, 2], "cited": [2, 1, 0]})
METRICS = ("loss", "mean_rank", "mrr", "hits_at_1", "hits_at_10", "hits_at_50", "auc")
LINKS = pl.DataFrame(
    [
        {"epoch": epoch, "metric": metric, "filtered": filtered, "value": epoch / 4 + filtered, "edges": 10}
        for epoch, metric, filtered in product((1, 2, 3), METRICS, (False, True))
    ]
)
MAP_SCORES = {"model-00": pl.DataFrame([COUNTS | AGREEMENT])}


SMALL: dict[str, Any] = {"models": 5, "seeds": 2, "kinds": ("holdout", "scirepeval", "s2and")}


def page_of(
    configuration: Mapping[str, Any], folder: Path, maps: Mapping[str, MapData] | None = None, **provenance: Any
) -> Path:
    """The page of a run with this configuration, on made-up scores."""
    known = provenance_of(configuration, **provenance)
    configuration = recorded(configuration)
    scores = scores_of(configuration)
    comparisons, curves = comparisons_of(scores), curves_of(configuration)
    compared = differences(comparisons, configuration)
    compared["questions"] += questions_over_tasks(task_comparisons_of(comparisons), compared["models"], configuration)
    statistics = pl.DataFrame({"measure": list(CORPUS), "value": list(CORPUS.values())})
    write_page(
        boards=judge(scores, comparisons, configuration),
        tables={
            **{name: pl.DataFrame(schema=["model"]) for name in EMPTY},
            **_score_tables(configuration, scores, curves),
            **_run_tables(),
            "trained": trained_models(configuration),
            **{f"map_{name}": agreement_table(name, MAP_SCORES, known) for name in configuration.maps},
            "corpus": statistics.with_columns(pl.col("value").cast(pl.String)),
        },
        figures=figures_of(configuration, folder, curves, scores),
        maps={name: map_of(configuration) for name in configuration.maps} if maps is None else maps,
        differences=compared,
        popularity=["On h, citations alone have a MAP of 50.0 (cite)."],
        facts=facts(known, statistics, COSTS, 754.0, {}),
        provenance=known,
        output=folder / "index.html",
    )
    return folder / "index.html"


def figures_of(configuration: Configuration, folder: Path, curves: Any, scores: pl.DataFrame) -> dict[str, Path]:
    """Figures of all kinds; those of both kinds of queries and of spaces if a run has such."""
    names = ["validation_curves", "pair_counts", "link_prediction", "band_quality", "triplets", "aspects"]
    paths = {name: folder / f"{name}.svg" for name in names}
    losses = {name: loss_of(entry) for name, entry in configuration.models.items()}
    draw_validation_curves(curves, losses, paths["validation_curves"])
    counts = pl.DataFrame({"graph": ["g"] * 3, "count": [1, 2, 9], "pairs": [90, 20, 1]})
    draw_pair_counts(counts, {"g": "cocitations"}, paths["pair_counts"])
    draw_link_prediction({"dot": LINKS}, paths["link_prediction"])
    for name in ("band_quality", "triplets"):
        draw_band_quality({"dot": BANDS}, paths[name])
    intents = pl.DataFrame({"intent": INTENT_CLASSES, "citations": [2, 1, 0, 2, 3]})
    parts = ["background", "result"]
    served = pl.DataFrame({"check": ["served"] * 2, "part": parts, "found": [9, 5], "among": [10, 10]})
    draw_aspects({"g": intents}, {"by-aspect": served}, paths["aspects"])
    for name in configuration.maps:
        paths[f"map_{name}"] = folder / f"map_{name}.svg"
        draw_map(map_of(configuration), 1, paths[f"map_{name}"])
    if all(sides_of(configuration)):
        paths["trade"] = folder / "trade.svg"
        draw_trade(scores, configuration, paths["trade"])
    if any(entry.spaces for entry in configuration.models.values()):
        paths["spaces"] = folder / "spaces.svg"
        draw_spaces(scores, configuration, paths["spaces"])
    return paths


def map_of(configuration: Configuration) -> MapData:
    """Thirty papers, as each model places them."""
    draw = generator(1, "map")
    names = [name for name, _ in mapped_runs(configuration)]
    return MapData(
        titles=TITLES,
        years=[None, *range(1990, 2019)],
        classes={"field": FIELDS},
        layouts={name: draw.normal(size=(30, 2)) for name in names},
        clusters={name: [0] * 25 + [None] * 5 for name in names},
    )


def _score_tables(configuration: Configuration, scores, curves) -> dict[str, pl.DataFrame]:
    of_tasks = of_models.tasks(scores, configuration)
    return {f"tasks_{name}": table for name, table in of_tasks.items()} | {
        "models": of_models.models_by_format(scores, configuration),
        "incomplete": of_models.incomplete(scores),
        "losses": of_models.losses(scores, curves, configuration),
        "difficulties": of_models.difficulties(scores, curves, configuration),
    }


def _run_tables() -> dict[str, pl.DataFrame]:
    numbers = {"rows": ["12,000"], "papers looked for": ["200"], "papers found": ["0"]}
    beside = {"published result": ["SPECTERCL"], "model": ["specter-cl"], "SciDocs": ["81.14"], "SciDocs, ours": ["–"]}
    return {
        "sciaspect": pl.DataFrame(beside),
        "intents": pl.DataFrame({"graph": ["g"], "citations": ["8"], "background": ["25.0% (2)"]}),
        "graph_embeddings": pl.DataFrame(
            {"embedding": ["dot"], "graph": ["g"], "held-out edges": ["9"], "negatives": ["raw"], "MRR": ["0.5"]}
        ),
        "band_quality": pl.DataFrame({"embedding": ["dot"], "ranks 1–5": ["90.0"]}),
        "leaks": pl.DataFrame({"table": ["graph/g/edges"], "column": ["source"], **numbers}),
        "leaks_by_text": pl.DataFrame({"looked for": ["documents of beir"], "by title": ["3"]}),
        "omissions": pl.DataFrame({"stage": ["corpus"], "step": ["ingest"], "reason": ["no id"], "count": [1234]}),
        "costs": costs_of_rules(COSTS, 3700.0),
    }
