"""Queries: fetch published ones, choose them, and check that nothing leaks."""

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

app = typer.Typer()


@app.command()
def fetch_triplets(
    dataset: Annotated[str, typer.Option(help="Dataset of the Hugging Face hub.")],
    revision: Annotated[str, typer.Option(help="Its commit.")],
    state: State,
    output: Output,
) -> None:
    """Fetch published triplets from the Hugging Face hub; a killed fetch resumes where it stopped."""
    from cocite.corpus.queries.published import fetch_triplets as fetch

    fetch(dataset, revision, state=state, output=output)


@app.command()
def read_triplets(
    folder: Annotated[Path, typer.Argument(help="Folder of the triplets: the fetched one, or a copy.")],
    output: Output,
    omissions: Omissions,
    matches: Annotated[str, typer.Option(help="Table matches, where the corpus has other ids than theirs.")] = "",
) -> None:
    """Read the queries of published triplets."""
    from cocite.corpus.queries.published import read_triplets as read

    read(folder, matches=Path(matches) if matches else None, output=output, omissions=omissions)


@app.command()
def select(
    papers: Papers,
    citations: Citations,
    settings: Settings,
    seed: Seed,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    omissions: Omissions,
    exclude: Annotated[
        list[Path] | None,
        typer.Argument(
            help="What to exclude: text files of ids, tables documents of benchmarks (.parquet), and with them the "
            "tables document_papers of those whose ids alone do not say which papers they are."
        ),
    ] = None,
) -> None:
    """Choose the papers that anchor triplets, and the papers that are kept out of all that models learn from."""
    from cocite.config.queries import QuerySettings
    from cocite.config.settings import parse_settings
    from cocite.corpus.queries.selection import select as select_queries

    select_queries(
        papers,
        citations,
        parse_settings(QuerySettings, settings),
        seed,
        exclude=exclude or (),
        output=output,
        omissions=omissions,
        memory_mb=memory_mb,
        threads=threads,
    )


@app.command()
def leaks(
    results: Annotated[Path, typer.Option(help="Folder of the results.")],
    queries: Queries,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    tables: Annotated[
        list[Path] | None, typer.Argument(help="Files of tables, or folders of their buckets; all if none is named.")
    ] = None,
    oracles: Annotated[
        str,
        typer.Option(help="Sets that hold the answers of benchmarks, with the names of these benchmarks, as JSON."),
    ] = "{}",
) -> None:
    """Check that the finished tables hold no held-out or excluded paper."""
    import json

    from cocite.corpus.queries.leaks import check_leaks

    check_leaks(
        results,
        queries,
        tables or (),
        oracles=json.loads(oracles),
        output=output,
        memory_mb=memory_mb,
        threads=threads,
    )
