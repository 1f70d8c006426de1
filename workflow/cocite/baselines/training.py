"""Train a baseline: the tables that it names in, the folder of a model out, with the settings that made it."""

from pathlib import Path
from typing import Annotated

import typer

from cocite.baselines.steps import GivenSources, Training
from cocite.config.baseline import Baseline
from cocite.config.baselines import AnyBaseline
from cocite.config.entries import as_json
from cocite.config.settings import GivenAsJson, entry_of
from cocite.core.checkpoints import remove_state
from cocite.core.options import MemoryMb, Output, Queries, Seed, State, Threads
from cocite.core.space import explain_full_disk
from cocite.core.tables.files import atomic_path, read_json, write_json

SETTINGS = "settings.json"
"""The settings of a model, in its folder: what it embeds with."""


def train_baseline(
    settings: GivenAsJson[AnyBaseline],
    sources: GivenSources,
    *,
    queries: Queries,
    seed: Seed,
    training_seed: Annotated[int, typer.Option(help="Seed of this training; 0 where nothing is drawn.")],
    memory_mb: MemoryMb,
    threads: Threads,
    state: State,
    output: Output,
) -> None:
    """Train a baseline on the corpus without the papers that are kept out; a killed training is resumed."""
    with explain_full_disk(output), atomic_path(output) as folder:
        folder.mkdir(exist_ok=True)
        training = Training(
            **vars(sources),
            queries=queries,
            seed=seed,
            training_seed=training_seed,
            memory_mb=memory_mb,
            threads=threads,
            state=state,
            output=folder,
        )
        settings.train(training)
        write_json(folder / SETTINGS, {"baseline": as_json(settings), "seed": seed, "training_seed": training_seed})
    remove_state(state)


def read_trained(model: Path) -> Baseline:
    """The baseline that a model was trained as. Raises `InputError` where the folder holds none."""
    baseline: Baseline = entry_of(read_json(model / SETTINGS)["baseline"], AnyBaseline)
    return baseline
