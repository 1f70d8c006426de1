"""`cocite graph …`: count pairs of papers, shard citations by the cited paper, make edges."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cocite.ground.options import Buckets, MemoryMb, Omissions, Output, Queries, Settings, Threads

app = typer.Typer(no_args_is_help=True)

Bucket = Annotated[int, typer.Option(help="The bucket to write.")]


@app.command()
def count(
    citations: Annotated[
        list[Path],
        typer.Argument(
            help="All buckets of citations; for coupling, of citations_by_cited; for sentences, of contexts."
        ),
    ],
    queries: Queries,
    settings: Settings,
    bucket: Bucket,
    buckets: Buckets,
    memory_mb: MemoryMb,
    output: Output,
    omissions: Omissions,
) -> None:
    """Count one bucket of the pairs of papers that are cited together, or that cite together."""
    from cocite.config.graphs import Counting
    from cocite.config.settings import parse_settings
    from cocite.graph.pairs import count_pairs

    count_pairs(
        citations,
        queries,
        parse_settings(Counting, settings),
        bucket=bucket,
        buckets=buckets,
        memory_mb=memory_mb,
        output=output,
        omissions=omissions,
    )


@app.command()
def split_citations(
    citations: Annotated[Path, typer.Argument(help="One bucket of the table citations.")],
    queries: Queries,
    buckets: Buckets,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Cut one bucket of citations by the bucket of the cited paper."""
    from cocite.graph import citations as sharding

    sharding.split_citations(
        citations=citations, queries=queries, buckets=buckets, memory_mb=memory_mb, threads=threads, output=output
    )


@app.command()
def unite_citations(
    split: Annotated[list[Path], typer.Argument(help="Folders that `split-citations` wrote.")],
    bucket: Bucket,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Put one bucket of the citations together, by the cited paper."""
    from cocite.graph import citations as sharding

    sharding.unite_citations(split=split, bucket=bucket, memory_mb=memory_mb, threads=threads, output=output)


@app.command()
def pair_edges(
    pairs: Annotated[Path, typer.Argument(help="One bucket of pairs.")],
    table: Annotated[Literal["cocitations", "couplings"], typer.Option(help="Which table of pairs it is.")],
    min_count: Annotated[int, typer.Option(help="Smallest count that makes an edge.")],
    output: Output,
    omissions: Omissions,
) -> None:
    """Make edges of pairs."""
    from cocite.graph.edges import edges_of_pairs

    edges_of_pairs(pairs=pairs, table=table, min_count=min_count, output=output, omissions=omissions)


@app.command()
def citation_edges(
    citations: Annotated[Path, typer.Argument(help="One bucket of the table citations.")],
    queries: Queries,
    bucket: Bucket,
    buckets: Buckets,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    by_cited: Annotated[
        Path | None, typer.Argument(help="The same bucket of citations_by_cited, for undirected edges.")
    ] = None,
) -> None:
    """Make edges of citations."""
    from cocite.graph.edges import edges_of_citations

    edges_of_citations(
        citations=citations,
        by_cited=by_cited,
        queries=queries,
        bucket=bucket,
        buckets=buckets,
        memory_mb=memory_mb,
        threads=threads,
        output=output,
    )


@app.command()
def count_intents(
    edges: Annotated[Path, typer.Argument(help="Folder of the edges of a directed citation graph.")],
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Count the citations of a graph by their intent."""
    from cocite.graph import intents

    intents.count_intents(edges, memory_mb=memory_mb, threads=threads, output=output)


@app.command()
def combine(
    edges: Annotated[list[Path], typer.Argument(help="Folder of the edges of each graph.")],
    settings: Settings,
    bucket: Bucket,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Add up the edges of several graphs."""
    from cocite.config.graphs import Combination
    from cocite.config.settings import parse_settings
    from cocite.graph.edges import combine_graphs

    combine_graphs(
        edges,
        parse_settings(Combination, settings),
        bucket=bucket,
        memory_mb=memory_mb,
        threads=threads,
        output=output,
    )
