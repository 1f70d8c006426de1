"""Unite the records of a work under one id (`corpus.twins: merge`): its papers, its citations, its sentences.

The paper that represents a work, the `group` in the table `twins`, keeps its record and takes over the citations of the
others. Citations in other buckets move to its bucket; all of them are read once.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cocite.core.database import connect
from cocite.core.options import MemoryMb, Omissions, Threads
from cocite.core.tables.files import checked_files, count_rows, read_table, verified_files, write_omissions, write_table

ROWS_AT_ONCE = {"papers": 20_000, "citations": 100_000, "contexts": 20_000}
LEFT_OUT = {
    "papers": "papers of which another record of the same work is kept",
    "citations": "citations between records of one work, or of several records of a work",
    "contexts": "sentences that several records of a work have, or that cite their own work alone",
}
_OTHERS = 'SELECT corpusid, "group" AS work FROM twins WHERE corpusid <> "group"'
_NOT_MOVED = "WHERE citing NOT IN (SELECT corpusid FROM others)"
_MOVED = """
    CREATE TABLE moved AS
    SELECT * EXCLUDE (corpusid, work) REPLACE (work AS citing) FROM every JOIN others ON citing = corpusid
"""
_PAPERS = "SELECT * FROM bucket WHERE corpusid NOT IN (SELECT corpusid FROM others) ORDER BY corpusid"
_CITATIONS = """
    SELECT citing, coalesce(work, cited) AS cited, bool_or(influential) AS influential,
        list_sort(list_distinct(flatten(list(intents)))) AS intents
    FROM bucket LEFT JOIN others ON cited = corpusid
    WHERE citing <> coalesce(work, cited)
    GROUP BY ALL ORDER BY ALL
"""
_CONTEXTS = """
    SELECT citing, context, list_sort(list(DISTINCT coalesce(work, paper))) AS cited, any_value(sentence) AS sentence
    FROM (SELECT citing, context, unnest(cited) AS paper, sentence FROM bucket)
    LEFT JOIN others ON paper = corpusid
    WHERE citing <> coalesce(work, paper)
    GROUP BY citing, context ORDER BY citing, context
"""
_UNITED = {"papers": _PAPERS, "citations": _CITATIONS, "contexts": _CONTEXTS}


def merge_twins(
    table: Annotated[Literal["papers", "citations", "contexts"], typer.Argument(help="The table to write.")],
    *,
    records: Annotated[Path, typer.Option(help="Folder of the buckets of the table, by records.")],
    twins: Annotated[Path, typer.Option(help="Table twins.")],
    memory_mb: MemoryMb,
    threads: Threads,
    output: Annotated[Path, typer.Option(help="Folder of the buckets to write, by works.")],
    omissions: Omissions,
) -> None:
    """Write all buckets of a table with one paper in place of all records of a work."""
    files = {int(path.stem): path for path in checked_files(records, table)}
    written = 0
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        db.register("twins", read_table(twins, "twins", ["corpusid", "group"]))
        db.execute(f"CREATE TABLE others AS {_OTHERS}")
        if table != "papers":
            db.read_parquet(verified_files(records, table)).create_view("every")
            db.execute(_MOVED)
        for bucket, path in files.items():
            db.read_parquet(verified_files([path], table)).create_view("own", replace=True)
            moved = (
                "" if table == "papers" else f"{_NOT_MOVED} UNION ALL FROM moved WHERE citing % {len(files)} = {bucket}"
            )
            db.execute(f"CREATE OR REPLACE VIEW bucket AS FROM own {moved}")
            rows = db.sql(_UNITED[table]).to_arrow_reader(ROWS_AT_ONCE[table])
            written += write_table(output / path.name, table, rows)
    write_omissions(omissions, {LEFT_OUT[table]: count_rows(list(files.values())) - written})
