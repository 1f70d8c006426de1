"""From settings to a trainer: the batches, the loss, and the arguments of the library."""

import math
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformerTrainingArguments

from cocite.encoder import processes
from cocite.encoder.batches import EpochBatches
from cocite.encoder.checkpoints import UNFINISHED
from cocite.encoder.collation import TOKENS_OF_A_START, Collator
from cocite.encoder.objective import TripletObjective, loss_of
from cocite.encoder.packing import let_pack
from cocite.encoder.schedule import Schedule
from cocite.encoder.settings import TrainingSettings
from cocite.encoder.trainer import TripletTrainer
from cocite.encoder.triplets import Triplets

LOGS = 500
"""Times that the training loss is logged in a long training."""
PACKS = ("cuda",)
"""Devices on which packed documents are faster than groups of like length."""
MAKERS_OF_BATCHES = {"cpu": 0, "cuda": 1}
"""Processes that make batches ahead: a GPU is not to wait for the next one; a CPU has no time to spare for another."""


def trainer_of(
    encoder: Any,
    training: Triplets,
    validation: Triplets,
    settings: TrainingSettings,
    seed: int,
    state: Path,
    schedule: Schedule,
) -> TripletTrainer:
    """A trainer of these triplets by these settings, with its state in this folder."""
    device = encoder.device.type
    loss = loss_of(settings)
    batches = EpochBatches(
        training.rows[:, 0],
        batch_size=settings.batch_size,
        block=settings.resolved_block(),
        seed=seed,
        processes=processes.count(),
    )
    return TripletTrainer(
        model=encoder,
        args=_arguments(settings, len(batches) // processes.count(), seed, state),
        objective=TripletObjective(encoder, loss, recompute=settings.at_once is not None),
        state_folder=state,
        batches=batches,
        collator=Collator(
            triplets=training,
            padding=encoder.tokenizer.pad_token_id,
            start=TOKENS_OF_A_START.get(device, TOKENS_OF_A_START["cpu"]),
            at_once=settings.at_once,
            packs=device in PACKS and let_pack(encoder),
        ),
        validation=validation,
        validation_loss=loss,
        schedule=schedule,
        patience=settings.patience,
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
        optim="adamw_torch_fused",
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
        dataloader_num_workers=MAKERS_OF_BATCHES["cuda" if on_gpu else "cpu"],
        accelerator_config={"non_blocking": on_gpu},
        ddp_find_unused_parameters=False,
        use_cpu=not on_gpu,
    )
