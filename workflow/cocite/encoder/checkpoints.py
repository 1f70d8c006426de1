"""What a killed training goes on from: a folder with a checkpoint, the best weights so far, and the tokens.

fingerprint.json  what is trained from what; another fingerprint starts from the beginning
examples/         tokens of the training and the validation set
checkpoint-N/     the weights that learn, the optimiser's state and the history after step N, whole or not there
best.safetensors  the weights that learn, at the smallest validation loss
tensorboard/      the curves, for those who watch
"""

import hashlib
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from cocite.encoder.model import Encoder
from cocite.encoder.trainable import learned_weights, load_learned, save_learned
from cocite.ground.errors import InputError
from cocite.ground.space import TEMPORARY
from cocite.tables.files import atomic_path, read_json, write_json

BEST, EVENTS = "best.safetensors", "tensorboard"
WEIGHTS, OPTIMISER, HISTORY = "learned.safetensors", "optimiser.safetensors", "history.json"


@dataclass(kw_only=True)
class History:
    """Where a training stands, and what it has measured on its way."""

    step: int = 0
    """The last step that is done."""
    log: list[dict[str, Any]] = field(default_factory=list)
    """What was measured after which step."""
    losses: list[float] = field(default_factory=list)
    """The losses of the batches since the last one that was logged."""

    @property
    def validation_losses(self) -> list[float]:
        """The validation losses so far."""
        return [entry["eval_loss"] for entry in self.log if "eval_loss" in entry]

    def is_out_of(self, patience: int | None) -> bool:
        """Whether so many validations in a row were no better than the best one."""
        losses = self.validation_losses
        if patience is None or not losses:
            return False
        return len(losses) - 1 - losses.index(min(losses)) >= patience


def open_state(state: Path, fingerprint: dict[str, Any]) -> Path | None:
    """Make the folder ready; return the checkpoint to go on from, or None to start from the beginning."""
    if _fingerprint_of(state) != fingerprint:
        remove_state(state)
        write_json(state / "fingerprint.json", fingerprint)
    for unfinished in state.glob(f".*{TEMPORARY}"):
        shutil.rmtree(unfinished, ignore_errors=True)
    return max(state.glob("checkpoint-*"), key=_step_of, default=None)


def save_checkpoint(state: Path, encoder: Encoder, optimiser: torch.optim.Optimizer, history: History) -> None:
    """Write a checkpoint whole, and remove the ones before it."""
    checkpoint = state / f"checkpoint-{history.step}"
    if not checkpoint.exists():
        with atomic_path(checkpoint) as folder:
            folder.mkdir()
            save_learned(encoder, folder / WEIGHTS)
            save_file(_state_of(encoder, optimiser), folder / OPTIMISER)
            write_json(folder / HISTORY, asdict(history))
    for older in state.glob("checkpoint-*"):
        if older != checkpoint:
            shutil.rmtree(older)


def load_checkpoint(checkpoint: Path, encoder: Encoder, optimiser: torch.optim.Optimizer) -> History:
    """Put weights and optimiser back where `save_checkpoint` found them; return the history."""
    load_learned(encoder, checkpoint / WEIGHTS)
    saved = load_file(checkpoint / OPTIMISER)
    for name, weight in learned_weights(encoder).items():
        of_weight = {key.rpartition("|")[2]: tensor for key, tensor in saved.items() if key.rpartition("|")[0] == name}
        optimiser.state[weight] = {key: tensor.to(weight.device) for key, tensor in of_weight.items()}
    return History(**read_json(checkpoint / HISTORY))


def remove_state(state: Path) -> None:
    """Remove the folder, its fingerprint first, so that nothing goes on from a half-removed one."""
    (state / "fingerprint.json").unlink(missing_ok=True)
    shutil.rmtree(state, ignore_errors=True)


def fingerprint_of(files: Iterable[Path]) -> str:
    """One hash over the contents of files and of all files in folders, with their names."""
    digest = hashlib.sha256()
    for path in files:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                with file.open("rb") as opened:
                    content = hashlib.file_digest(opened, "sha256").hexdigest()
                digest.update(f"{file.relative_to(path)} {content}\n".encode())
    return digest.hexdigest()


def _state_of(encoder: Encoder, optimiser: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    return {
        f"{name}|{key}": tensor
        for name, weight in learned_weights(encoder).items()
        for key, tensor in optimiser.state[weight].items()
    }


def _fingerprint_of(state: Path) -> Any:
    try:
        return read_json(state / "fingerprint.json")
    except InputError:
        return None


def _step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.rsplit("-", 1)[1])
