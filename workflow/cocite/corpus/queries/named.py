"""Papers that are named as the user's tables name them: a file of names becomes the file of their corpus ids."""

from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer
from duckdb import DuckDBPyConnection

from cocite.core.database import connect
from cocite.core.errors import InputError, explain_unreadable
from cocite.core.options import MemoryMb, Omissions, Output, Threads
from cocite.core.tables.files import verified_files, write_omissions, write_text
from cocite.core.written_ids import without_decimals
from cocite.corpus.queries.candidates import Ids

UNKNOWN_NAMES = "names of papers that the tables do not have"


def number_ids(
    file: Annotated[Path, typer.Argument(help="Text file with the name of a paper a line.")],
    *,
    names: Annotated[Path, typer.Option(help="Table names.")],
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
) -> None:
    """Replace the names of papers in a file by their corpus ids.

    Raises `InputError` where the file is not UTF-8.
    """
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        found, unknown = ids_of_names(connection, file, names)
    write_text(output, "".join(f"{corpusid}\n" for corpusid in found.tolist()))
    write_omissions(omissions, {UNKNOWN_NAMES: len(unknown)})


def ids_of_names(connection: DuckDBPyConnection, file: Path, names: Path) -> tuple[Ids, list[str]]:
    """The corpus ids of the papers that a text file names, rising, and the names that are not known."""
    with explain_unreadable(file, "list of names"):
        try:
            lines = file.read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise InputError(f"{file}: not UTF-8 at byte {error.start}; a line has the name of a paper.") from None
    asked = pa.array(sorted({without_decimals(name) for line in lines if (name := line.strip())}), pa.string())
    connection.register("asked", pa.table({"name": asked}))
    known = connection.read_parquet(verified_files(names, "names"))
    found = known.join(connection.table("asked"), "name", "semi").order("corpusid").to_arrow_table()
    return found["corpusid"].to_numpy(), [
        name for name in asked.to_pylist() if name not in {*found["name"].to_pylist()}
    ]
