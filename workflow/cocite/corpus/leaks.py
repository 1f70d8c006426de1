"""Check that the finished tables hold none of the papers that are kept out.

The table `leaks` has one row for each column of corpus ids in the tables between the corpus and the encoders; the
declarations of the tables say which columns those are. If the results hold sentences that cite (the table `contexts`),
those of a paper that is kept out, and those that cite one, are searched for as well, by their negative ids.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from duckdb import DuckDBPyConnection

from cocite.core.database import connect
from cocite.core.errors import InputError
from cocite.core.options import MemoryMb, Output, Queries, Results, Threads
from cocite.core.progress import report
from cocite.core.tables import TABLES, Table, empty_schema
from cocite.core.tables.files import checked_files, count_rows, verified_files, write_table
from cocite.core.tables.papers import read_kept_out

STAGES = ("graph", "embeddings", "neighbours", "triplets")
CONTEXTS = "corpus/contexts/*.parquet"
IDS_NAMED = 5
ANSWERS = "answers_of"
"""The column of the benchmarks whose answers a table holds."""

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A table on disk."""

    table: Table
    path: Path
    """Its file, or the folder of its buckets."""
    files: list[str]
    columns: list[str]
    """The columns of corpus ids."""


def check_leaks(
    tables: Annotated[
        Sequence[Path], typer.Argument(help="Files of tables, or folders of their buckets; all if none is named.")
    ] = (),
    *,
    results: Results,
    queries: Queries,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    oracles: Annotated[
        str,
        typer.Option(help="Sets that hold the answers of benchmarks, with the names of these benchmarks, as JSON."),
    ] = "{}",
) -> None:
    """Check that the finished tables hold no held-out or excluded paper.

    Documents of benchmarks are texts with ids of their own, which no search for papers finds, so the rows about oracles
    say what they are. Raises `InputError` that names every column with a leak, and writes nothing then.
    """
    answers_in: dict[str, list[str]] = json.loads(oracles)
    chosen = _choose(results, tables)
    kept_out = read_kept_out(queries).select(["corpusid"])
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        db.register("kept_out", kept_out)
        _forbid(db, results)
        searched = [
            (one, {**row, ANSWERS: _answers(row, answers_in)}) for one in chosen for row in _search(db, one, results)
        ]
        leaks = [_describe(db, one, row) for one, row in searched if row["leaked"]]
    if leaks:
        raise InputError("\n  ".join([f"Papers that {queries} keeps out are in finished tables:", *leaks]))
    rows = sorted((row for _, row in searched), key=lambda row: (row["path"], row["column_name"]))
    schema = empty_schema(TABLES["leaks"])
    if not answers_in:
        schema = schema.remove(schema.get_field_index(ANSWERS))
    write_table(output, "leaks", pa.Table.from_pylist(rows, schema))
    report(
        f"{len(chosen)} tables checked, {len(searched)} columns of corpus ids: "
        f"none of the {len(kept_out):,} papers that are kept out is in them."
    )
    for answers in sorted({(row["path"], row[ANSWERS]) for row in rows if row[ANSWERS]}):
        report("{} holds the answers of {}: it is an oracle, and so is what learns from it.".format(*answers))


def _forbid(db: DuckDBPyConnection, results: Path) -> None:
    """Make the table `forbidden`: the papers that are kept out, and the sentences that name one."""
    db.execute("CREATE TEMP TABLE forbidden AS SELECT corpusid AS id FROM kept_out")
    if files := sorted(results.glob(CONTEXTS)):
        naming = """
            INSERT INTO forbidden
            SELECT context FROM read_parquet($files) WHERE citing IN (FROM kept_out)
            UNION
            SELECT context FROM (SELECT context, unnest(cited) AS paper FROM read_parquet($files))
            WHERE paper IN (FROM kept_out)
        """
        db.execute(naming, {"files": verified_files(files, "contexts", ["citing", "cited", "context"])})


def _choose(results: Path, tables: Sequence[Path]) -> list[Finished]:
    on_disk = {one.path.resolve(): one for one in _on_disk(results)}
    for path in tables:
        if path.resolve() not in on_disk:
            raise InputError(f"{path}: is not the file or folder of a table of papers in {results}.")
    return [on_disk[path.resolve()] for path in tables or on_disk]


def _on_disk(results: Path) -> Iterator[Finished]:
    """The tables of the stages in the results folder that have a column of corpus ids."""
    for table in TABLES.values():
        columns = [name for name, column in table.columns.items() if column.of_papers]
        if columns and table.path.partition("/")[0] in STAGES:
            files = sorted(results.glob(re.sub(r"\{\w+\}", "*", table.path)))
            sharded = "{bucket}" in table.path
            for path in sorted({file.parent if sharded else file for file in files}):
                shards = checked_files([file for file in files if path in (file, file.parent)], table.name)
                yield Finished(table=table, path=path, files=[*map(str, shards)], columns=columns)


def _search(db: DuckDBPyConnection, one: Finished, results: Path) -> Iterator[Row]:
    paths = list(map(Path, one.files))
    rows, files = count_rows(paths), verified_files(paths, one.table.name, one.columns)
    described: Row = {"path": one.path.relative_to(results).as_posix(), "table_name": one.table.name, "rows": rows}
    for name in one.columns:
        query = f"SELECT count(*) AS leaked, (SELECT count(*) FROM kept_out) AS kept_out {_leaks(one, name)}"
        ((leaked, kept_out),) = db.sql(query, params={"files": files}).fetchall()
        yield {**described, "column_name": name, "kept_out": kept_out, "leaked": leaked}


def _answers(row: Row, answers_in: Mapping[str, Sequence[str]]) -> str | None:
    """The benchmarks whose answers the table of a row holds; None where it holds none."""
    stage, entry, *_ = row["path"].split("/")
    return ", ".join(answers_in.get(entry, ())) or None if stage == "triplets" else None


def _leaks(one: Finished, name: str) -> str:
    """What a column should not hold, as `id`, and the file of each, as the end of a query."""
    ids = f'unnest("{name}")' if pa.types.is_list(one.table.columns[name].type) else f'"{name}"'
    found = f"SELECT filename, {ids} AS id FROM read_parquet($files, filename = true)"
    return f"FROM ({found}) WHERE id IN (FROM forbidden)"


def _describe(db: DuckDBPyConnection, one: Finished, row: Row) -> str:
    name = row["column_name"]
    query = f"SELECT min(filename), count(DISTINCT id), list(DISTINCT id ORDER BY id)[:{IDS_NAMED}] {_leaks(one, name)}"
    ((file, count, ids),) = db.sql(query, params={"files": one.files}).fetchall()
    papers = ", ".join(map(str, ids)) + (", …" if count > len(ids) else "")
    sentences = "; negative ids are of sentences that name one" if ids[0] < 0 else ""
    return f"{file} (table {one.table.name}), column {name}: {count} ({papers}{sentences})"
