"""From the results of a run and its figures to the report: tables, costs, cards and the page, in one go.

Each of them is little work beside starting a job for it and reading the scores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from cocite.config.started import read_start
from cocite.report import results as read
from cocite.report.cards import write_cards
from cocite.report.costs import read_jobs, time_at_work, write_costs
from cocite.report.differences import differences
from cocite.report.page import write_page
from cocite.report.run_tables import costs_of_rules, size_of_corpus
from cocite.report.summary import facts
from cocite.report.tabulating import tabulate, write_tables
from cocite.tables.files import read_table


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """What a report consists of."""

    page: Path
    tables: Path
    """Folder of CSV files."""
    cards: Path
    """Folder of the models' cards."""
    costs: Path
    """The table costs."""


def write_report(
    results: Path,
    provenance: Mapping[str, Any],
    statistics: Path,
    figures: Sequence[Path],
    logs: Mapping[str, str],
    outputs: Outputs,
) -> None:
    """Write all of it; `logs` holds the path of each rule's logs, with names in braces."""
    configuration = provenance["configuration"]
    jobs = read_jobs(logs, read_start(results))
    seconds = time_at_work(jobs)
    write_costs(jobs, outputs.costs)
    costs = pl.DataFrame(read_table(outputs.costs, "costs"))
    corpus = pl.DataFrame(read_table(statistics, "corpus_statistics"))
    scores = read.read_scored(results, configuration, "scores")
    comparisons = read.read_summary(results, configuration, "comparisons")
    made = tabulate(results, provenance, scores, comparisons)
    write_tables(made, outputs.tables)
    write_cards(results, scores, provenance, outputs.cards)
    write_page(
        tables={**made, "corpus": size_of_corpus(corpus), "costs": costs_of_rules(costs, seconds)},
        figures={path.stem: path for path in figures},
        differences=differences(comparisons, configuration),
        facts=facts(provenance, corpus, costs, seconds),
        provenance=provenance,
        output=outputs.page,
    )
