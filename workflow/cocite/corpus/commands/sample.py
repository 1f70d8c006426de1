"""A small corpus, cut from a large one."""

from pathlib import Path
from typing import Annotated

import typer

from cocite.ground.options import MemoryMb, Seed, Threads

app = typer.Typer()


@app.command()
def sample(
    results: Annotated[Path, typer.Option(help="Folder of the results of a run whose corpus is made.")],
    output: Annotated[Path, typer.Option(help="Folder to write, in the layout of a release; it must not exist.")],
    count: Annotated[int, typer.Option(min=1, help="Queries that the sample starts from.")] = 100,
    ids: Annotated[
        Path | None, typer.Option(help="Text file of the papers that it starts from instead, an id or a name a line.")
    ] = None,
    depth: Annotated[int, typer.Option(min=0, help="Steps along citations from there, in both directions.")] = 2,
    neighbours: Annotated[
        int, typer.Option(min=1, help="References, and as many citing papers, that are followed of each paper at most.")
    ] = 10,
    seed: Seed = 1,
    memory_mb: MemoryMb = 2000,
    threads: Threads = 2,
) -> None:
    """Cut a small corpus from that of a run, to try a configuration on: some queries and their neighbourhood."""
    from cocite.corpus.sample.release import SampleSettings, describe, write_sample

    settings = SampleSettings(count=count, listed=ids, depth=depth, neighbours=neighbours, seed=seed)
    written = write_sample(results, settings, output=output, memory_mb=memory_mb, threads=threads)
    typer.echo(describe(written, output))
