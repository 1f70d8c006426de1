"""How large the corpus is, and how often its papers are paired: what a reader asks first of a dataset."""

import json
from pathlib import Path

import pyarrow as pa
from duckdb import DuckDBPyConnection, DuckDBPyRelation

from cocite.core.database import connect
from cocite.core.options import MemoryMb, Output, Results, Threads
from cocite.core.tables.files import count_rows, verified_files, write_table
from cocite.core.tables.places import path_of
from cocite.report.results import Pairs


def write_corpus_statistics(
    *, results: Results, pairs: Pairs, memory_mb: MemoryMb, threads: Threads, statistics: Output, counts: Output
) -> None:
    """Count the papers, the citations, and how often papers are paired."""
    with connect(memory_mb=memory_mb, threads=threads, spill_to=statistics.parent) as database:
        measured = _measured(database, results)
        tables = [
            _pair_counts(_read(database, path_of(results, table, graph=graph), table, "count"), graph)
            for graph, table in sorted(json.loads(pairs).items())
        ]
    write_table(
        statistics, "corpus_statistics", pa.table({"measure": list(measured), "value": list(measured.values())})
    )
    write_table(counts, "pair_counts", pa.concat_tables(tables) if tables else [])


def _measured(database: DuckDBPyConnection, results: Path) -> dict[str, int]:
    papers = _read(database, path_of(results, "papers"), "papers", "has_text")
    queries = _read(database, path_of(results, "queries"), "queries", "split")
    splits = queries.aggregate("split, count(*)").order("split")
    return {
        "papers": count_rows(path_of(results, "papers")),
        "papers with text": papers.filter("has_text").aggregate("count(*)").fetchall()[0][0],
        "citations": count_rows(path_of(results, "citations")),
        **{f"query papers: {split}": number for split, number in splits.fetchall()},
    }


def _pair_counts(pairs: DuckDBPyRelation, graph: str) -> pa.Table:
    """How many pairs occur how often; each pair has one row in its table."""
    counted = pairs.aggregate("count, count(*) AS pairs").order("count").to_arrow_table()
    return counted.append_column("graph", pa.array([graph] * len(counted), pa.string()))


def _read(database: DuckDBPyConnection, source: Path, table: str, column: str) -> DuckDBPyRelation:
    """A table, of which one column is read."""
    return database.read_parquet(verified_files(source, table, [column]))
