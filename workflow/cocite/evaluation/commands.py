"""`cocite evaluation …`: prepare benchmarks, score on them, and average and compare the scores."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from cocite.ground.errors import InputError
from cocite.ground.options import (
    Citations,
    MemoryMb,
    Omissions,
    Output,
    Papers,
    Queries,
    Seed,
    Settings,
    State,
    Threads,
)

if TYPE_CHECKING:
    from cocite.config.tasks import Task

app = typer.Typer(no_args_is_help=True)

Tables = Annotated[Path, typer.Option(help="Folder of a benchmark's tables, whose name is the benchmark's.")]
TaskNames = Annotated[
    str, typer.Option(help="Names of tasks with commas between them, each of which must be there; empty for all.")
]
Metrics = Annotated[
    str,
    typer.Option(help="Metrics of the tasks instead of the declared ones, with commas between them; empty for those."),
]
Modes = Literal["compat", "correct"]
Suites = Annotated[str, typer.Option(help='JSON object: the names of the tasks of each suite, as {"small": ["fos"]}.')]
Runs = Annotated[
    str, typer.Option(help="Models and baselines with a seed, such as cocite-1, with commas between them.")
]


RankAlone = Annotated[
    str,
    typer.Option(help="Those of the runs that only rank, and have scores on ranking tasks alone; commas between them."),
]


@app.command("prepare-holdout")
def prepare_holdout_command(
    *,
    kind: Annotated[Literal["holdout", "aspects"], typer.Option(help="Which of the two it is.")] = "holdout",
    papers: Papers,
    citations: Citations,
    queries: Queries,
    settings: Settings,
    seed: Seed,
    memory_mb: MemoryMb,
    threads: Threads,
    tables: Tables,
    omissions: Omissions,
) -> None:
    """Make a benchmark of held-out papers: what they cite and are cited with, or by which aspect, among others."""
    from cocite.config.benchmarks import KINDS
    from cocite.config.settings import parse_settings
    from cocite.evaluation.preparation.holdout import prepare_holdout

    prepare_holdout(
        papers,
        citations,
        queries,
        parse_settings(KINDS[kind].made_by, settings),
        seed,
        memory_mb=memory_mb,
        threads=threads,
        tables=tables,
        omissions=omissions,
    )


@app.command("fetch")
def fetch_command(
    config: Annotated[str, typer.Argument(help="Name of the config: a folder of the dataset.")],
    *,
    dataset: Annotated[str, typer.Option(help="Dataset on the Hugging Face hub.")],
    revision: Annotated[str, typer.Option(help="Commit of the dataset.")],
    splits: Annotated[str, typer.Option(help="Names of its splits, with commas between them.")],
    state: State,
    output: Output,
) -> None:
    """Fetch a config of a benchmark from the hub."""
    from cocite.config.benchmarks import names
    from cocite.evaluation.preparation.splits import fetch_config

    fetch_config(dataset, revision, config, names(splits), state=state, output=output)


@app.command("prepare-folder")
def prepare_folder_command(
    folder: Annotated[Path, typer.Argument(help="Folder of the benchmark, in the layout of its kind.")],
    *,
    kind: Annotated[str, typer.Option(help="Kind of the benchmark: a module of cocite.config.benchmarks.")],
    tasks: TaskNames,
    metrics: Metrics = "",
    tables: Tables,
    omissions: Omissions,
) -> None:
    """Read a benchmark that others made."""
    from cocite.config.benchmarks import names
    from cocite.evaluation.preparation.readers import prepare_folder

    prepare_folder(folder, kind, names(tasks), names(metrics), tables=tables, omissions=omissions)


@app.command("describe-documents")
def describe_documents_command(
    documents: Annotated[Path, typer.Argument(help="Table documents of the benchmark.")],
    *,
    kind: Annotated[str, typer.Option(help="Kind of the benchmark: a module of cocite.config.benchmarks.")],
    tasks: TaskNames,
    folder: Annotated[
        str,
        typer.Option(help="Folder of the benchmark; empty if its files say nothing of the fields."),
    ],
    output: Output,
    papers: Annotated[
        str, typer.Option(help="Folder of the table papers; empty if no document is known to be one of them.")
    ] = "",
    document_papers: Annotated[
        str, typer.Option(help="Table document_papers; empty if the documents have corpus ids.")
    ] = "",
) -> None:
    """Look up venue, authors and year of the documents of a benchmark, for encoders that read them."""
    from cocite.config.benchmarks import names
    from cocite.evaluation.preparation.readers import describe_documents

    folders = [Path(path) if path else None for path in (folder, papers, document_papers)]
    describe_documents(documents, kind, names(tasks), folders[0], output, papers=folders[1], document_papers=folders[2])


@app.command("prepare-beir")
def prepare_beir_command(*, settings: Settings, tasks: TaskNames, tables: Tables, omissions: Omissions) -> None:
    """Read datasets in BEIR's layout, each from a folder."""
    from cocite.config.benchmarks import names
    from cocite.config.benchmarks.beir import BeirSettings
    from cocite.config.settings import parse_settings
    from cocite.evaluation.preparation.beir import prepare_beir

    prepare_beir(parse_settings(BeirSettings, settings), names(tasks), tables=tables, omissions=omissions)


