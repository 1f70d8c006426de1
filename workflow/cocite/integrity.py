"""Whether the tables of a run are whole: every file is read to its end, and each page compared with its checksum.

A file that a disk or a copy has spoilt is otherwise met by the step that reads it, or by nobody, if what was spoilt
still looks like numbers.
"""

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import pyarrow.parquet as pq

app = typer.Typer()


@app.command()
def check(
    results: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
    remove: Annotated[bool, typer.Option(help="Delete what is broken, and tell what makes it anew.")] = False,
) -> None:
    """Read all tables to their ends and name the files that are broken; the status is then 1."""
    files, broken = 0, list[Path]()
    for path, fault in faults(results):
        files += 1
        if fault:
            broken.append(path)
            typer.echo(f"{path}: {fault}")
    typer.echo(f"{files:,} files, {len(broken)} of them broken.")
    outputs = [str(output) for output in dict.fromkeys(map(_output_of, broken))]
    if outputs and not remove:
        typer.echo("With --remove they are deleted.")
    if outputs and remove:
        for output in outputs:
            shutil.rmtree(output) if Path(output).is_dir() else Path(output).unlink()
        # Of what is finished, Snakemake does not miss a file that nothing unfinished is made from.
        typer.echo(
            "Deleted. With the configuration of the run, this makes them anew, and the next run what hangs on them:"
        )
        typer.echo(f"    .venv/bin/snakemake --cores 2 {shlex.join(outputs)}")
    raise typer.Exit(bool(outputs))


def faults(results: Path) -> Iterator[tuple[Path, str]]:
    """Each file of a table under `results` with what is wrong with it, empty where nothing is."""
    from cocite.places import files_by_place
    from cocite.tables import TABLES

    for table in TABLES.values():
        for files in files_by_place(results, table).values():
            for path in files:
                yield path, _fault(path, table.name)


def _output_of(path: Path) -> Path:
    """What a job makes a file as: itself, or the folder that it is a shard of, in which Snakemake leaves a mark."""
    return path.parent if (path.parent / ".snakemake_timestamp").exists() else path


def _fault(path: Path, table: str) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from cocite.errors import InputError
    from cocite.files import checked_files

    try:
        checked_files(path, table)
        with pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True) as file:
            _read_to_its_end(file)
    except InputError as error:
        return str(error).removeprefix(f"{path}: ")
    except (pa.ArrowException, OSError, ValueError) as error:
        return f"not a readable Parquet file ({error})"
    return ""


def _read_to_its_end(file: "pq.ParquetFile") -> None:
    for number in range(file.num_row_groups):
        for column in range(file.metadata.num_columns):
            # A column of a row group at a time: what is in memory is a part of what writing it took.
            name = file.metadata.row_group(number).column(column).path_in_schema.split(".")[0]
            file.read_row_group(number, columns=[name], use_threads=False)
