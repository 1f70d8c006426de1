"""The results that a configuration names, as tables, and `cocite.duckdb`, which has a view over every table.

Leftovers of other configurations in the same folder are neither read nor viewed.

A view unites all files of a table. The names in a file's path (the graph, the model, the seed) become columns in front;
buckets do not. The views name files relative to the folder of the DuckDB file, and find that folder when they are read,
so that results can be copied, moved and renamed: a copy shows its own tables.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import duckdb
import polars as pl
import typer

from cocite.config.benchmark import SEARCH
from cocite.config.configuration import Configuration, recorded_configuration
from cocite.config.runs import mapped_runs, reported_on, scored_runs
from cocite.core.atomic import atomic_path, read_json
from cocite.core.options import Output, Results
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import read_table
from cocite.core.tables.places import as_text, files_by_place, path_of, rows_of
from cocite.plan.recorded import configuration_of, configured_in

Provenance = Annotated[Path, typer.Option(help="What `cocite report provenance` wrote.")]
Pairs = Annotated[str, typer.Option(help="The table of pairs of each graph that is made of them, as JSON.")]

FORMAT = "v1.0.0"
"""The oldest DuckDB format, which every later version reads: a reader's DuckDB may be older than the pipeline's."""
SCHEMA = "cocite_folder"
VARIABLE = "results"
"""The variable that a session sets to the folder of the results if it attaches the file instead of opening it."""

# A table function takes no subquery, so the path of the attached file is out of reach. DuckDB spills to a folder beside
# the file that a session opens; the setting that names it is the only constant with the place of that file.
_HELPERS = f"""
CREATE SCHEMA {SCHEMA};
CREATE MACRO {SCHEMA}.path() AS CASE
    WHEN getvariable('{VARIABLE}') IS NOT NULL THEN getvariable('{VARIABLE}')
    WHEN current_setting('temp_directory') NOT LIKE '%_.tmp'
    THEN error('These views are those of a folder of results, and do not know where it lies: open the file by itself, '
        || 'without a temp_directory of your own, or SET VARIABLE {VARIABLE} = the path of its folder.')
    WHEN parse_dirpath(current_setting('temp_directory')) = '' THEN '.'
    ELSE parse_dirpath(current_setting('temp_directory'))
END;
CREATE MACRO {SCHEMA}.files(names) AS list_transform(
    names, lambda name: regexp_replace({SCHEMA}.path() || '/' || name, '([*?[])', '[\\1]', 'g')
);
CREATE MACRO {SCHEMA}.is_own() AS (
    SELECT CASE
        WHEN count(*) > 1
        THEN error('Two folders of results are attached, and the views of one would show the files of the other: '
            || 'open each by itself.')
        WHEN getvariable('{VARIABLE}') IS NULL AND bool_or(NOT contains(
            concat(path, '.tmp'), regexp_replace(current_setting('temp_directory'), '^.*\\.\\.?/', '')
        ))
        THEN error('These views are attached to another database, and would show the files beside that one: '
            || 'SET VARIABLE {VARIABLE} = the path of their own folder.')
        ELSE true
    END
    FROM duckdb_schemas() JOIN duckdb_databases() USING (database_name) WHERE schema_name = '{SCHEMA}'
);
"""


def configuration_in(provenance: Mapping[str, Any]) -> Configuration:
    """The configuration of the run that has this provenance."""
    return recorded_configuration(provenance["configuration"])


def read(results: Path, table: str, **of: Any) -> pl.DataFrame:
    """A table; `of` holds the names in its path."""
    return pl.DataFrame(read_table(path_of(results, table, **of), table))


def read_each(results: Path, table: str, wildcard: str, names: Iterable[str]) -> dict[str, pl.DataFrame]:
    """A table of each entry with one of these names, which stand in its path at a wildcard."""
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


def write_views(results: Results, output: Output) -> None:
    """Write a DuckDB file with a view over every table that has files of entries of the last run's configuration."""

    def beside(paths: Iterable[Path]) -> str:
        names = (os.path.relpath(path, output.parent) for path in paths)
        return f"{SCHEMA}.files([{', '.join(map(as_text, names))}])"

    configured = configured_in(configuration_of(results))
    with (
        atomic_path(output) as temporary,
        duckdb.connect(temporary, config={"storage_compatibility_version": FORMAT}) as database,
    ):
        database.execute(_HELPERS)
        for table in TABLES.values():
            if files := files_by_place(results, table, configured):
                rows = f"FROM ({rows_of(table, files, beside)}) WHERE {SCHEMA}.is_own()"
                database.execute(f"CREATE VIEW {table.name} AS {rows}")
                database.execute(f"COMMENT ON VIEW {table.name} IS {as_text(table.description)}")