@app.command("score")
def score_command(
    seeds: Annotated[list[int], typer.Argument(help="Evaluation seeds; supervised tasks are scored once with each.")],
    *,
    tables: Tables,
    tasks: Annotated[str, typer.Option(help="Names of the tasks that are scored, with commas between them.")],
    model: Annotated[str, typer.Option(help="Name of the model or baseline.")],
    training_seed: Annotated[int, typer.Option(help="Seed that the model was trained with; 0 for none.")],
    mode: Annotated[
        Literal[Modes, "sklearn", "both"],
        typer.Option(
            help="compat fits as published; correct fits an intercept to standardised inputs; both does both; sklearn "
            "fits as SciRepEval's code does without lightning."
        ),
    ],
    largest_missing: Annotated[
        float,
        typer.Option(help="Share of a task's documents that may be without a vector; with more there is no score."),
    ],
    threads: Threads,
    embeddings: Annotated[str, typer.Option(help="Table of its document embeddings; empty for what ranks by words.")],
    words: Annotated[
        str,
        typer.Option(
            help="Of what ranks by words instead, k1, b and method of BM25 as JSON; it scores rankings alone, and "
            "depends on no seed or mode."
        ),
    ] = "",
    scores: Annotated[Path, typer.Option(help="Table scores, written.")],
    outcomes: Annotated[Path, typer.Option(help="Table outcomes, written.")],
    failures: Annotated[
        Path, typer.Option(help="Table failures, written: a row where the data make a score impossible.")
    ],
    metrics: Metrics = "",
) -> None:
    """Score the vectors of a model or baseline, or the words of the texts, on tasks of a benchmark."""
    from cocite.evaluation.scored import Run
    from cocite.evaluation.scoring import by_words, embedded, write_results

    run = Run(
        model=model,
        training_seed=training_seed,
        benchmark=tables.name,
        modes=get_args(Modes) if mode == "both" else (mode,),
        evaluation_seeds=seeds,
        largest_missing=largest_missing,
        threads=threads,
        ranks_alone=bool(words),
    )
    if bool(words) == bool(embeddings):
        raise InputError("One of --embeddings and --words says what is scored.")
    documents = tables / "documents.parquet"
    score = by_words(documents, json.loads(words), run) if words else embedded(Path(embeddings), run)
    files = {"scores": scores, "outcomes": outcomes, "failures": failures}
    write_results(_tasks(tasks, metrics), tables, run, files, score)


@app.command("read-reported")
def read_reported_command(
    path: Annotated[Path, typer.Argument(help="A file of results of mteb, or the folder of one revision of a model.")],
    *,
    tables: Tables,
    tasks: Annotated[str, typer.Option(help="Names of the benchmark's tasks, with commas between them.")],
    settings: Settings,
    baseline: Annotated[str, typer.Option(help="Name of the baseline.")],
    output: Output,
    omissions: Omissions,
) -> None:
    """Read scores that others reported, from files of the library mteb, on the tasks that a benchmark has as well."""
    from cocite.config.benchmarks.beir import BeirSettings
    from cocite.config.settings import parse_settings
    from cocite.evaluation.reported import write_reported

    files = {"output": output, "omissions": omissions}
    parsed = parse_settings(BeirSettings, settings)
    write_reported(path, tables, _tasks(tasks), settings=parsed, baseline=baseline, **files)


