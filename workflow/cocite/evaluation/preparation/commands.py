"""`cocite evaluation prepare-…` and `fetch`: benchmarks, to the tables that all of them are scored from."""

from pathlib import Path
from typing import Annotated

import typer

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

app = typer.Typer(no_args_is_help=True)

Tables = Annotated[Path, typer.Option(help="Folder of a benchmark's tables, whose name is the benchmark's.")]
Tasks = Annotated[
    str, typer.Option(help="Names of tasks with commas between them, each of which must be there; empty for all.")
]


@app.command("prepare-holdout")
def prepare_holdout_command(
    *,
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
    """Make the hold-out benchmark: what held-out papers cite and are cited with, among random papers."""
    from cocite.config.benchmark import HoldoutSettings
    from cocite.config.settings import parse_settings
    from cocite.evaluation.benchmark import Prepared
    from cocite.evaluation.preparation.holdout import Budget, Release, prepare_holdout

    prepare_holdout(
        Release(papers=papers, citations=citations, queries=queries),
        parse_settings(HoldoutSettings, settings),
        seed,
        Budget(memory_mb=memory_mb, threads=threads, spill_to=tables),
        Prepared(tables=tables, omissions=omissions),
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
    from cocite.evaluation.preparation.layout import fetch_config

    fetch_config(dataset, revision, config, names(splits), state=state, output=output)


@app.command("prepare-folder")
def prepare_folder_command(
    folder: Annotated[Path, typer.Argument(help="Folder of the benchmark, in the layout of its kind.")],
    *,
    kind: Annotated[str, typer.Option(help="Kind of the benchmark: a module of cocite.config.benchmarks.")],
    tasks: Tasks,
    tables: Tables,
    omissions: Omissions,
) -> None:
    """Read a benchmark that others made."""
    from cocite.config.benchmarks import BENCHMARKS, LAYOUTS, names
    from cocite.config.plugins import check_choice
    from cocite.evaluation.benchmark import Prepared
    from cocite.evaluation.preparation.beir import prepare_beir
    from cocite.evaluation.preparation.mdcr import prepare_mdcr
    from cocite.evaluation.preparation.s2and import prepare_s2and
    from cocite.evaluation.preparation.scidocs import prepare_scidocs
    from cocite.evaluation.preparation.scirepeval import prepare_scirepeval

    readers = {
        "scirepeval": prepare_scirepeval,
        "scidocs": prepare_scidocs,
        "mdcr": prepare_mdcr,
        "beir": prepare_beir,
        "s2and": prepare_s2and,
    }
    check_choice(kind, [known for known, layout in LAYOUTS.items() if layout in readers], "--kind")
    files = Prepared(tables=tables, omissions=omissions)
    readers[LAYOUTS[kind]](folder, tasks=names(tasks), files=files, declared=BENCHMARKS[kind])
