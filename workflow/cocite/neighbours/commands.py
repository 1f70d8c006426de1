"""`cocite neighbours …`: search nearest neighbours in vectors, exactly or in an index, or walk on a graph to them."""

from pathlib import Path
from typing import Annotated

import typer

from cocite.ground.options import MemoryMb, Omissions, Output, Queries, Seed, Settings, State, Threads

app = typer.Typer(no_args_is_help=True)

Shard = Annotated[int, typer.Option(help="Number of the shard of queries, from 0.")]
Shards = Annotated[int, typer.Option(help="Shards of the queries, by corpus id modulo this.")]
Vectors = Annotated[Path, typer.Option(help="Table graph_embeddings.")]
Papers = Annotated[
    list[Path] | None,
    typer.Argument(help="Buckets of papers, or triplets: search only papers with a text, or those of triplets."),
]


@app.command()
def index(
    vectors: Vectors, settings: Settings, seed: Seed, threads: Threads, output: Output, papers: Papers = None
) -> None:
    """Build an approximate index of the papers."""
    from cocite.config.embeddings import IndexSettings
    from cocite.config.settings import parse_settings
    from cocite.neighbours.indexes import build_index

    chosen = parse_settings(IndexSettings, settings)
    build_index(vectors, chosen, papers=papers or (), seed=seed, threads=threads, output=output)


@app.command()
def search(
    vectors: Vectors,
    queries: Queries,
    settings: Settings,
    shard: Shard,
    shards: Shards,
    memory_mb: MemoryMb,
    threads: Threads,
    state: State,
    output: Output,
    omissions: Omissions,
    index: Annotated[str, typer.Option(help="Folder of an approximate index; empty, the search is exact.")] = "",
    papers: Papers = None,
) -> None:
    """Find the k nearest neighbours of each training and validation query of a shard."""
    from cocite.config.embeddings import SearchSettings
    from cocite.config.settings import parse_settings
    from cocite.neighbours.searching import search_neighbours
    from cocite.tables.files import write_omissions

    left_out = search_neighbours(
        vectors,
        queries,
        parse_settings(SearchSettings, settings),
        index=Path(index) if index else None,
        papers=papers or (),
        shard=(shard, shards),
        memory_mb=memory_mb,
        threads=threads,
        state=state,
        output=output,
    )
    write_omissions(omissions, left_out)


@app.command()
def measure(
    vectors: Vectors,
    queries: Queries,
    settings: Settings,
    index: Annotated[Path, typer.Option(help="Folder of an approximate index.")],
    sample: Annotated[int, typer.Option(help="Queries that are searched both ways.")],
    seed: Seed,
    threads: Threads,
    output: Output,
    papers: Papers = None,
) -> None:
    """Measure the recall of an approximate index on a sample of the queries."""
    from cocite.config.embeddings import SearchSettings
    from cocite.config.settings import parse_settings
    from cocite.neighbours.searching import measure_search

    measure_search(
        vectors,
        queries,
        parse_settings(SearchSettings, settings),
        index=index,
        papers=papers or (),
        sample=sample,
        seed=seed,
        threads=threads,
        output=output,
    )


@app.command()
def adjacency(
    edges: Annotated[list[Path], typer.Argument(help="Buckets of the table edges.")],
    settings: Settings,
    memory_mb: MemoryMb,
    output: Output,
) -> None:
    """Lay out the links of each paper of a graph, for walks."""
    from cocite.config.settings import parse_settings
    from cocite.config.walks import Links
    from cocite.neighbours.adjacency import build_adjacency

    weighted = parse_settings(Links, settings).weighted
    build_adjacency(edges, weighted=weighted, memory_mb=memory_mb, output=output)


@app.command()
def walk(
    adjacency: Annotated[Path, typer.Option(help="Folder of the links of a graph.")],
    queries: Queries,
    settings: Settings,
    shard: Shard,
    shards: Shards,
    memory_mb: MemoryMb,
    threads: Threads,
    state: State,
    output: Output,
    omissions: Omissions,
    papers: Annotated[
        list[Path] | None, typer.Argument(help="Buckets of the table papers, to rank only papers with a text.")
    ] = None,
) -> None:
    """Rank the papers around each training and validation query of a shard by random walks with restart."""
    from cocite.config.settings import parse_settings
    from cocite.config.walks import WalkSettings
    from cocite.neighbours.walking import walk_neighbours
    from cocite.tables.files import write_omissions

    left_out = walk_neighbours(
        adjacency,
        queries,
        parse_settings(WalkSettings, settings),
        papers=papers or (),
        shard=(shard, shards),
        memory_mb=memory_mb,
        threads=threads,
        state=state,
        output=output,
    )
    write_omissions(omissions, left_out)


@app.command()
def mine(
    examples: Annotated[Path, typer.Argument(help="Table triplets or sampled_examples: queries and positives.")],
    papers: Annotated[Path, typer.Option(help="Folder of the table papers.")],
    queries: Queries,
    settings: Settings,
    memory_mb: MemoryMb,
    threads: Threads,
    state: State,
    candidates: Annotated[Path, typer.Option(help="Table mined_candidates to write.")],
    positives: Annotated[Path, typer.Option(help="Table mined_positives to write.")],
    omissions: Omissions,
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Tables paper_embeddings and text_embeddings, none for BM25; and sampled_texts, of a set that brings "
            "texts."
        ),
    ] = None,
) -> None:
    """Rank documents for each query of a set of examples, by words or by vectors, for hard negatives."""
    from cocite.config.mining import SearchedDocuments
    from cocite.config.settings import parse_settings
    from cocite.neighbours.mining import mine as mine_documents
    from cocite.neighbours.mining import sort_sources
    from cocite.tables.files import write_omissions

    left_out = mine_documents(
        examples,
        sort_sources(sources or (), papers=papers, queries=queries),
        parse_settings(SearchedDocuments, settings),
        memory_mb=memory_mb,
        threads=threads,
        state=state,
        candidates=candidates,
        positives=positives,
    )
    write_omissions(omissions, left_out)
