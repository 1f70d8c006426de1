"""sentence-transformers' trainer, as our trainings need it.

It keeps the library's loop, optimiser, schedule and checkpoints, and puts in our order of batches, our validation, and
checkpoints that are whole or not there. What is measured, when, and in which order depends on the step alone, never on
the clock, so that a training which was killed ends with the curves and weights of one that was not.
"""

import math
import time
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformerTrainer
from transformers import TrainerCallback
from transformers.trainer_callback import PrinterCallback

from cocite.encoder.batches import EpochBatches
from cocite.encoder.checkpoints import finish_checkpoint
from cocite.encoder.losses import Loss
from cocite.encoder.triplets import Triplets
from cocite.encoder.validation import measure
from cocite.errors import InputError
from cocite.files import atomic_path
from cocite.progress import progress_bar, report

SECONDS_BETWEEN_CHECKPOINTS = 300.0


class TripletTrainer(SentenceTransformerTrainer):
    """Trains on triplets; `state_folder` holds its checkpoints and the best encoder so far."""

    def __init__(
        self,
        *,
        state_folder: Path,
        batches: EpochBatches,
        validation: Triplets,
        validation_loss: Loss,
        evaluations: int,
        **arguments: Any,
    ) -> None:
        self.state_folder = state_folder
        self.batches = batches
        self.validation = validation
        self.validation_loss = validation_loss
        super().__init__(**arguments)
        self.remove_callback(PrinterCallback)
        self.add_callback(Schedule(evaluations))

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Leave out the library's model card; ours is written when the training is done."""

    def get_batch_sampler(self, *_: Any, **__: Any) -> EpochBatches:
        """Give the order of batches that follows from the seed and the epoch."""
        return self.batches

    def compute_loss(self, model: Any, inputs: dict[str, Any], *arguments: Any, **keywords: Any) -> Any:
        """Compute the loss; raise `InputError` where it is not a number."""
        loss: Any = super().compute_loss(model, inputs, *arguments, **keywords)
        if not torch.isfinite(loss):
            raise InputError(
                f"The training loss is {loss.item()} at step {self.state.global_step + 1}; "
                "a smaller lr or max_grad_norm may help."
            )
        return loss

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Measure the validation set, and keep the encoder if it is the best so far."""
        before = [entry["eval_loss"] for entry in self.state.log_history if "eval_loss" in entry]
        metrics = measure(
            self.model, self.validation, self.validation_loss, batch_size=self.args.per_device_train_batch_size
        )
        report(
            f"Step {self.state.global_step} of {self.state.max_steps}: validation loss {metrics['eval_loss']:.4f}, "
            f"accuracy {metrics['eval_accuracy']:.4f}."
        )
        if not math.isfinite(metrics["eval_loss"]):
            raise InputError(
                f"The validation loss is {metrics['eval_loss']} at step {self.state.global_step}; "
                "a smaller lr or max_grad_norm may help."
            )
        self.log(metrics)
        if metrics["eval_loss"] < min(before, default=math.inf):
            with atomic_path(self.state_folder / "best") as folder:
                self._save(str(folder))
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        self.model.save_pretrained(str(output_dir), create_model_card=False, safe_serialization=True)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        finish_checkpoint(self.state_folder, f"checkpoint-{self.state.global_step}")


class Schedule(TrainerCallback):
    """Says when to log, validate and save: logs and validations at even intervals of steps, saves also by the clock.

    The running mean of the training loss starts anew at each log and is no part of a checkpoint; so a checkpoint is
    only ever written right after a log.
    """

    def __init__(self, evaluations: int) -> None:
        self.evaluations = evaluations
        self.saved_at = time.monotonic()
        self.bar: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Open the bar where the training stands."""
        self.bar = progress_bar(of="Training", unit="steps", total=state.max_steps, initial=state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        """Set what is to be done after this step."""
        self.bar.update(1)
        planned = {math.ceil(state.max_steps * part / self.evaluations) for part in range(1, self.evaluations + 1)}
        control.should_evaluate = state.global_step in planned
        control.should_log = control.should_evaluate or state.global_step % args.logging_steps == 0
        late = time.monotonic() - self.saved_at > SECONDS_BETWEEN_CHECKPOINTS
        control.should_save = control.should_evaluate or (control.should_log and late)
        return control

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Start the clock anew."""
        self.saved_at = time.monotonic()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Close the bar."""
        self.bar.close()
