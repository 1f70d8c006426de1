"""From the results of a run and its figures to the report: tables, costs, cards and the page, in one go.

One job writes them all, since each takes less time than starting a job and reading the scores. Snakemake's own report,
`report.zip`, holds the report's files with the rules, commands and run times that made them.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from cocite.config.configuration import results_folder
from cocite.config.probes import named_sets
from cocite.config.started import read_start
from cocite.config.terms import generated_benchmarks
from cocite.config.triplets import graphs_of_aspects
from cocite.config.walks import rankings
from cocite.config.yaml_files import written_configuration
from cocite.core.errors import InputError
from cocite.core.options import Output, Results
from cocite.core.tables.files import atomic_path, read_json, read_table
from cocite.report import inputs, published
from cocite.report import scores as of_models
from cocite.report.ablations import ablations
from cocite.report.cards import write_cards
from cocite.report.costs import costs_of_rules, read_jobs, time_at_work, write_costs
from cocite.report.differences import differences
from cocite.report.empty_fields import empty_fields
from cocite.report.maps.results import read_map, read_map_scores
from cocite.report.maps.scores import agreement_table
from cocite.report.objectives import objectives
from cocite.report.over_tasks import questions_over_tasks
from cocite.report.page import write_page
from cocite.report.probes import probes_table
from cocite.report.reported import beside_reported, read_reported
from cocite.report.results import Provenance, read, read_curves, read_each, read_precisions, read_scored, read_summary
from cocite.report.sciaspect import matrix
from cocite.report.summary import best_scores, facts

ARCHIVE = "report/report.zip"
PAGE = "report/index.html"


def write_report(
    figures: Annotated[list[Path], typer.Argument(help="Figures, SVG; the file's name is the figure's.")],
    *,
    results: Results,
    provenance: Provenance,
    logs: Annotated[str, typer.Option(help="The logs of each rule, wildcards in braces, as JSON.")],
    tables: Annotated[Path, typer.Option(help="Folder to write with the tables as CSV files.")],
    cards: Annotated[Path, typer.Option(help="Folder to write with the models' cards and their scores.")],
    costs: Annotated[Path, typer.Option(help="The table costs to write: what the finished jobs took.")],
    output: Output,
) -> None:
    """Write the page, with its tables, the models' cards and what the run took."""
    recorded = read_json(provenance)
    configuration = recorded["configuration"]
    jobs = read_jobs(json.loads(logs), read_start(results))
    seconds = time_at_work(jobs)
    write_costs(jobs, costs)
    took = pl.DataFrame(read_table(costs, "costs"))
    corpus = read(results, "corpus_statistics")
    scores = read_scored(results, configuration, "scores")
    comparisons = read_summary(results, configuration, "comparisons")
    made = tabulate(results, recorded, scores, comparisons)
    compared = differences(comparisons, configuration)
    if configuration["benchmarks"]:
        of_tasks = read(results, "task_comparisons")
        compared["questions"] += questions_over_tasks(of_tasks, compared["models"], configuration)
    with atomic_path(tables) as folder:
        folder.mkdir()
        for name, table in made.items():
            table.write_csv(folder / f"{name}.csv")
    write_cards(results, scores, recorded, cards)
    write_page(
        tables={**made, "corpus": inputs.size_of_corpus(corpus), "costs": costs_of_rules(took, seconds)},
        figures={path.stem: path for path in figures},
        maps={name: read_map(results, configuration, name) for name in configuration["maps"]},
        differences=compared,
        facts=facts(recorded, corpus, took, seconds, read_precisions(results, configuration)),
        provenance=recorded,
        output=output,
    )


