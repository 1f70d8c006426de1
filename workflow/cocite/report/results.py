"""The results that a configuration names, as tables; leftovers of other configurations are not read."""

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
    places = (
        {"benchmark": benchmark, "suite": suite, "model": model, "seed": seed}
        for benchmark in configuration.benchmarks
        for suite, runs in scored_runs(configuration, benchmark).items()
        for model, _, seed in (run.rpartition("-") for run in runs)
    )
    return _united(results, table, places)


def read_by_citations(results: Path, configuration: Configuration) -> pl.DataFrame:
    """What every run finds in the whole corpus by how often papers are cited, on the benchmarks that search it."""
    places = (
        {"benchmark": benchmark, "model": model, "seed": seed}
        for benchmark in configuration.benchmarks
        for run in scored_runs(configuration, benchmark).get(SEARCH, ())
        for model, _, seed in [run.rpartition("-")]
    )
    return _united(results, "scores_by_citations", places)


def read_by_year(results: Path, configuration: Configuration) -> pl.DataFrame:
    """The scores by year on all hold-outs by time."""
    benchmarks = configuration.benchmarks.items()
    places = ({"benchmark": name} for name, entry in benchmarks if getattr(entry, "by_time", False))
    return _united(results, "scores_by_year", places)


def read_summary(results: Path, configuration: Configuration, table: str) -> pl.DataFrame:
    """The averages, or the comparisons of models, of all benchmarks."""
    return _united(results, table, ({"benchmark": name} for name in configuration.benchmarks))


def read_reported(results: Path, configuration: Configuration) -> pl.DataFrame:
    """The scores that others reported, on all benchmarks."""
    places = (
        {"benchmark": benchmark, "baseline": name}
        for benchmark in configuration.benchmarks
        for name in reported_on(configuration, benchmark)
    )
    return _united(results, "reported_scores", places)


def read_mapped(results: Path, configuration: Configuration, table: str, name: str) -> dict[str, pl.DataFrame]:
    """The points, or the scores, of each model on a map."""
    runs = mapped_runs(configuration, configuration.maps[name].models)
    return {model: read(results, table, map=name, model=model, seed=seed) for model, seed in runs}


def empty_frame(table: str) -> pl.DataFrame:
    """A table without rows."""
    return pl.DataFrame(empty_schema(TABLES[table]).empty_table())


def _united(results: Path, table: str, places: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    return pl.concat([empty_frame(table), *(read(results, table, **of) for of in places)], how="diagonal")


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
    precisions = {}
    for name, entry in configuration.models.items():
        paths = [results / f"encoder/{name}/seed-{seed}/settings.json" for seed in entry.seeds]
        precisions[name] = " and ".join(dict.fromkeys(read_json(path)["settings"]["precision"] for path in paths))
    return precisions
