"""`cocite demo …`: generate a small release and a benchmark."""

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

    sizes = {"papers": papers, "topics": topics, "shards": shards}
    generate_release(output, release=release, **sizes, seed=seed)


@app.command()
def benchmark(
    release: Annotated[Path, typer.Option(help="Folder of a generated release.")], seed: Seed, output: Output
) -> None:
    """Write a small benchmark about a generated release, in the layout of SciRepEval."""
    from cocite.demo.benchmark import generate_benchmark

    generate_benchmark(release, output, seed=seed)
