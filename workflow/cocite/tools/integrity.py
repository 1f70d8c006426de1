"""`cocite status`: the progress of a run. `cocite check`: whether its tables are whole.

Every file has to exist and to be readable to its end, with matching checksums. Without this check, a file that a disk
or a copy damaged is noticed by the next step that reads it, or by nobody if the damage still looks like numbers.
"""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from cocite.core.atomic import remove
from cocite.core.errors import InputError
from cocite.core.options import ConfigFile, Results

app = typer.Typer()
READERS = ("pyarrow", "duckdb", "polars")
"""The packages that read tables."""


@app.command()
def status(results: Results = Path("results"), configfile: ConfigFile = None) -> None:
    """Show how far a run is: what is done, running and failed, and how long it will still take."""
    from cocite.config.configuration import results_folder
    from cocite.config.started import is_copy, read_start, record_of
    from cocite.config.yaml_files import written_configuration
    from cocite.core.errors import printable
    from cocite.tools.run_progress import described, read_progress

    folder = results_folder(written_configuration(configfile)) if configfile else results
    start = read_start(folder)
    if start is None and is_copy(folder):
        made = record_of(folder)
        raise InputError(
            f"{folder} was copied or moved from {made.path(made.results)}, where its run was started on {made.host}; "
            "`cocite status` tells there how far that run is, and `cocite check` whether the tables here are whole."
        )
    if start is None:
        raise InputError(f"No run has been started in {folder}; start one, or name the results of one with --results.")
    for line in described(read_progress(start), folder):
        typer.echo(printable(line))


@app.command()
def check(
    results: Results = Path("results"),
    configfile: ConfigFile = None,
    remove: Annotated[bool, typer.Option(help="Delete what is broken, and print what makes it again.")] = False,
) -> None:
    """Read all tables to their ends and name the files that are broken or gone; the status is then 1."""
    from cocite.config.configuration import results_folder
    from cocite.config.yaml_files import written_configuration
    from cocite.core.locked import locked_results

    folder = results_folder(written_configuration(configfile)) if configfile else results
    with locked_results(folder) if remove and folder.is_dir() else nullcontext():
        _check(folder, configfile, remove=remove)


def _check(folder: Path, configfile: Path | None, *, remove: bool) -> NoReturn:
    """Print what is broken or gone, delete what is broken if asked to, and exit with the status of `check`."""
    from cocite.config.started import is_copy

    files, broken = 0, list[Path]()
    for path, fault in faults(folder):
        files += 1
        if fault:
            broken.append(path)
            typer.echo(f"{path}: {fault}")
    gone = list(missing(folder))
    for path in gone:
        typer.echo(f"{path}: gone, though the step that makes it was done.")
    if not files and not gone:
        raise InputError(f"{folder} holds no tables; name the folder of the results with --results.")
    typer.echo(f"{files:,} files, {len(broken)} of them broken" + (f"; {len(gone)} more are gone." if gone else "."))
    if broken and remove:
        _remove(folder, broken, configfile)
    elif broken:
        typer.echo("--remove deletes them.")
    if gone:
        _print_remaking(folder, gone, configfile)
    if is_copy(folder):
        typer.echo(f"{folder} is a copy: which files are gone from it is not known.")
    raise typer.Exit(bool(broken or gone))


def missing(results: Path) -> Iterator[Path]:
    """The outputs of the finished steps of the last run that do not exist."""
    from cocite.config.started import read_start
    from cocite.tools.run_progress import read_progress

    start = read_start(results)
    if start is None:
        return
    for job in read_progress(start).jobs("done"):
        paths = (results / Path(name).relative_to(start.results) for name in job.outputs)
        yield from (path for path in paths if not path.exists())


def faults(results: Path) -> Iterator[tuple[Path, str]]:
    """Each file of a table under `results` with its fault; the fault is empty where there is none."""
    for path, table in _tables(results):
        yield path, _fault(path, table)


def fault_behind(error: Exception) -> str | None:
    """The message for an error of a reader of Parquet if a table that this process opened is broken; None otherwise.

    Readers do not name the file, so the tables are read once more. If none is broken, the error gets a note with all.
    """
    from cocite.core.tables.files import OPENED

    reader = type(error).__module__.partition(".")[0].lstrip("_")
    without_file = isinstance(error, OSError) and error.filename is None
    if reader not in READERS and not without_file and not isinstance(error, UnicodeDecodeError):
        return None
    for path, table in [*OPENED.items()]:
        if path.exists() and (fault := _fault(path, table)):
            return f"{path}: {fault}. `cocite check --remove` deletes it and says what makes it again."
    if OPENED:
        error.add_note(f"Tables that were opened: {', '.join(map(str, OPENED))}.")
    return None


def _remove(results: Path, broken: Sequence[Path], configfile: Path | None) -> None:
    """Delete the outputs that the files belong to, and print the command that makes them again if a rule does."""
    from cocite.config.configuration import configure
    from cocite.config.yaml_files import written_configuration
    from cocite.plan.recorded import configuration_of

    def output_of(path: Path) -> Path:
        """The file itself, or the folder that it is a shard of, which Snakemake marks."""
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
    from cocite.config.started import remaking_command

    targets = [shlex.quote(str(output.relative_to(results))) for output in outputs]
    try:
        command = remaking_command(results, targets, configfile)
        typer.echo(f"This makes them again, and the next run what depends on them:\n    {command}")
    except InputError as error:
        typer.echo(str(error))


def _tables(results: Path, config: Any = None) -> Iterator[tuple[Path, str]]:
    """The files of all tables, each with the table's name; with a configuration, only the files of its entries."""
    from cocite.core.tables import TABLES
    from cocite.core.tables.places import files_by_place
    from cocite.plan.recorded import configured_in

    for table in TABLES.values():
        for files in files_by_place(results, table, configured_in(config)).values():
            yield from ((path, table.name) for path in files)


def _fault(path: Path, table: str) -> str:
    import pyarrow as pa

    from cocite.core.tables.files import checked_files, open_parquet

    try:
        checked_files(path, table)
        with open_parquet(path) as file:
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
