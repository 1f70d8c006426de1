"""Fine-tune an encoder on triplets: tables training_texts in; the encoder, its curves and its settings out.

The published recipe (CoCite, 2024): AdamW, linear warm-up, then linear decay; the state with the smallest validation
loss is kept. A training that was killed goes on from its last checkpoint and ends with the same weights and curves.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformerTrainingArguments

from cocite.encoder.batches import BLOCK, ROLES, Collator, EpochBatches
from cocite.encoder.checkpoints import UNFINISHED, fingerprint_of, open_state, remove_state
from cocite.encoder.folder import open_encoder
from cocite.encoder.losses import TripletObjective, loss_of
from cocite.encoder.results import Outputs, write_results
from cocite.encoder.settings import TrainingSettings
from cocite.encoder.trainer import TripletTrainer
from cocite.encoder.triplets import Triplets, prepare_triplets
from cocite.progress import report
from cocite.randomness import derive_seed
from cocite.settings import settings_as_dict

LOGS = 500
"""Times that the training loss is logged in a long training; a checkpoint can only follow a log."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What a training is made from."""

    encoder: Path
    """Folder of the encoder to start from."""
    training: Path
    """Table training_texts to learn from."""
    validation: Path
    """Table training_texts to validate on."""


def train_encoder(
    inputs: Inputs,
    outputs: Outputs,
    settings: TrainingSettings,
    *,
    seed: int,
    training_seed: int,
    threads: int,
    state: Path,
) -> None:
    """Train, or go on with a training that was killed; then write the results and remove `state`.

    Raises `InputError` if the tables cannot be used, or the loss stops being a number.
    """
    torch.set_num_threads(threads)
    # A GPU has no deterministic kernel for a few operations; those warn instead of ending the training.
    torch.use_deterministic_algorithms(True, warn_only=True)
    resolved = {**settings_as_dict(settings), "temperature": settings.resolved_temperature()}
    fingerprint = {
        "settings": resolved,
        "seeds": [seed, training_seed],
        "inputs": fingerprint_of([inputs.encoder, inputs.training, inputs.validation]),
    }
    checkpoint = open_state(state, fingerprint)
    encoder = open_encoder(inputs.encoder)
    training, validation = (
        prepare_triplets(table, state / "triplets" / name, encoder.tokenizer, encoder.max_seq_length)
        for name, table in (("training", inputs.training), ("validation", inputs.validation))
    )
    _report_start(training, validation, checkpoint)
    trainer = _trainer(encoder, training, validation, settings, derive_seed(seed, "train", training_seed), state)
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    write_results(
        outputs,
        open_encoder(state / "best"),
        trainer.state.log_history,
        settings=resolved,
        seeds={"run": seed, "training": training_seed},
        triplets={"training": len(training.rows), "validation": len(validation.rows)},
    )
    remove_state(state)


def _trainer(
    encoder: Any, training: Triplets, validation: Triplets, settings: TrainingSettings, seed: int, state: Path
) -> TripletTrainer:
    loss = loss_of(settings)
    batches = EpochBatches(
        training.rows[:, 0],
        batch_size=settings.batch_size,
        block=BLOCK if settings.loss == "infonce" else 1,
        seed=seed,
    )
    return TripletTrainer(
        model=encoder,
        args=_arguments(settings, len(batches), seed, state),
        train_dataset=Dataset.from_dict({role: training.rows[:, column] for column, role in enumerate(ROLES)}),
        loss=TripletObjective(encoder, loss),
        data_collator=Collator(documents=training.documents, padding=encoder.tokenizer.pad_token_id),
        state_folder=state,
        batches=batches,
        validation=validation,
        validation_loss=loss,
        evaluations=settings.evaluations,
    )


def _arguments(
    settings: TrainingSettings, batches: int, seed: int, state: Path
) -> SentenceTransformerTrainingArguments:
    on_gpu = torch.cuda.is_available()
    bf16 = on_gpu and torch.cuda.is_bf16_supported()
    steps = math.ceil(batches / settings.accumulation) * settings.epochs
    return SentenceTransformerTrainingArguments(
        output_dir=str(state / UNFINISHED),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.accumulation,
        learning_rate=settings.lr,
        lr_scheduler_type="linear",
        warmup_steps=math.ceil(settings.warmup * steps),
        max_grad_norm=settings.max_grad_norm,
        optim="adamw_torch",
        seed=seed % 2**32,
        bf16=bf16,
        fp16=on_gpu and not bf16,
        eval_strategy="no",
        save_strategy="no",
        logging_strategy="no",
        logging_steps=max(1, steps // LOGS),
        logging_nan_inf_filter=False,
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=on_gpu,
    )


def _report_start(training: Triplets, validation: Triplets, checkpoint: Path | None) -> None:
    report(
        f"Training on {len(training.rows)} triplets over {len(training.documents)} documents, validating on "
        f"{len(validation.rows)}."
    )
    if checkpoint is not None:
        report(f"Going on from {checkpoint.name}.")