@app.command()
def average(
    scores: Annotated[Path, typer.Argument(help="Folder of the scores of one benchmark: <suite>/<run>.parquet.")],
    *,
    suites: Suites,
    runs: Runs,
    rank_alone: RankAlone = "",
    metrics: Metrics = "",
    output: Output,
) -> None:
    """Average the scores of each model over formats, groups, metrics and all tasks, and over its seeds."""
    from cocite.evaluation.averages import write_averages

    asked = _suites(suites, metrics)
    write_averages(
        _files(scores, asked, runs, rank_alone), [task for tasks in asked.values() for task in tasks], output
    )


@app.command()
def compare(
    outcomes: Annotated[Path, typer.Argument(help="Folder of the outcomes of one benchmark: <suite>/<run>.parquet.")],
    *,
    suites: Suites,
    runs: Runs,
    rank_alone: RankAlone = "",
    resamples: Annotated[int, typer.Option(help="Bootstrap samples of the queries or documents of a task.")],
    seed: Seed,
    output: Output,
) -> None:
    """Test whether models differ: a paired bootstrap between any two of them on each task."""
    from cocite.evaluation.comparisons import compare_models

    compare_models(_files(outcomes, _suites(suites), runs, rank_alone), resamples=resamples, seed=seed, output=output)


@app.command("compare-over-tasks")
def compare_over_tasks_command(
    comparisons: Annotated[list[Path], typer.Argument(help="Table comparisons of each benchmark, in their order.")],
    *,
    output: Output,
) -> None:
    """Test which of two models is better over tasks: signed ranks of their differences on each."""
    from cocite.evaluation.over_tasks import compare_over_tasks

    compare_over_tasks(comparisons, output)


@app.command("score-maps")
def score_maps_command(
    maps: Annotated[Path, typer.Argument(help="What `cocite encoder probe` wrote.")],
    *,
    vectors: Annotated[Path, typer.Option(help="Folder of the table paper_embeddings of the encoder.")],
    tables: Tables,
    tasks: Annotated[str, typer.Option(help="Names of the ranking tasks that are scored, with commas between them.")],
    output: Output,
    normalise: Annotated[bool, typer.Option(help="Scale mapped vectors to length 1, as the encoder's are.")] = False,
) -> None:
    """Score linear maps of ready vectors on held-out papers, those that choose and those that prove."""
    from cocite.config.benchmarks import names
    from cocite.evaluation.probes import score_maps

    score_maps(maps, vectors, tables, names(tasks), output, normalise=normalise)


@app.command("rank-probe")
def rank_probe_command(
    outcomes: Annotated[list[Path], typer.Argument(help="Tables probe_outcomes, each under the name of its set.")],
    *,
    settings: Annotated[str, typer.Option(help="The probe, and its sets by name, as JSON.")],
    seed: Seed,
    scores: Annotated[Path, typer.Option(help="Table probe_scores, written.")],
    winners: Annotated[Path, typer.Option(help="The best sets and trainings as entries of a configuration, written.")],
) -> None:
    """Rank the sets and losses of a probe by the papers that choose."""
    from cocite.evaluation.probes import write_scores
    from cocite.evaluation.winners import write_winners

    ranked = write_scores({path.stem: path for path in outcomes}, seed, scores)
    write_winners(ranked, json.loads(settings), winners)


def _tasks(tasks: str, metrics: str = "") -> list["Task"]:
    """The tasks of these names, with the declared metrics or these."""
    from cocite.config.benchmarks import declared, names

    found = [declared(name) for name in names(tasks)]
    return [replace(task, metrics=tuple(names(metrics))) for task in found] if metrics else found


def _suites(suites: str, metrics: str = "") -> dict[str, list["Task"]]:
    """The tasks of each suite."""
    return {suite: _tasks(",".join(tasks), metrics) for suite, tasks in json.loads(suites).items()}


def _files(folder: Path, suites: Mapping[str, Sequence["Task"]], runs: str, rank_alone: str) -> list[Path]:
    """The table of each run on each suite that it can be scored on."""
    from cocite.config.benchmarks import names
    from cocite.config.runs import scored_runs

    return [folder / suite / f"{run}.parquet" for suite, run in scored_runs(suites, names(runs), names(rank_alone))]
