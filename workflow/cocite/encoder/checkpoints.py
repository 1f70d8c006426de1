"""What a killed training resumes from, in a folder that Snakemake does not know (see `core.checkpoints`).

checkpoint.safetensors  the weights that learn, the optimiser's state and the history after a step
best.safetensors        the weights that learn, at the smallest validation loss
tensorboard/            the curves in TensorBoard's format (`tensorboard --logdir` shows them)
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from cocite.core.atomic import checked_path
from cocite.encoder.adapters import learned_weights
from cocite.encoder.objective import Learner

BEST, CHECKPOINT, EVENTS = "best.safetensors", "checkpoint.safetensors", "tensorboard"


@dataclass(kw_only=True)
class History:
    """Where a training is, and what it has measured."""

    step: int = 0
    """The last step that is done."""
    log: list[dict[str, Any]] = field(default_factory=list)
    """The metrics, each entry with its step."""
    losses: list[float] = field(default_factory=list)
    """The losses of batches that are not logged yet."""

    @property
    def validation_losses(self) -> list[float]:
        """The validation losses so far."""
        return [entry["eval_loss"] for entry in self.log if "eval_loss" in entry]

    @property
    def validated_step(self) -> int:
        """The last step with a whole validation; 0 at first."""
        return max((entry["step"] for entry in self.log if "eval_loss" in entry), default=0)

    def is_out_of(self, patience: int | None) -> bool:
        """Whether so many validations in a row were no better than the best one."""
        losses = self.validation_losses
        if patience is None or not losses:
            return False
        return len(losses) - 1 - losses.index(min(losses)) >= patience


def save_checkpoint(state: Path, learner: Learner, optimiser: torch.optim.Optimizer, history: History) -> None:
    """Replace the checkpoint."""
    of_optimiser = {
        f"{name}|{key}": tensor
        for name, weight in learned_weights(learner).items()
        for key, tensor in optimiser.state[weight].items()
    }
    _save(learner, state / CHECKPOINT, of_optimiser, {"history": json.dumps(asdict(history))})


def load_checkpoint(state: Path, learner: Learner, optimiser: torch.optim.Optimizer) -> History:
    """Restore weights and optimiser from the checkpoint; return the history, an empty one if there is none."""
    if not (state / CHECKPOINT).exists():
        return History()
    saved = _load(state / CHECKPOINT, learner)
    for name, weight in learned_weights(learner).items():
        of_weight = {key.rpartition("|")[2]: tensor for key, tensor in saved.items() if key.rpartition("|")[0] == name}
        optimiser.state[weight] = {key: tensor.to(weight.device) for key, tensor in of_weight.items()}
    return _history(state)


def implied_files(state: Path) -> list[Path]:
    """The files that a checkpoint needs: the best weights, from the first validation on."""
    return [state / BEST] if (state / CHECKPOINT).exists() and _history(state).validation_losses else []


def save_best(state: Path, learner: Learner) -> None:
    """Replace the best weights."""
    _save(learner, state / BEST)


def load_best(state: Path, learner: Learner) -> None:
    """Restore the best weights."""
    _load(state / BEST, learner)


def _history(state: Path) -> History:
    with safe_open(state / CHECKPOINT, framework="pt") as file:
        return History(**json.loads(file.metadata()["history"]))


def _save(
    learner: Learner, path: Path, more: Mapping[str, Tensor] = MappingProxyType({}), metadata: Any = None
) -> None:
    learned = {name: weight.detach().contiguous() for name, weight in learned_weights(learner).items()}
    with checked_path(path) as temporary:
        save_file({**learned, **more}, temporary, metadata)


def _load(path: Path, learner: Learner) -> dict[str, Tensor]:
    """Restore the weights that learn; return all tensors of the file."""
    saved = load_file(path)
    with torch.no_grad():
        for name, weight in learned_weights(learner).items():
            weight.copy_(saved[name])
    return saved
