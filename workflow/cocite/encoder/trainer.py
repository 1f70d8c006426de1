"""sentence-transformers' trainer, as our trainings need it.

It keeps the library's loop, optimiser, schedule of the learning rate and checkpoints, and puts in our batches, our
validation, and checkpoints that are whole or not there. A training that was killed or stopped ends with the curves and
weights of one that was not: a checkpoint, which may come after any step, holds also the losses since the last log.
"""

import math
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformerTrainer
from torch.utils.data import DataLoader
from transformers import TrainerState
from transformers.trainer_callback import PrinterCallback

from cocite.encoder import processes
from cocite.encoder.batches import EpochBatches
from cocite.encoder.checkpoints import BEST, EVENTS, UNFINISHED, finish_checkpoint
from cocite.encoder.collation import Collator
from cocite.encoder.faults import UnreadLoss, check_loss, told_of_memory, unread
from cocite.encoder.objective import Loss, TripletObjective
from cocite.encoder.schedule import Schedule, Telling
from cocite.encoder.trainable import load_learned, save_learned
from cocite.encoder.triplets import Triplets
from cocite.encoder.validation import measure
from cocite.errors import InputError
from cocite.files import read_json, write_json
from cocite.progress import report

LEARNED, LOSSES = "learned.safetensors", "losses.json"


class TripletTrainer(SentenceTransformerTrainer):
    """Trains on triplets; `state_folder` holds its checkpoints and the best weights so far."""

    objective: TripletObjective

    def __init__(
        self,
        *,
        state_folder: Path,
        batches: EpochBatches,
        collator: Collator,
        objective: TripletObjective,
        validation: Triplets,
        validation_loss: Loss,
        schedule: Schedule,
        patience: int | None,
        **arguments: Any,
    ) -> None:
        self.state_folder = state_folder
        self.batches = batches
        self.collator = collator
        self.objective = objective
        self.validation = validation
        self.validation_loss = validation_loss
        self.patience = patience
        self.losses: list[float] = []
        self.unread: list[UnreadLoss] = []
        super().__init__(loss=objective, data_collator=collator, callbacks=[schedule], **arguments)  # type: ignore[arg-type]
        self.remove_callback(PrinterCallback)
        if processes.is_first():
            self.add_callback(Telling(state_folder / EVENTS))

    def go_on(self, checkpoint: Path | None) -> None:
        """Train from the start or from a checkpoint, to the end or until it is stopped."""
        if checkpoint is not None:
            self.state = TrainerState.load_from_json(str(checkpoint / "trainer_state.json"))
        if checkpoint is None or not self._out_of_patience():
            self.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Leave out the library's model card; ours is written when the training is done."""

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Give the batches of the epochs, each made while the one before it is worked on."""
        self.accelerator.even_batches = False
        loader: DataLoader[Any] = self.accelerator.prepare(
            DataLoader(
                range(len(self.batches.queries)),  # type: ignore[arg-type]
                batch_sampler=self.batches,
                collate_fn=self.collator,
                num_workers=self.args.dataloader_num_workers,
                pin_memory=self.args.dataloader_pin_memory,
            )
        )
        return loader

    def training_step(self, model: Any, inputs: dict[str, Any], *arguments: Any, **keywords: Any) -> torch.Tensor:
        """Compute loss and gradients of a batch; raise `InputError` where memory is too small for it."""
        with told_of_memory(inputs):
            return super().training_step(model, inputs, *arguments, **keywords)

    def compute_loss(self, model: Any, inputs: dict[str, Any], *_: Any, **__: Any) -> Any:
        """Compute the loss, and keep it to be read when it is logged or saved."""
        self.objective.model = model
        loss, vectors = self.objective(inputs["groups"], inputs["rows"])
        self.unread.append(unread(loss, inputs, vectors, self.state.global_step + 1))
        return loss

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Measure the validation set, keep the weights if they are the best so far, and stop without more patience."""
        metrics = measure(
            self.model, self.validation, self.validation_loss, batch_size=self.args.per_device_train_batch_size
        )
        self._report(metrics)
        if not math.isfinite(metrics["eval_loss"]):
            raise InputError(
                f"The validation loss is {metrics['eval_loss']} at step {self.state.global_step}; "
                "a smaller lr or max_grad_norm may help."
            )
        best = min(self._validation_losses(), default=math.inf)
        self.log(metrics)
        if metrics["eval_loss"] < best and processes.is_first():
            save_learned(self.model, self.state_folder / BEST)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        self.control.should_training_stop |= self._out_of_patience()
        return metrics

    def _maybe_log_save_evaluate(self, *_: Any, learning_rate: float | None = None, **__: Any) -> None:
        """Do what the schedule says, in this order: a checkpoint holds what was logged and measured."""
        if self.control.should_log:
            self._read_losses()
            self.log({"loss": math.fsum(self.losses) / len(self.losses), "learning_rate": float(learning_rate or 0.0)})
            self.losses = []
        if self.control.should_evaluate:
            self.evaluate()
        if self.control.should_save:
            self._save_checkpoint(self.model, None)
            self.control = self.callback_handler.on_save(self.args, self.state, self.control)

    def _read_losses(self) -> None:
        """Bring the losses from the device, all at once, since it is waited for; none may be no number."""
        if self.unread:
            values = processes.mean_of(torch.stack([loss.value for loss in self.unread]))
            for value, loss in zip(values, self.unread, strict=True):
                check_loss(value, loss, self.collator.triplets)
            self.losses += values
            self.unread = []

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        self._read_losses()
        super()._save_checkpoint(model, trial)
        processes.wait_for_all()
        if processes.is_first():
            name = f"checkpoint-{self.state.global_step}"
            write_json(self.state_folder / UNFINISHED / name / LOSSES, self.losses)
            finish_checkpoint(self.state_folder, name)
        processes.wait_for_all()

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        save_learned(self.model, Path(str(output_dir)) / LEARNED)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        load_learned(self.model, Path(resume_from_checkpoint) / LEARNED)
        self.losses = read_json(Path(resume_from_checkpoint) / LOSSES)

    def _validation_losses(self) -> list[float]:
        return [entry["eval_loss"] for entry in self.state.log_history if "eval_loss" in entry]

    def _out_of_patience(self) -> bool:
        losses = self._validation_losses()
        if self.patience is None or not losses:
            return False
        return len(losses) - 1 - losses.index(min(losses)) >= self.patience

    def _report(self, metrics: dict[str, float]) -> None:
        if processes.is_first():
            report(
                f"Step {self.state.global_step} of {self.state.max_steps}: validation loss {metrics['eval_loss']:.4f}, "
                f"accuracy {metrics['eval_accuracy']:.4f}, rank correlation {metrics['eval_spearman']:.4f}."
            )
