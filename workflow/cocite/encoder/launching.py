"""Start a training of an encoder: in this process or in several, and with a status of its own where it has stopped."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cocite.config.models import TrainingSettings
from cocite.config.origins import read_origin
from cocite.config.settings import GivenAsJson
from cocite.core.gpus import take_gpus
from cocite.core.options import Output, PrecisionOption, Seed, State, Threads, WrittenSettings
from cocite.core.progress import report
from cocite.encoder.processes import UNFINISHED_STATUS, count, start
from cocite.encoder.schedule import Stopping, Unfinished, seconds_left
from cocite.encoder.teachers import read_teachers

Sets = Annotated[
    Sequence[Path],
    typer.Argument(
        help="For each objective: the table training_examples to learn from, the folder of the tokens of its "
        "documents, the table validation_examples to validate on, and the folder of the tokens of its documents."
    ),
]
TimeLimit = Annotated[
    float | None, typer.Option(help="Minutes until the job is ended; the training saves and stops before.")
]
Origin = Annotated[
    str | None, typer.Option(help="What the model comes from, as JSON: that part of the configuration, for its card.")
]
Manifest = Annotated[
    Path | None, typer.Option(help="What `cocite corpus list` wrote: the release, and whose it is, for the card.")
]
Processes = Annotated[
    int, typer.Option(help="Processes that share the training, each with a GPU of its own where there are any.")
]
Teachers = Annotated[
    str, typer.Option(help="Table graph_embeddings of each graph embedding that teaches, by its name, as JSON.")
]


def train(
    sets: Sets,
    encoder: Annotated[Path, typer.Option(help="Folder of the encoder to start from.")],
    settings: GivenAsJson[TrainingSettings],
    seed: Seed,
    training_seed: Annotated[int, typer.Option(help="Number of this training among its repetitions.")],
    threads: Threads,
    state: State,
    output: Output,
    curves: Annotated[Path, typer.Option(help="Table training_curves to write.")],
    written_settings: WrittenSettings,
    events: Annotated[Path, typer.Option(help="Folder of the curves in TensorBoard's format to write.")],
    time_limit: TimeLimit = None,
    origin: Origin = None,
    manifest: Manifest = None,
    precision: PrecisionOption = "auto",
    processes: Processes = 1,
    teachers: Teachers = "{}",
) -> None:
    """Fine-tune an encoder on examples; a killed or stopped training goes on where it stood.

    It ends with status 75 where it has stopped before it was done: upon SIGTERM, SIGUSR1 or Ctrl-C, or for the time
    limit.
    """
    started = time.monotonic()
    if count() == 1:
        take_gpus(processes)
        if processes > 1:
            raise typer.Exit(start(processes, sys.argv[1:]))
    from cocite.encoder.examples import files_of_objectives
    from cocite.encoder.results import Outputs
    from cocite.encoder.training import Inputs, train_encoder

    training, validation = files_of_objectives(sets)
    inputs = Inputs(encoder=encoder, training=training, validation=validation, teachers=read_teachers(teachers))
    about = read_origin(origin, manifest)
    outputs = Outputs(model=output, curves=curves, settings=written_settings, events=events, origin=about)
    try:
        train_encoder(
            inputs,
            outputs,
            settings,
            seed=seed,
            training_seed=training_seed,
            threads=threads,
            state=state,
            precision=precision,
            stopping=Stopping(seconds_left(time_limit), started),
        )
    except Unfinished as stopped:
        report(str(stopped))
        raise typer.Exit(UNFINISHED_STATUS) from None
