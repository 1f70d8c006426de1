"""From the results of a run and its figures to the report: tables, costs, models' cards, the page and the DuckDB file.
One job writes them all, since each takes less time than starting a job and reading the scores."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import duckdb
import polars as pl
import typer

from cocite.config.benchmark import SEARCH
from cocite.config.configuration import results_folder
from cocite.config.origins import CARD_SCORES, generated_benchmarks
from cocite.config.probes import named_sets
from cocite.config.runs import model_of, training_seeds, with_weights
from cocite.config.sampler import graphs_of_aspects, oracle_models
from cocite.config.started import read_start
from cocite.config.yaml_files import written_configuration
from cocite.core.atomic import atomic_path, read_json
from cocite.core.errors import InputError
from cocite.core.options import Output, Results
from cocite.core.tables import TABLES
from cocite.core.tables.files import read_table
from cocite.core.tables.places import as_text, files_by_place, rows_of
from cocite.plan.recorded import configuration_of, configured_in
from cocite.report import inputs, published, repetitions
from cocite.report import results as of_run
from cocite.report import scores as of_models
from cocite.report.labels import TASKS, measure, over_seeds, with_commas
from cocite.report.map_page import agreement_table, read_map
from cocite.report.page import write_page
from cocite.report.probes import probes_table
from cocite.report.results import configuration_in, read, read_each, read_mapped, read_scored, read_summary
from cocite.report.scores import found_by_citations, popularity_in_words, same_authors_in_words
from cocite.report.screening import by_review, read_screening
from cocite.report.screening import curves as screening_curves
from cocite.report.summary import costs_of_rules, facts, read_jobs, time_at_work, write_costs
from cocite.report.verdict import board_frame, differences, judge, questions_over_tasks

FORMAT = "v1.0.0"
"""The oldest DuckDB format, which every later version reads: a reader's DuckDB may be older than the pipeline's."""
SCHEMA = "cocite_folder"
VARIABLE = "results"
"""The variable that a session sets to the folder of the results if it attaches the file instead of opening it."""
# A table function takes no subquery, so the path of the attached file is out of reach. DuckDB spills to a folder beside
# the file that a session opens; the setting that names it is the only constant with the place of that file.
_HELPERS = f"""
CREATE SCHEMA {SCHEMA};
CREATE MACRO {SCHEMA}.path() AS CASE
    WHEN getvariable('{VARIABLE}') IS NOT NULL THEN getvariable('{VARIABLE}')
    WHEN current_setting('temp_directory') NOT LIKE '%_.tmp'
    THEN error('The folder of these views is unknown: open the file as the main database, '
        || 'without a custom temp_directory, or SET VARIABLE {VARIABLE} = the path of its folder.')
    WHEN parse_dirpath(current_setting('temp_directory')) = '' THEN '.'
    ELSE parse_dirpath(current_setting('temp_directory'))
END;
CREATE MACRO {SCHEMA}.files(names) AS list_transform(
    names, lambda name: regexp_replace({SCHEMA}.path() || '/' || name, '([*?[])', '[\\1]', 'g')
);
CREATE MACRO {SCHEMA}.is_own() AS (
    SELECT CASE
        WHEN count(*) > 1
        THEN error('Two folders of results are attached, and the views of one would show the files of the other: '
            || 'open each separately.')
        WHEN getvariable('{VARIABLE}') IS NULL AND bool_or(NOT contains(
            concat(path, '.tmp'), regexp_replace(current_setting('temp_directory'), '^.*\\.\\.?/', '')
        ))
        THEN error('These views are attached to another database, and would show the files in its folder: '
            || 'SET VARIABLE {VARIABLE} = the path of their own folder.')
        ELSE true
    END
    FROM duckdb_schemas() JOIN duckdb_databases() USING (database_name) WHERE schema_name = '{SCHEMA}'
);
"""


def write_report(
    figures: Annotated[list[Path], typer.Argument(help="Figures, SVG; the file's name is the figure's.")],
    *,
    results: Results,
    provenance: of_run.Provenance,
    logs: Annotated[str, typer.Option(help="The logs of each rule, wildcards in braces, as JSON.")],
    tables: Annotated[Path, typer.Option(help="Folder to write with the tables as CSV files.")],
    cards: Annotated[Path, typer.Option(help="Folder to write with the models' cards and their scores.")],
    costs: Annotated[Path, typer.Option(help="Table costs to write: time and memory of the finished jobs.")],
    database: Annotated[Path, typer.Option(help="DuckDB file to write, with a view over every table of the results.")],
    output: Output,
) -> None:
    """Write the page, with its tables, the models' cards, what the run took, and the DuckDB file."""
    recorded = read_json(provenance)
    configuration = configuration_in(recorded)
    jobs = read_jobs(json.loads(logs), read_start(results))
    seconds = time_at_work(jobs)
    write_costs(jobs, costs)
    took = pl.DataFrame(read_table(costs, "costs"))
    corpus = read(results, "corpus_statistics")
    scores = read_scored(results, configuration, "scores")
    comparisons = read_summary(results, configuration.benchmarks, "comparisons")
    boards = judge(scores, comparisons, configuration)
    made = tabulate(results, recorded, scores)
    compared = differences(comparisons, configuration)
    if configuration.benchmarks:
        of_tasks = read(results, "task_comparisons")
        compared["questions"] += questions_over_tasks(of_tasks, compared["models"], configuration)
    with atomic_path(tables) as folder:
        folder.mkdir()
        for name, table in {"leaderboard": board_frame(boards), **made}.items():
            table.write_csv(folder / f"{name}.csv")
    write_cards(results, scores, recorded, cards)
    size_and_costs = {"corpus": corpus.select("measure", with_commas("value")), "costs": costs_of_rules(took, seconds)}
    write_page(
        boards=boards,
        tables={**made, **size_and_costs},
        figures={path.stem: path for path in figures},
        maps={name: read_map(results, configuration, name) for name in configuration.maps},
        differences=compared,
        popularity=[
            *popularity_in_words(scores, configuration),
            *same_authors_in_words(made["omissions"], configuration),
        ],
        facts=facts(recorded, corpus, took, seconds, of_run.read_precisions(results, configuration)),
        provenance=recorded,
        output=output,
    )
    write_views(results, database)


