"""The tables that a folder of results holds now, opened for reading.

The views lie in memory, over the files that exist in the named folder, whether its run is finished or not. They do not
depend on its `cocite.duckdb`.
"""

import os
import shlex
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

import duckdb

from cocite.config.configuration import results_folder
from cocite.config.remaking import program
from cocite.config.stale import configuration_of, configured_in
from cocite.config.yaml_files import written_configuration
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.tables import TABLES, Table
from cocite.core.tables.files import checked_files
from cocite.core.tables.places import files_by_place
from cocite.core.tables.sql import as_text, rows_of

MEMORY = "2GB"


def results_of(results: Path, configfile: Path | None) -> Path:
    """The folder of the results: the one that is named, or that of a run with this configuration.

    Raises `InputError` where the folder cannot be read.
    """
    folder = results if configfile is None else results_folder(written_configuration(configfile))
    try:
        within = list(folder.iterdir())
    except FileNotFoundError:
        raise InputError(
            f"{folder} does not exist; start a run, or name the folder of its results with --results."
        ) from None
    except OSError as error:
        raise InputError(f"{folder} is no folder that can be read ({error.strerror}).") from None
    for path in within:
        if path.is_dir() and not os.access(path, os.R_OK | os.X_OK):
            report(f"Left out: {path}: its permissions do not let you read it.")
    return folder


@contextmanager
def open_results(results: Path, tables: Collection[str] | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Views over the tables of these names that have files, or over all, within a bounded memory.

    A file that cannot be read is left out and named on standard error. There is always a view `papers`, which is empty
    where the corpus has none yet. Raises `InputError` where reading fails later.
    """
    with (
        tempfile.TemporaryDirectory(prefix="cocite-") as spill,
        duckdb.connect(config={"memory_limit": MEMORY, "temp_directory": spill}) as database,
    ):
        _make_views(database, results, [TABLES[name] for name in TABLES if tables is None or name in tables])
        try:
            yield database
        except duckdb.Error as error:
            raise changed_files(results, error) from error


def changed_files(results: Path, error: duckdb.Error) -> InputError:
    """The error where a table could not be read that could be opened."""
    return InputError(
        f"{results}: a file is broken, or was replaced while it was read ({str(error).splitlines()[0]}); "
        f"`{checking_command(results)}` names what is broken."
    )


def _make_views(database: duckdb.DuckDBPyConnection, results: Path, tables: Iterable[Table]) -> None:
    configured = configured_in(configuration_of(results))
    for table in tables:
        made = False
        try:
            places = files_by_place(results, table, configured).items()
            rows = {place: kept for place, paths in places if (kept := _readable(paths, table.name))}
            if rows:
                database.execute(f"CREATE VIEW {table.name} AS {rows_of(table, rows, listed)}")
                made = True
        except (InputError, duckdb.Error) as error:
            report(left_out(table.name, error))
        if table.name == "papers" and not made:
            columns = ", ".join(f"NULL AS {name}" for name in table.columns)
            database.execute(f"CREATE TEMP VIEW papers AS SELECT {columns} WHERE false")


def listed(paths: Collection[Path]) -> str:
    """A list of files as SQL, with the characters of patterns escaped."""
    return f"[{', '.join(as_text(escape(str(path))) for path in paths)}]"


def left_out(table: str, error: Exception) -> str:
    """The message about a table that cannot be read now."""
    return f"Left out: table {table}, a file of which is broken or being replaced ({str(error).splitlines()[0]})"


def checking_command(results: Path) -> str:
    """The command that finds broken files."""
    return f"{program('cocite', Path.cwd())} check --results {shlex.quote(str(results))}"


def _readable(paths: Iterable[Path], table: str) -> list[Path]:
    """The readable files of a table; the others are reported."""
    kept: list[Path] = []
    for path in paths:
        try:
            kept += checked_files(path, table)
        except InputError as error:
            report(f"Left out: {error}")
    return kept
