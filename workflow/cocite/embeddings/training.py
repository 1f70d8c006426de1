"""Training of a graph embedding by the engine that its settings name: the vectors, and what they score."""

from pathlib import Path
from typing import Annotated

import typer

from cocite.config.embeddings import AnyEngine
from cocite.config.entries import as_json
from cocite.config.settings import GivenAsJson
from cocite.core.checkpoints import remove_state
from cocite.core.options import Omissions, Seed, State, WrittenSettings
from cocite.core.tables.files import write_json, write_omissions
from cocite.embeddings.imported import ImportedFolder
from cocite.embeddings.vectors import write_scores, write_vectors


def train(
    imported: Annotated[Path, typer.Argument(help="Folder that an import made.")],
    settings: GivenAsJson[AnyEngine],
    *,
    seed: Seed,
    state: State,
    vectors: Annotated[Path, typer.Option(help="Table graph_embeddings.")],
    scores: Annotated[Path, typer.Option(help="Table graph_scores.")],
    written_settings: WrittenSettings,
    omissions: Omissions,
) -> None:
    """Train a graph embedding and measure it; a killed training is resumed."""
    trained = settings.train(imported, seed=seed, state=state)
    untrained = write_vectors(vectors, ImportedFolder(imported), trained.vectors, settings.remedy)
    write_scores(scores, trained.scores)
    write_omissions(omissions, {"papers whose edges were all held out: never trained, no vector": untrained})
    write_json(written_settings, {**as_json(settings), "seed": seed})
    remove_state(state)
