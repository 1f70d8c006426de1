"""Scores on a hold-out by time, by the year in which its queries appeared: does a model hold as time passes?"""

from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from cocite.config.benchmarks import declared
from cocite.core.database import connect
from cocite.core.options import MemoryMb, Output, Papers
from cocite.core.tables.files import verified_files, write_table
from cocite.evaluation.benchmark import Suites, files_of_runs

# The text of a held-out paper has a name of its own before the id of the paper: title:7.
BY_YEAR = """
    SELECT model, seed, benchmark, task, metric, year, count(*) AS queries, avg(value) AS value,
        stddev_samp(value) / sqrt(count(*)) AS error
    FROM outcomes SEMI JOIN main USING (task, metric)
    JOIN papers ON corpusid = split_part(item, ':', -1)::BIGINT
    GROUP BY ALL ORDER BY ALL
"""


def score_by_year(
    outcomes: Annotated[Path, typer.Argument(help="Folder of the outcomes of one benchmark: <suite>/<run>.parquet.")],
    *,
    suites: Suites,
    papers: Papers,
    memory_mb: MemoryMb,
    output: Output,
) -> None:
    """Average the main metric of each task over the queries of each year, as R@20 of searches and MAP of rankings."""
    tasks = [declared(name) for suite in suites.values() for name in suite.tasks]
    # One thread, since the order of additions moves the last bits of a mean.
    with connect(memory_mb=memory_mb, threads=1, spill_to=output.parent) as connection:
        of_runs = connection.read_parquet(verified_files(files_of_runs(outcomes, suites), "outcomes"))
        of_runs.create_view("outcomes")
        connection.read_parquet(verified_files(papers, "papers", ["corpusid", "year"])).create_view("papers")
        connection.register(
            "main", pa.table({"task": [t.name for t in tasks], "metric": [t.main_metric for t in tasks]})
        )
        write_table(output, "scores_by_year", connection.sql(BY_YEAR).to_arrow_table())
