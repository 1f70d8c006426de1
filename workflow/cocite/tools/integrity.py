"""Whether the tables of a run are whole: every file exists, and is readable to its end with matching checksums."""

import shlex
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import typer

from cocite.config.configuration import configure
from cocite.config.started import is_copy, read_start, remaking_command
from cocite.config.yaml_files import written_configuration
from cocite.core.atomic import remove
from cocite.core.errors import InputError
from cocite.core.tables import TABLES, files
from cocite.core.tables.places import files_by_place
from cocite.plan.recorded import configuration_of, configured_in
from cocite.tools.run_progress import read_progress

READERS = ("pyarrow", "duckdb", "polars")
"""The packages that read tables."""


def check_tables(folder: Path, configfile: Path | None, *, remove: bool) -> bool:
    """Print what is broken or gone; delete what is broken if asked to. Return whether anything is."""
    count, broken = 0, list[Path]()
    for path, fault in faults(folder):
        count += 1
        if fault:
            broken.append(path)
            typer.echo(f"{path}: {fault}")
    gone = list[Path]()
    if start := read_start(folder):
        outputs = (name for job in read_progress(start).jobs("done") for name in job.outputs)
        gone = [path for name in outputs if not (path := folder / Path(name).relative_to(start.results)).exists()]
    for path in gone:
        typer.echo(f"{path}: gone, though the step that makes it was done.")
    if not count and not gone:
        raise InputError(f"{folder} holds no tables; name the folder of the results with --results.")
    typer.echo(f"{count:,} files, {len(broken)} of them broken" + (f"; {len(gone)} more are gone." if gone else "."))
    if broken and remove:
        _remove(folder, broken, configfile)
    elif broken:
        typer.echo("--remove deletes them.")
    if gone:
        _print_remaking(folder, gone, configfile)
    if is_copy(folder):
        typer.echo(f"{folder} is a copy: which files are gone from it is not known.")
    return bool(broken or gone)


def faults(results: Path) -> Iterator[tuple[Path, str]]:
    """Each file of a table under `results` with its fault; the fault is empty where there is none."""
    for path, table in _tables(results):
        yield path, _fault(path, table)


def fault_behind(error: Exception) -> str | None:
    """The message for an error of a reader of Parquet if a table that this process opened is broken, by reading all of
    them once more; readers do not name the file. If none is broken, the error gets a note with all."""
    reader = type(error).__module__.partition(".")[0].lstrip("_")
    without_file = isinstance(error, OSError) and error.filename is None
    if reader not in READERS and not without_file and not isinstance(error, UnicodeDecodeError):
        return None
    for path, table in [*files.OPENED.items()]:
        if path.exists() and (fault := _fault(path, table)):
            return f"{path}: {fault}. `cocite check --remove` deletes it and says what makes it again."
    if files.OPENED:
        error.add_note(f"Tables that were opened: {', '.join(map(str, files.OPENED))}.")
    return None


def _remove(results: Path, broken: Sequence[Path], configfile: Path | None) -> None:
    """Delete the outputs that the files are or are shards of, and print the command that makes them again."""

    def output_of(path: Path) -> Path:  # Snakemake marks folders that it made
        return path.parent if (path.parent / ".snakemake_timestamp").exists() else path

    config = configure(written_configuration(configfile)) if configfile else configuration_of(results)
    outputs = list(dict.fromkeys(map(output_of, broken)))
    wanted = {output_of(path) for path, _ in _tables(results, config)}
    for output in outputs:
        try:
            remove(output)
        except OSError as error:
            raise InputError(f"{output} cannot be deleted ({error.strerror}).") from None
    typer.echo("Deleted.")
    targets = [output for output in outputs if output in wanted]
    if len(targets) < len(outputs):
        typer.echo(f"{len(outputs) - len(targets)} of them the configuration does not have any more.")
    if targets:
        _print_remaking(results, targets, configfile)


def _print_remaking(results: Path, outputs: Sequence[Path], configfile: Path | None) -> None:
    """Print the command that makes files again, as Snakemake ignores a missing file that no unfinished job needs."""
    targets = [shlex.quote(str(output.relative_to(results))) for output in outputs]
    try:
        command = remaking_command(results, targets, configfile)
        typer.echo(f"This makes them again, and the next run what depends on them:\n    {command}")
    except InputError as error:
        typer.echo(str(error))


def _tables(results: Path, config: Any = None) -> Iterator[tuple[Path, str]]:
    """The files of all tables, or of those that a configuration has, each with the table's name."""
    for table in TABLES.values():
        for paths in files_by_place(results, table, configured_in(config)).values():
            yield from ((path, table.name) for path in paths)


def _fault(path: Path, table: str) -> str:
    try:
        files.checked_files(path, table)
        with files.open_parquet(path) as file:
            # One column of a row group at a time, so that reading needs less memory than writing did.
            for number, column in product(range(file.num_row_groups), file.schema_arrow.names):
                found = file.read_row_group(number, columns=[column], use_threads=False).num_rows
                counted = file.metadata.row_group(number).num_rows
                if found != counted:
                    return f"{found:,} rows are in the pages of column {column}, and {counted:,} in the footer"
    except InputError as error:
        return str(error).removeprefix(f"{path}: ").partition(" `cocite check")[0]
    except (pa.ArrowException, OSError, ValueError) as error:
        return f"not a readable Parquet file ({error})"
    return ""
