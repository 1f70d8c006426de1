"""`cocite embeddings …`: import edges, train and measure graph embeddings."""

from pathlib import Path
from typing import Annotated

import typer

from cocite.ground.options import MemoryMb, Omissions, Output, Seed, Settings, State, Threads, WrittenSettings

app = typer.Typer(no_args_is_help=True)

Directed = Annotated[bool, typer.Option("--directed/--undirected", help="An undirected edge is trained on both ways.")]
Edges = Annotated[list[Path], typer.Argument(help="Files of the table edges.")]


@app.command("import")
def import_(
    edges: Edges,
    directed: Directed,
    settings: Settings,
    seed: Seed,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Turn the edges of a graph into the folder that engines train from."""
    from cocite.config.edges import EdgeSettings
    from cocite.config.settings import parse_settings
    from cocite.embeddings.importing import import_edges

    chosen = parse_settings(EdgeSettings, settings)
    if chosen.import_ == "tsv":
        from cocite.embeddings.engines.biggraph.tsv import import_as_published

        cost = {"memory_mb": memory_mb, "threads": threads}
        import_as_published(edges, chosen, directed=directed, seed=seed, **cost, output=output)
    else:
        import_edges(edges, chosen, directed=directed, seed=seed, output=output)


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
    untrained = write_vectors(vectors, ImportedFolder(imported), trained.vectors, engine.remedy)
    write_scores(scores, trained.scores)
    write_omissions(omissions, {"papers whose edges were all held out: never trained, no vector": untrained})
    write_json(written_settings, {**as_json(engine), "seed": seed})
    remove_state(state)