def tabulate(
    results: Path, provenance: Mapping[str, Any], scores: pl.DataFrame, comparisons: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """The tables of a finished run; `scores` and `comparisons` are those of all benchmarks."""
    configuration = provenance["configuration"]
    averages = read_summary(results, configuration, "averages")
    return {
        "best": best_scores(scores, averages, comparisons, configuration),
        "trained": inputs.trained_models(configuration),
        "probes": probes_table(read_each(results, "probe_scores", "probe", configuration.get("probes", {}))),
        **_scores(results, scores, configuration),
        "reported": beside_reported(scores, read_reported(results, configuration), configuration),
        **_beside_published(scores, averages, _without_generated(provenance)),
        **_inputs(results, configuration),
        **{
            f"map_{name}": agreement_table(name, read_map_scores(results, configuration, name), provenance)
            for name in configuration["maps"]
        },
    }


def write_archive(
    configfile: Annotated[Path, typer.Option(help="The configuration of the finished run.")],
) -> None:
    """Have Snakemake write its own report, report.zip, of a finished run, unless it is newer than the run's page."""
    results = results_folder(written_configuration(configfile))
    archive, page = results / ARCHIVE, results / PAGE
    if not page.is_file():
        raise InputError(f"{page} does not exist; run the workflow first.")
    if not archive.is_file() or archive.stat().st_mtime < page.stat().st_mtime:
        command = [sys.executable, "-m", "snakemake", "--report", str(archive), "--nolock", "--quiet", "all"]
        command += ["--configfile", str(configfile), "--replace-workflow-config"]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode:
            raise InputError(f"{archive} could not be written; Snakemake says: {finished.stderr.strip()}")
    typer.echo(f"The report: {page}; Snakemake's own, with every rule and command: {archive}")


def _scores(results: Path, scores: pl.DataFrame, configuration: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """What the models reached, as this run scored them."""
    curves = read_curves(results, configuration)
    return {
        "failures": of_models.failures(read_scored(results, configuration, "failures")),
        "models": of_models.models_by_format(scores, configuration),
        **{f"tasks_{benchmark}": table for benchmark, table in of_models.tasks(scores, configuration).items()},
        "incomplete": of_models.incomplete(scores),
        "empty_fields": empty_fields(results, configuration),
        "losses": of_models.losses(scores, curves, configuration),
        "difficulties": of_models.difficulties(scores, curves, configuration),
    }


def _beside_published(
    scores: pl.DataFrame, averages: pl.DataFrame, configuration: Mapping[str, Any]
) -> dict[str, pl.DataFrame]:
    """The scores on benchmarks of the literature, with what was published of them."""
    formats = published.scirepeval(averages, configuration)
    return {
        "scirepeval_formats": formats.drop(published.GROUPS.values(), strict=False),
        "scirepeval_groups": formats.drop(published.WEIGHTS, strict=False),
        "scirepeval_tasks": published.beside_published("scirepeval", scores, configuration),
        "scidocs": published.beside_published("scidocs", scores, configuration),
        "mdcr": published.beside_published("mdcr", scores, configuration),
        "mdcr_fields": published.beside_published("mdcr_fields", scores, configuration),
        "sciaspect": matrix(averages, configuration),
        "objectives": objectives(scores, averages, configuration),
        "ablations": ablations(scores, averages, configuration),
    }


def _inputs(results: Path, configuration: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """What the models were made from, and what was checked and left out on the way."""
    sets = named_sets(configuration)
    graphs = read_each(results, "graph_scores", "embedding", configuration["embeddings"])
    bands = read_each(results, "band_quality", "embedding", rankings(configuration))
    counts, checks = (read_each(results, table, "triplets", sets) for table in ("triplets_per_query", "triplet_checks"))
    return {
        "graph_embeddings": inputs.graph_embeddings(graphs, configuration),
        "searches": inputs.searches(results, configuration),
        "band_quality": inputs.band_quality(bands),
        "intents": inputs.intents(read_each(results, "intent_counts", "graph", graphs_of_aspects(configuration))),
        "triplets": inputs.triplet_sets(counts, checks),
        "leaks": inputs.leaks(results),
        "omissions": inputs.omissions(results, configuration),
    }


def _without_generated(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration without benchmarks whose documents are generated: nothing was published of those."""
    configuration, generated = provenance["configuration"], generated_benchmarks(provenance)
    kept = {name: entry for name, entry in configuration["benchmarks"].items() if name not in generated}
    return {**configuration, "benchmarks": kept}
