"""The tables that a folder of results holds now, opened for reading.

The views are in memory, over the files that exist in the folder, whether its run is finished or not.
"""

import os
import shlex
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from glob import escape
from pathlib import Path

import duckdb

from cocite.config.configuration import results_folder
from cocite.config.started import program
from cocite.config.yaml_files import written_configuration
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.tables import TABLES, Table
from cocite.core.tables.files import checked_files
from cocite.core.tables.places import Place, as_text, files_by_place, rows_of
from cocite.plan.recorded import configuration_of, configured_in

MEMORY = "2GB"


def results_of(results: Path, configfile: Path | None) -> Path:
    """The folder of the results: the one that is named, or that of a run with this configuration.

    Raises `InputError` if the folder cannot be read.
    """
    folder = results if configfile is None else results_folder(written_configuration(configfile))
    try:
        within = list(folder.iterdir())
    except FileNotFoundError:
        raise InputError(f"{folder} does not exist; start a run, or name other results with --results.") from None
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
    if the corpus has none yet. Raises `InputError` if reading fails later.
    """
    configured = configured_in(configuration_of(results))
    with (
        tempfile.TemporaryDirectory(prefix="cocite-") as spill,
        duckdb.connect(config={"memory_limit": MEMORY, "temp_directory": spill}) as database,
    ):
        for table in TABLES.values():
            if tables is None or table.name in tables:
                _make_view(database, table, files_by_place(results, table, configured))
        try:
            yield database
        except duckdb.Error as error:
            raise changed_files(results, error) from error


def viewed_tables(db: duckdb.DuckDBPyConnection) -> list[str]:
    """The names of the tables that have a view, in the order of the stages."""
    views = db.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal AND NOT temporary").fetchall()
    return [name for name in TABLES if (name,) in views]


def changed_files(results: Path, error: duckdb.Error) -> InputError:
    """The error if a table could be opened and not read."""
    return InputError(
        f"{results}: a file is broken, or was replaced while it was read ({str(error).splitlines()[0]}); "
        f"`{checking_command(results)}` names what is broken."
    )


def _make_view(database: duckdb.DuckDBPyConnection, table: Table, places: Mapping[Place, list[Path]]) -> None:
    def listed(paths: Collection[Path]) -> str:
        return f"[{', '.join(as_text(escape(str(path))) for path in paths)}]"

    try:
        rows = {place: kept for place, paths in places.items() if (kept := _readable(paths, table.name))}
        if rows:
            database.execute(f"CREATE VIEW {table.name} AS {rows_of(table, rows, listed)}")
            return
    except (InputError, duckdb.Error) as error:
        report(left_out(table.name, error))
    if table.name == "papers":
        columns = ", ".join(f"NULL AS {name}" for name in table.columns)
        database.execute(f"CREATE TEMP VIEW papers AS SELECT {columns} WHERE false")


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
