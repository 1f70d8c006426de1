"""The DuckDB file of some results, opened for reading."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from cocite.configuration import results_folder, written_configuration
from cocite.errors import InputError

FILE = "cocite.duckdb"
MEMORY = "2GB"


def results_of(results: Path, configfile: Path | None) -> Path:
    """The folder of the results: the one that is named, or that of a run with this configuration."""
    if configfile is None:
        return results
    return results_folder(written_configuration(configfile))


@contextmanager
def open_results(results: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The views over all tables, read-only, within a bounded memory.

    Raises `InputError` where there is no such file, where it is broken, or where its views lead to files that are gone.
    """
    path = results / FILE
    if not path.is_file():
        raise InputError(f"{path} does not exist; finish a run, or name the folder of its results with --results.")
    try:
        with duckdb.connect(path, read_only=True, config={"memory_limit": MEMORY}) as database:
            yield database
    except duckdb.IOException as error:
        raise InputError(
            f"{path}: cannot be read, or leads to files that cannot ({str(error).splitlines()[0]}); "
            f"`{views_command(results)}` writes it anew."
        ) from error


def views_command(results: Path) -> str:
    """The command that writes the views over what there is now."""
    return shlex.join(["cocite", "report", "views", "--results", str(results), "--output", str(results / FILE)])
