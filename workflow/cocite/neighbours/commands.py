"""`cocite neighbours …`: search nearest neighbours."""

from pathlib import Path
from typing import Annotated

import typer

from cocite.options import Omissions, Output, Queries, State, Threads

app = typer.Typer(no_args_is_help=True)


@app.callback()
def stage() -> None:
    """Commands of the stage neighbours."""


@app.command()
def search(
    vectors: Annotated[Path, typer.Option(help="Table graph_embeddings.")],
    queries: Queries,
    metric: Annotated[str, typer.Option(help="cosine or l2.")],
    k: Annotated[int, typer.Option(help="Neighbours of each query.")],
    threads: Threads,
    state: State,
    output: Output,
    omissions: Omissions,
    papers: Annotated[
        list[Path] | None, typer.Argument(help="Buckets of the table papers, to search only papers with a text.")
    ] = None,
) -> None:
    """Find the k nearest neighbours of each training and validation query."""
    from cocite.files import write_omissions
    from cocite.neighbours.searching import search_neighbours

    missing = search_neighbours(
        vectors, queries, papers=papers or (), metric=metric, k=k, threads=threads, state=state, output=output
    )
    write_omissions(omissions, {"queries without a vector: they have no edge to train on": missing})
