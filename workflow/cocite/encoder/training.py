"""Fine-tune an encoder on triplets: tables training_texts in; the encoder, its curves and its settings out.

The published recipe (CoCite, 2024): AdamW, linear warm-up, then linear decay; the state with the smallest validation
loss is kept. A training that was killed, or has stopped by itself, goes on from its last checkpoint and ends with the
same weights and curves.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cocite.encoder import processes
from cocite.encoder.checkpoints import BEST, EVENTS, fingerprint_of, open_state, remove_state
from cocite.encoder.folder import open_encoder
from cocite.encoder.preparation import trainer_of
from cocite.encoder.results import Outputs, write_results
from cocite.encoder.schedule import Schedule
from cocite.encoder.settings import TrainingSettings
from cocite.encoder.stopping import Stopping, Unfinished
from cocite.encoder.trainable import choose_weights, load_learned, sum_up
from cocite.encoder.triplets import Triplets, prepare_triplets
from cocite.progress import report
from cocite.randomness import derive_seed


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What a training is made from."""

    encoder: Path
    """Folder of the encoder to start from."""
    training: Path
    """Folder of the shards of training_texts to learn from."""
    validation: Path
    """Folder of the shards of validation_texts to validate on."""


def train_encoder(
    inputs: Inputs,
    outputs: Outputs,
    settings: TrainingSettings,
    *,
    seed: int,
    training_seed: int,
    threads: int,
    state: Path,
    stopping: Stopping | None = None,
) -> None:
    """Train, or go on with a training that was killed or stopped; then write the results and remove `state`.

    Raises `Unfinished` where `stopping` said to stop before the end, and `InputError` if the tables cannot be used,
    the loss stops being a number, or memory runs out.
    """
    stopping = stopping or Stopping()
    torch.set_num_threads(threads)
    # A GPU has no deterministic kernel for a few operations; those warn instead of ending the training.
    torch.use_deterministic_algorithms(True, warn_only=True)
    processes.connect()
    seeds = {"run": seed, "training": training_seed}
    encoder = open_encoder(inputs.encoder)
    with processes.first_goes_first():
        checkpoint = open_state(state, _fingerprint(inputs, settings, seeds))
        training, validation = (
            prepare_triplets(table, state / "triplets" / name, encoder.tokenizer, encoder.max_seq_length)
            for name, table in (("training", inputs.training), ("validation", inputs.validation))
        )
    _report_start(training, validation, checkpoint)
    training_seed = derive_seed(seed, "train", training_seed)
    choose_weights(encoder, settings, training_seed)
    schedule = Schedule(settings.evaluations, stopping)
    trainer = trainer_of(encoder, training, validation, settings, training_seed, state, schedule)
    with stopping.listening():
        trainer.go_on(checkpoint)
    if schedule.stopped is not None:
        raise Unfinished(
            f"Stopped after step {trainer.state.global_step} of {trainer.state.max_steps}: {schedule.stopped}. "
            "All is saved; started again, the training goes on from here."
        )
    if processes.is_first():
        best = _best_encoder(inputs.encoder, state, settings, training_seed)
        provenance = {
            "settings": settings.resolved(),
            "seeds": seeds,
            "triplets": {"training": len(training.rows), "validation": len(validation.rows)},
        }
        write_results(outputs, best, trainer.state.log_history, events=state / EVENTS, **provenance)
        remove_state(state)


def _fingerprint(inputs: Inputs, settings: TrainingSettings, seeds: dict[str, int]) -> dict[str, Any]:
    """What a checkpoint must have been made with, for a training to go on from it."""
    return {
        "settings": settings.resolved(),
        "seeds": seeds,
        "processes": processes.count(),
        "inputs": fingerprint_of([inputs.encoder, inputs.training, inputs.validation]),
    }


def _best_encoder(folder: Path, state: Path, settings: TrainingSettings, seed: int) -> Any:
    encoder = open_encoder(folder)
    choose_weights(encoder, settings, seed)
    load_learned(encoder, state / BEST)
    sum_up(encoder, settings)
    return encoder


def _report_start(training: Triplets, validation: Triplets, checkpoint: Path | None) -> None:
    if not processes.is_first():
        return
    report(
        f"Training on {len(training.rows)} triplets over {len(training.documents)} documents, validating on "
        f"{len(validation.rows)}."
    )
    if checkpoint is not None:
        report(f"Going on from {checkpoint.name}.")
