"""The results that a configuration names, as tables; leftovers of other configurations are not read."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

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


def read_scored(
    results: Path,
    configuration: Configuration,
    table: str,
    *,
    benchmarks: Collection[str] | None = None,
    suite: str | None = None,
) -> pl.DataFrame:
    """The scores, failures and so on of all models, seeds and baselines on all benchmarks and suites, or on these."""
    places = (
        {"benchmark": benchmark, "suite": of, "model": model, "seed": seed}
        for benchmark in configuration.benchmarks
        if benchmarks is None or benchmark in benchmarks
        for of, runs in scored_runs(configuration, benchmark).items()
        if suite in (None, of)
        for model, _, seed in (run.rpartition("-") for run in runs)
    )
    return _united(results, table, places)


def read_summary(results: Path, benchmarks: Iterable[str], table: str) -> pl.DataFrame:
    """The averages, the comparisons of models, or the scores by year, of benchmarks."""
    return _united(results, table, ({"benchmark": name} for name in benchmarks))


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
    curves = {}
    for name, entry in configuration.models.items():
        of_seeds = {seed: read(results, "training_curves", model=name, seed=seed) for seed in entry.seeds}
        curves[name] = pl.concat(curve.with_columns(seed=pl.lit(seed)) for seed, curve in of_seeds.items())
    return curves


def read_precisions(results: Path, configuration: Configuration) -> dict[str, str]:
    """The precision that each model was trained in, as its trainings wrote it; several if seeds differ."""
    precisions = {}
    for name, entry in configuration.models.items():
        paths = [results / f"encoder/{name}/seed-{seed}/settings.json" for seed in entry.seeds]
        precisions[name] = " and ".join(dict.fromkeys(read_json(path)["settings"]["precision"] for path in paths))
    return precisions
