"""`cocite demo …`: generate a small release and a benchmark, and serve the release."""

from pathlib import Path
from typing import Annotated

import typer

from cocite.ground.options import Output, Seed

app = typer.Typer(no_args_is_help=True)


@app.command()
def release(
    release: Annotated[str, typer.Option(help="Id of the release, a date.")],
    papers: Annotated[int, typer.Option(help="Number of papers.")],
    topics: Annotated[int, typer.Option(help="Number of topics that texts and citations follow.")],
    shards: Annotated[int, typer.Option(help="Shards of each dataset.")],
    seed: Seed,
    output: Output,
) -> None:
    """Write a small generated release in the format of a real one."""
    from cocite.demo.release import generate_release

    generate_release(output, release=release, papers=papers, topics=topics, shards=shards, seed=seed)


@app.command()
def benchmark(
    release: Annotated[Path, typer.Option(help="Folder of a generated release.")], seed: Seed, output: Output
) -> None:
    """Write a small benchmark about a generated release, in the layout of SciRepEval."""
    from cocite.demo.benchmark import generate_benchmark

    generate_benchmark(release, output, seed=seed)


@app.command()
def serve(
    release: Annotated[Path, typer.Argument(help="Folder of a release.")],
    command: Annotated[
        list[str] | None, typer.Argument(help="Command to run meanwhile, after --; SERVER stands for the base URL.")
    ] = None,
) -> None:
    """Serve a release as the Datasets API does, while a command runs or until Ctrl-C."""
    from cocite.demo.serving import run_served, serve_until_interrupted

    if command:
        raise typer.Exit(run_served(release, command))
    for url, key in serve_until_interrupted(release):
        typer.echo(f"{url}\nS2_API_KEY={key}")
