"""`cocite graph …`: count co-citations, add them up, make edges."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cocite.options import Buckets, MemoryMb, Output, Queries, Threads

app = typer.Typer(no_args_is_help=True)

Bucket = Annotated[int, typer.Option(help="The bucket to write.")]


class Pairs(StrEnum):
    """Which pairs of references are counted."""

    query = "query"
    all = "all"


@app.command()
def count(
    citations: Annotated[Path, typer.Option(help="One bucket of the table citations.")],
    queries: Queries,
    pairs: Annotated[Pairs, typer.Option(help="Pairs with a query at one end, or all.")],
    buckets: Buckets,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Count the co-citations by one bucket of citing papers."""
    from cocite.graph.cocitations import count_cocitations

    count_cocitations(
        citations=citations,
        queries=queries,
        pairs=pairs,
        buckets=buckets,
        memory_mb=memory_mb,
        threads=threads,
        output=output,
    )


@app.command()
def merge(
    counted: Annotated[list[Path], typer.Argument(help="Folders that `count` wrote, one a bucket of citing papers.")],
    bucket: Bucket,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Add up one bucket of pairs over all citing papers."""
    from cocite.graph.cocitations import merge_cocitations

    merge_cocitations(counted=counted, bucket=bucket, memory_mb=memory_mb, threads=threads, output=output)


@app.command()
def cocitation_edges(
    cocitations: Annotated[Path, typer.Option(help="One bucket of the table cocitations.")],
    min_count: Annotated[int, typer.Option(help="Smallest count that makes an edge.")],
    output: Output,
) -> None:
    """Make edges of co-citations."""
    from cocite.graph.edges import edges_of_cocitations

    edges_of_cocitations(cocitations=cocitations, min_count=min_count, output=output)


@app.command()
def citation_edges(
    citations: Annotated[list[Path], typer.Argument(help="All buckets of the table citations.")],
    queries: Queries,
    directed: Annotated[bool, typer.Option("--directed/--undirected", help="Whether an edge has a direction.")],
    bucket: Bucket,
    buckets: Buckets,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Make edges of citations."""
    from cocite.graph.edges import edges_of_citations

    edges_of_citations(
        citations=citations,
        queries=queries,
        directed=directed,
        bucket=bucket,
        buckets=buckets,
        memory_mb=memory_mb,
        threads=threads,
        output=output,
    )
