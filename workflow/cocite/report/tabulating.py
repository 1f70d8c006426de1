"""All tables of the report that follow from the results, by name: as CSV files for people, and for the page."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from cocite.config.terms import generated_benchmarks
from cocite.report import compared_models, score_tables, tables
from cocite.report import results as read
from cocite.report.published_tables import beside_published
from cocite.report.run_tables import trained_models
from cocite.report.summary import best_scores
from cocite.report.triplet_tables import band_quality, triplet_sets
from cocite.tables.files import atomic_path


def tabulate(
    results: Path, provenance: Mapping[str, Any], scores: pl.DataFrame, comparisons: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """The tables of a finished run; `scores` and `comparisons` are those of all benchmarks."""
    configuration = provenance["configuration"]
    averages = read.read_summary(results, configuration, "averages")
    return {
        "best": best_scores(scores, averages, comparisons, configuration),
        "trained": trained_models(configuration),
        **_scores(results, scores, configuration),
        **_beside_published(scores, averages, _without_generated(provenance)),
        **_inputs(results, configuration),
    }


def write_tables(made: Mapping[str, pl.DataFrame], output: Path) -> None:
    """Write the tables into a folder, as CSV."""
    with atomic_path(output) as folder:
        folder.mkdir()
        for name, table in made.items():
            table.write_csv(folder / f"{name}.csv")


def _scores(results: Path, scores: pl.DataFrame, configuration: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """What the models reached, as this run scored them."""
    curves = read.read_curves(results, configuration)
    of_tasks = score_tables.tasks(scores, configuration)
    return {
        "failures": score_tables.failures(read.read_scored(results, configuration, "failures")),
        "models": tables.models_by_format(scores, configuration),
        **{f"tasks_{benchmark}": table for benchmark, table in of_tasks.items()},
        "incomplete": score_tables.incomplete(scores),
        "losses": compared_models.losses(scores, curves, configuration),
        "difficulties": compared_models.difficulties(scores, curves, configuration),
    }


def _beside_published(
    scores: pl.DataFrame, averages: pl.DataFrame, configuration: Mapping[str, Any]
) -> dict[str, pl.DataFrame]:
    """The scores on benchmarks of the literature, with what was published of them."""
    formats = score_tables.scirepeval(averages, configuration)
    return {
        "scirepeval_formats": formats.drop(score_tables.GROUPS.values(), strict=False),
        "scirepeval_groups": formats.drop(score_tables.WEIGHTS, strict=False),
        "scirepeval_tasks": beside_published("scirepeval", scores, configuration),
        "scidocs": beside_published("scidocs", scores, configuration),
        "mdcr": beside_published("mdcr", scores, configuration),
    }


def _inputs(results: Path, configuration: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """What the models were made from, and what was checked and left out on the way."""
    per_query = read.read_sets(results, configuration, "triplets_per_query")
    checks = read.read_sets(results, configuration, "triplet_checks")
    return {
        "graph_embeddings": tables.graph_embeddings(read.read_graph_scores(results, configuration), configuration),
        "searches": tables.searches(results, configuration),
        "band_quality": band_quality(read.read_bands(results, configuration)),
        "triplets": triplet_sets(per_query, checks),
        "leaks": tables.leaks(results),
        "omissions": tables.omissions(results, configuration),
    }


def _without_generated(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration without benchmarks whose documents are generated: nothing was published of those."""
    configuration, generated = provenance["configuration"], generated_benchmarks(provenance)
    kept = {name: entry for name, entry in configuration["benchmarks"].items() if name not in generated}
    return {**configuration, "benchmarks": kept}
