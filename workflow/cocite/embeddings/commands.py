"""`cocite embeddings …`: import edges, train and measure graph embeddings."""

from pathlib import Path
from typing import Annotated

import typer

from cocite.ground.options import MemoryMb, Omissions, Output, Seed, Settings, State, Threads, WrittenSettings

app = typer.Typer(no_args_is_help=True)

Edges = Annotated[list[Path], typer.Argument(help="Files of the table edges.")]
Directed = Annotated[bool, typer.Option("--directed/--undirected", help="An undirected edge is trained on both ways.")]
Training = Annotated[Path, typer.Option(help="Edges to train on: source and target, separated by a tab.")]
HoldoutEdges = Annotated[Path, typer.Option(help="Edges kept from training, in the same form.")]


@app.command("import")
def import_(edges: Edges, directed: Directed, settings: Settings, seed: Seed, output: Output) -> None:
    """Turn the edges of a graph into the folder that engines train from."""
    from cocite.config.embeddings import EdgeSettings
    from cocite.config.settings import parse_settings
    from cocite.embeddings.importing import import_edges

    import_edges(edges, parse_settings(EdgeSettings, settings), directed=directed, seed=seed, output=output)


@app.command()
def split(
    edges: Edges,
    directed: Directed,
    settings: Settings,
    seed: Seed,
    memory_mb: MemoryMb,
    threads: Threads,
    training: Training,
    holdout_edges: HoldoutEdges,
) -> None:
    """Split the edges of a graph into those to train on and those to measure on, for PyTorch-BigGraph's importer."""
    from cocite.config.embeddings import EdgeSettings
    from cocite.config.settings import parse_settings
    from cocite.embeddings.engines.biggraph.tsv import split_edges

    split_edges(
        edges,
        parse_settings(EdgeSettings, settings),
        directed=directed,
        seed=seed,
        memory_mb=memory_mb,
        threads=threads,
        training=training,
        holdout=holdout_edges,
    )


@app.command()
def import_tsv(
    training: Training,
    holdout_edges: HoldoutEdges,
    partitions: Annotated[int, typer.Option(help="Parts that the papers are cut into.")],
    seed: Seed,
    output: Output,
) -> None:
    """Turn split edges into the folder that PyTorch-BigGraph trains from, with its own importer."""
    from cocite.embeddings.engines.biggraph import tsv

    tsv.import_tsv(training=training, holdout=holdout_edges, partitions=partitions, seed=seed, output=output)


@app.command()
def train(
    imported: Annotated[Path, typer.Argument(help="Folder that an import made.")],
    settings: Settings,
    seed: Seed,
    state: State,
    vectors: Annotated[Path, typer.Option(help="Table graph_embeddings.")],
    scores: Annotated[Path, typer.Option(help="Table graph_scores.")],
    written_settings: WrittenSettings,
    omissions: Omissions,
) -> None:
    """Train a graph embedding and measure it; a killed training is resumed."""
    from cocite.config.embeddings import AnyEngine
    from cocite.config.entries import as_json
    from cocite.config.settings import parse_settings
    from cocite.embeddings.imported import ImportedFolder
    from cocite.embeddings.vectors import write_scores, write_vectors
    from cocite.ground.checkpoints import remove_state
    from cocite.tables.files import write_json, write_omissions

    engine = parse_settings(AnyEngine, settings)
    trained = engine.train(imported, seed=seed, state=state)
    untrained = write_vectors(vectors, ImportedFolder(imported), trained.vectors)
    write_scores(scores, trained.scores)
    write_omissions(omissions, {"papers whose edges were all held out: never trained, no vector": untrained})
    write_json(written_settings, {**as_json(engine), "seed": seed})
    remove_state(state)
