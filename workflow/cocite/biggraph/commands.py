"""`cocite biggraph …`: split and import edges, train and measure graph embeddings."""

from pathlib import Path
from typing import Annotated

import typer

from cocite.options import MemoryMb, Omissions, Output, Seed, Settings, State, Threads, WrittenSettings

app = typer.Typer(no_args_is_help=True)

Edges = Annotated[list[Path], typer.Argument(help="Files of the table edges.")]
Training = Annotated[Path, typer.Option(help="Edges to train on: source and target, separated by a tab.")]
HoldoutEdges = Annotated[Path, typer.Option(help="Edges kept from training, in the same form.")]


@app.command()
def split(
    edges: Edges,
    directed: Annotated[bool, typer.Option("--directed/--undirected", help="An undirected pair is written both ways.")],
    holdout: Annotated[float, typer.Option(help="Share of the pairs kept from training.")],
    seed: Seed,
    memory_mb: MemoryMb,
    threads: Threads,
    training: Training,
    holdout_edges: HoldoutEdges,
) -> None:
    """Split the edges of a graph into those to train on and those to measure link prediction on."""
    from cocite.biggraph.splitting import split_edges

    split_edges(
        edges,
        directed=directed,
        share=holdout,
        seed=seed,
        memory_mb=memory_mb,
        threads=threads,
        training=training,
        holdout=holdout_edges,
    )


@app.command("import")
def import_(training: Training, holdout_edges: HoldoutEdges, seed: Seed, output: Output) -> None:
    """Turn edges into the folder that PyTorch-BigGraph trains from, with its own importer."""
    from cocite.biggraph.importing import import_edges

    import_edges(training=training, holdout=holdout_edges, seed=seed, output=output)


@app.command()
def train(
    imported: Annotated[Path, typer.Argument(help="Folder that `import` made.")],
    settings: Settings,
    seed: Seed,
    state: State,
    vectors: Annotated[Path, typer.Option(help="Table graph_embeddings.")],
    scores: Annotated[Path, typer.Option(help="Table graph_scores.")],
    written_settings: WrittenSettings,
    omissions: Omissions,
) -> None:
    """Train a graph embedding, measure it after each epoch, and go on where a killed training stood."""
    from cocite.biggraph.checkpoints import TrainingState
    from cocite.biggraph.configuration import GraphEmbeddingSettings
    from cocite.biggraph.training import train_graph_embedding
    from cocite.biggraph.vectors import write_scores, write_vectors
    from cocite.files import write_json, write_omissions
    from cocite.settings import parse_settings, settings_as_dict

    chosen = parse_settings(GraphEmbeddingSettings, settings)
    trained = train_graph_embedding(imported, chosen, seed=seed, state=state)
    untrained = write_vectors(vectors, imported, trained.checkpoint)
    write_scores(scores, trained.scores)
    write_omissions(omissions, {"papers whose edges were all held out: never trained, no vector": untrained})
    write_json(written_settings, {**settings_as_dict(chosen), "seed": seed})
    TrainingState(state).remove()
