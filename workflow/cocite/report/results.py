"""The results that a configuration names, as tables.

Leftovers of other configurations in the same folder are not read.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from cocite.config.benchmark import SEARCH
from cocite.config.configuration import Configuration, recorded_configuration
from cocite.config.runs import mapped_runs, reported_on, scored_runs
from cocite.core.atomic import read_json
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import read_table
from cocite.core.tables.places import path_of

Provenance = Annotated[Path, typer.Option(help="Output of `cocite report provenance`.")]
Pairs = Annotated[str, typer.Option(help="The table of pairs of each graph that is made of them, as JSON.")]


def configuration_in(provenance: Mapping[str, Any]) -> Configuration:
    """The configuration of the run that has this provenance."""
    return recorded_configuration(provenance["configuration"])


def read(results: Path, table: str, **of: Any) -> pl.DataFrame:
    """A table; `of` gives the names in its path."""
    return pl.DataFrame(read_table(path_of(results, table, **of), table))


def read_each(results: Path, table: str, wildcard: str, names: Iterable[str]) -> dict[str, pl.DataFrame]:
    """A table of each entry with one of these names, which replace a wildcard in its path."""
    return {name: read(results, table, **{wildcard: name}) for name in names}


def read_scored(results: Path, configuration: Configuration, table: str) -> pl.DataFrame:
    """The scores, or the failures, of all models, seeds and baselines on all tasks of all benchmarks."""
    found = [
        read(results, table, benchmark=benchmark, suite=suite, model=model, seed=seed)
        for benchmark in configuration.benchmarks
        for suite, runs in scored_runs(configuration, benchmark).items()
        for model, _, seed in (run.rpartition("-") for run in runs)
    ]
    return pl.concat([empty_frame(table), *found], how="diagonal")


def read_by_citations(results: Path, configuration: Configuration) -> pl.DataFrame:
    """What every run finds in the whole corpus by how often papers are cited, on the benchmarks that search it."""
    table = "scores_by_citations"
    found = [
        read(results, table, benchmark=benchmark, model=model, seed=seed)
        for benchmark in configuration.benchmarks
        for run in scored_runs(configuration, benchmark).get(SEARCH, ())
        for model, _, seed in [run.rpartition("-")]
    ]
    return pl.concat([empty_frame(table), *found])


def read_by_year(results: Path, configuration: Configuration) -> pl.DataFrame:
    """The scores by year on all hold-outs by time."""
    names = [name for name, entry in configuration.benchmarks.items() if getattr(entry, "by_time", False)]
    found = read_each(results, "scores_by_year", "benchmark", names)
    return pl.concat([empty_frame("scores_by_year"), *found.values()])


def read_summary(results: Path, configuration: Configuration, table: str) -> pl.DataFrame:
    """The averages, or the comparisons of models, of all benchmarks."""
    found = read_each(results, table, "benchmark", configuration.benchmarks)
    return pl.concat([empty_frame(table), *found.values()])


def read_reported(results: Path, configuration: Configuration) -> pl.DataFrame:
    """The scores that others reported, on all benchmarks."""
    found = [
        read(results, "reported_scores", benchmark=benchmark, baseline=name)
        for benchmark in configuration.benchmarks
        for name in reported_on(configuration, benchmark)
    ]
    return pl.concat([empty_frame("reported_scores"), *found])


def read_mapped(results: Path, configuration: Configuration, table: str, name: str) -> dict[str, pl.DataFrame]:
    """The points, or the scores, of each model on a map."""
    runs = mapped_runs(configuration, configuration.maps[name].models)
    return {model: read(results, table, map=name, model=model, seed=seed) for model, seed in runs}


def empty_frame(table: str) -> pl.DataFrame:
    """A table without rows."""
    return pl.DataFrame(empty_schema(TABLES[table]).empty_table())


def read_curves(results: Path, configuration: Configuration) -> dict[str, pl.DataFrame]:
    """The training curves of each model, with the seed as a further column."""
    return {
        name: pl.concat(
            read(results, "training_curves", model=name, seed=seed).with_columns(seed=pl.lit(seed))
            for seed in entry.seeds
        )
        for name, entry in configuration.models.items()
    }


def read_precisions(results: Path, configuration: Configuration) -> dict[str, str]:
    """The precision that each model was trained in, as its trainings wrote it; several if seeds differ."""

    def precision(name: str, seed: int) -> str:
        path = results / f"encoder/{name}/seed-{seed}/settings.json"
        return str(read_json(path)["settings"]["precision"])

    return {
        name: " and ".join(dict.fromkeys(precision(name, seed) for seed in entry.seeds))
        for name, entry in configuration.models.items()
    }