def tabulate(results: Path, provenance: Mapping[str, Any], scores: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The tables of a finished run, tasks by what they ask for; `scores` are those of all benchmarks."""
    configuration = configuration_in(provenance)
    averages = read_summary(results, configuration.benchmarks, "averages")
    curves = of_run.read_curves(results, configuration)
    screened = read_screening(results, configuration)
    sets, intents = named_sets(configuration), graphs_of_aspects(configuration)
    counts, checks = (read_each(results, table, "triplets", sets) for table in ("triplets_per_query", "triplet_checks"))
    graphs = read_each(results, "graph_scores", "embedding", configuration.embeddings)
    ranked = [*configuration.embeddings, *configuration.walks]
    by_time = [name for name, entry in configuration.benchmarks.items() if getattr(entry, "by_time", False)]
    # Nothing was published of benchmarks whose documents are generated.
    generated = generated_benchmarks(provenance)
    kept = {name: entry for name, entry in configuration.benchmarks.items() if name not in generated}
    real = configuration.model_copy(update={"benchmarks": kept})
    formats = published.scirepeval(averages, real)
    compared = {"scirepeval_tasks": "scirepeval", "scidocs": "scidocs", "mdcr": "mdcr", "mdcr_fields": "mdcr_fields"}
    tables = {
        "trained": inputs.trained_models(configuration),
        "probes": probes_table(read_each(results, "probe_scores", "probe", configuration.probes)),
        "failures": of_models.failures(read_scored(results, configuration, "failures")),
        "models": of_models.models_by_format(scores, configuration),
        **{f"tasks_{benchmark}": table for benchmark, table in of_models.tasks(scores, configuration).items()},
        "popularity": found_by_citations(read_scored(results, configuration, "scores_by_citations", suite=SEARCH)),
        "by_year": of_models.by_year(read_summary(results, by_time, "scores_by_year"), configuration),
        "screening": by_review(screened, configuration),
        "screening_curves": screening_curves(screened).cast(pl.String),
        "incomplete": of_models.incomplete(scores),
        "empty_fields": of_models.empty_fields(results, configuration),
        "losses": of_models.losses(scores, curves, configuration),
        "difficulties": of_models.difficulties(scores, curves, configuration),
        "reported": published.with_reported(scores, of_run.read_reported(results, configuration), configuration),
        "scirepeval_formats": formats.drop(published.GROUPS.values(), strict=False),
        "scirepeval_groups": formats.drop(published.WEIGHTS, strict=False),
        **{name: published.with_published(of, scores, real) for name, of in compared.items()},
        "sciaspect": repetitions.sciaspect(averages, real),
        "objectives": repetitions.objectives(scores, averages, real),
        "ablations": repetitions.ablations(scores, averages, real),
        "graph_embeddings": inputs.graph_embeddings(graphs, configuration),
        "searches": inputs.searches(results, configuration),
        "band_quality": inputs.band_quality(read_each(results, "band_quality", "embedding", ranked)),
        "intents": inputs.intents(read_each(results, "intent_counts", "graph", intents)),
        "triplets": inputs.triplet_sets(counts, checks),
        "leaks": inputs.leaks(results),
        "leaks_by_text": inputs.leaks_by_text(results),
        "omissions": inputs.omissions(results, configuration),
        **{
            f"map_{name}": agreement_table(name, read_mapped(results, configuration, "map_scores", name), provenance)
            for name in configuration.maps
        },
    }
    in_words = pl.col("task").cast(pl.String).replace(TASKS)
    return {name: of.with_columns(in_words) if "task" in of.columns else of for name, of in tables.items()}


def write_cards(results: Path, scores: pl.DataFrame, provenance: Mapping[str, Any], output: Path) -> None:
    """Write `<model>/seed-<seed>/README.md` into a folder, for each training of a model, further pooling and mean."""
    configuration = configuration_in(provenance)
    with atomic_path(output) as folder:
        folder.mkdir()
        for model in with_weights(configuration):
            for seed in training_seeds(configuration, model):
                card = (results / f"encoder/{model}/seed-{seed}/model/README.md").read_text(encoding="utf-8")
                path = folder / f"{model}/seed-{seed}/README.md"
                path.parent.mkdir(parents=True)
                path.write_text(with_scores(card, scores.filter(model=model), seed, provenance), encoding="utf-8")


def with_scores(card: str, scores: pl.DataFrame, seed: int, provenance: Mapping[str, Any]) -> str:
    """A card whose last section has the scores of one seed of its model, and their means over all seeds."""
    before = card.partition(CARD_SCORES)[0].rstrip()
    configuration = configuration_in(provenance)
    if scores.is_empty():
        why = "This model has no score." if configuration.benchmarks else "The run had no benchmark."
        return f"{before}\n\n{CARD_SCORES}\n\n{why}\n"
    remark = "Scores × 100, higher is better, as means over the evaluation seeds."
    if given_away := oracle_models(configuration).get(model_of(scores["model"][0])):
        remark += f" This model is an oracle: it has learned from the answers of {', '.join(given_away)}."
        remark += " Its scores there bound from above what can be reached, and are no results."
    if generated := generated_benchmarks(provenance):
        remark += f" The documents of {', '.join(generated)} are generated and say nothing about real papers."
    keys = ["benchmark", "task", "metric", "mode"]
    own = scores.filter(seed=seed).group_by(keys).agg(pl.col("value").mean().round(1) + 0.0)
    seeds = scores["seed"].n_unique()
    columns = ["benchmark", "measure", "score", *([f"mean of {seeds} seeds"] if seeds > 1 else [])]
    lines = [columns, ["---"] * len(columns)]
    for benchmark, *of, value, cell in own.join(over_seeds(scores, keys), on=keys).sort(keys).rows():
        lines.append([benchmark, measure(*of), str(value), cell][: len(columns)])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{before}\n\n{CARD_SCORES}\n\n{remark}\n\n{table}\n"


def write_archive(configfile: Annotated[Path, typer.Option(help="The configuration of the finished run.")]) -> None:
    """Have Snakemake write its own report, report.zip, of a finished run, unless it is newer than the run's page."""
    results = results_folder(written_configuration(configfile))
    archive, page = results / "report/report.zip", results / "report/index.html"
    if not page.is_file():
        raise InputError(f"{page} does not exist; run the workflow first.")
    if not archive.is_file() or archive.stat().st_mtime < page.stat().st_mtime:
        command = [sys.executable, "-m", "snakemake", "--report", str(archive), "--nolock", "--quiet", "all"]
        command += ["--configfile", str(configfile), "--replace-workflow-config"]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode:
            raise InputError(f"{archive} could not be written; Snakemake says: {finished.stderr.strip()}")
    typer.echo(f"The report: {page}; Snakemake's own, with every rule and command: {archive}")


def write_views(results: Results, output: Output) -> None:
    """Write a DuckDB file with a view over every table that has files of entries of the last run's configuration. A
    view unites all files of a table. The names in a file's path (the graph, the model, the seed) become columns in
    front; buckets do not. Files are named relative to the folder of the DuckDB file, which is found when a view is
    read, so that results can be copied, moved and renamed."""

    def beside(paths: Iterable[Path]) -> str:
        names = (os.path.relpath(path, output.parent) for path in paths)
        return f"{SCHEMA}.files([{', '.join(map(as_text, names))}])"

    configured = configured_in(configuration_of(results))
    settings: dict[str, Any] = {"storage_compatibility_version": FORMAT}
    with atomic_path(output) as temporary, duckdb.connect(temporary, config=settings) as database:
        database.execute(_HELPERS)
        for table in TABLES.values():
            if files := files_by_place(results, table, configured):
                rows = f"FROM ({rows_of(table, files, beside)}) WHERE {SCHEMA}.is_own()"
                database.execute(f"CREATE VIEW {table.name} AS {rows}")
                database.execute(f"COMMENT ON VIEW {table.name} IS {as_text(table.description)}")
