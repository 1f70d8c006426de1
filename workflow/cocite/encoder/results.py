"""What a training shows and saves while it runs, and its results: the encoder with its card, curves, and settings.

A killed training resumes from a folder that Snakemake does not know (see `core.checkpoints`).
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from cocite.config.encoders import TITLE_AND_ABSTRACT
from cocite.config.graphs import CONCATENATED, SPACES
from cocite.core.atomic import atomic_path, checked_path, write_json
from cocite.core.progress import progress_bar, report
from cocite.core.tables.files import write_table
from cocite.encoder import processes
from cocite.encoder.adapters import learned_weights, save_adapters
from cocite.encoder.card import FIELDS, SEPARATOR, card_of
from cocite.encoder.model import ADAPTERS, CARD
from cocite.encoder.objective import Learner
from cocite.encoder.spaces import save_spaces
from cocite.encoder.tokens import Reading

CURVES = {
    "loss": "training_loss",
    "eval_loss": "validation_loss",
    "eval_accuracy": "validation_accuracy",
    "eval_spearman": "validation_spearman",
    "learning_rate": "learning_rate",
}
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
    def validations(self) -> list[dict[str, Any]]:
        """The entries of whole validations."""
        return [entry for entry in self.log if "eval_loss" in entry]

    @property
    def best(self) -> dict[str, Any] | None:
        """The first validation with the smallest loss; None before the first one."""
        return min(self.validations, key=lambda entry: entry["eval_loss"], default=None)

    def is_out_of(self, patience: int | None) -> bool:
        """Whether so many validations in a row were no better than the best one."""
        done = self.validations
        return patience is not None and self.best is not None and len(done) - 1 - done.index(self.best) >= patience


def save_weights(path: Path, learner: Learner, more: Mapping[str, Tensor] | None = None, metadata: Any = None) -> None:
    """Write the weights that learn, and further tensors, to a file of the state."""
    learned = {name: weight.detach().contiguous() for name, weight in learned_weights(learner).items()}
    with checked_path(path) as temporary:
        save_file({**learned, **(more or {})}, temporary, metadata)


def load_weights(path: Path, learner: Learner) -> dict[str, Tensor]:
    """Restore the weights that learn; return all tensors of the file."""
    saved = load_file(path)
    with torch.no_grad():
        for name, weight in learned_weights(learner).items():
            weight.copy_(saved[name])
    return saved


def save_checkpoint(state: Path, learner: Learner, optimiser: torch.optim.Optimizer, history: History) -> None:
    """Replace the checkpoint."""
    of_optimiser = {
        f"{name}|{key}": tensor
        for name, weight in learned_weights(learner).items()
        for key, tensor in optimiser.state[weight].items()
    }
    save_weights(state / CHECKPOINT, learner, of_optimiser, {"history": json.dumps(asdict(history))})


def load_checkpoint(state: Path, learner: Learner, optimiser: torch.optim.Optimizer) -> History:
    """Restore weights and optimiser from the checkpoint; return the history, an empty one if there is none."""
    if not (state / CHECKPOINT).exists():
        return History()
    weights = learned_weights(learner)
    for key, tensor in load_weights(state / CHECKPOINT, learner).items():
        name, _, of_optimiser = key.rpartition("|")
        if name in weights:
            optimiser.state[weights[name]][of_optimiser] = tensor.to(weights[name].device)
    return _history(state)


def implied_files(state: Path) -> list[Path]:
    """The files that a checkpoint needs: the best weights, from the first validation on."""
    return [state / BEST] if (state / CHECKPOINT).exists() and _history(state).best else []


def _history(state: Path) -> History:
    with safe_open(state / CHECKPOINT, framework="pt") as file:
        return History(**json.loads(file.metadata()["history"]))


@contextmanager
def shown(history: History, steps: int, folder: Path) -> Iterator[Callable[[], None]]:
    """Show the progress of a training, and write all its curves to `folder`; yield a function to call after each
    step."""
    if not processes.is_first():
        yield lambda: None
        return
    written = 0

    def advance(steps: int = 1) -> None:
        nonlocal written
        bar.update(steps)
        for entry in history.log[written:]:
            for name, value in _curves_in(entry).items():
                events.add_scalar(name, value, entry["step"])
            events.flush()
        written = len(history.log)

    from torch.utils.tensorboard import SummaryWriter

    shutil.rmtree(folder, ignore_errors=True)
    if history.step:
        report(f"Going on after step {history.step} of {steps}.")
    bar = progress_bar(of="Training", unit="steps", total=steps, initial=history.step)
    with bar, closing(SummaryWriter(folder)) as events:
        advance(0)
        yield advance


def _curves_in(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the curves in an entry of a training's log, also those of single objectives."""
    parts = ((*name.partition(" of "), value) for name, value in entry.items())
    return {CURVES[metric] + of + objective: value for metric, of, objective, value in parts if metric in CURVES}


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """What a training writes."""

    model: Path
    """Folder of the encoder."""
    curves: Path
    """Table training_curves."""
    settings: Path
    """JSON file of the resolved settings."""
    events: Path
    """Folder of the curves in TensorBoard's format."""
    origin: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What the card says about where the model comes from; see `cocite.config.origins`."""


def write_results(
    outputs: Outputs, learner: Learner, history: History, source: Path, state: Path, provenance: dict[str, Any]
) -> None:
    """Write all results of a training from an encoder in the folder `source`, each whole or not at all. `provenance`
    has the settings, seeds, numbers of triplets, versions of libraries, and what teachers lack, as `card_of` takes."""
    write_table(outputs.curves, "training_curves", curves_of(history.log))
    with atomic_path(outputs.events) as folder:
        shutil.copytree(state / EVENTS, folder)
    write_json(outputs.settings, provenance)
    encoder, spaces, best = learner.encoder, learner.aspects, history.best or {}
    card = card_of(
        origin=outputs.origin,
        encoder={
            "pooling": encoder.pooling,
            "longest text": f"{encoder.tokenizer.max_length} tokens; what is longer is cut",
            "dimension": encoder.dimension,
            **_said_of_reading(encoder.tokenizer.reading),
            **encoder.remarks,
        },
        best={"step": best["step"], **_curves_in(best)},
        spaces=[*spaces, *([CONCATENATED] if spaces else [])],
        **provenance,
    )
    with atomic_path(outputs.model) as folder:
        left_out = shutil.ignore_patterns(".*", CARD, "*.safetensors", ADAPTERS, SPACES)
        shutil.copytree(source, folder, ignore=left_out)
        encoder.save(folder, card)
        save_adapters(encoder, source, folder)
        if spaces:
            save_spaces(spaces, folder)


def _said_of_reading(reading: Reading) -> dict[str, str]:
    """What the card says of the texts that the encoder reads, where they are not the usual."""
    said = {} if reading.fields == TITLE_AND_ABSTRACT else {FIELDS: ", ".join(reading.fields)}
    if reading.separator is not None:
        said[SEPARATOR] = repr(reading.separator)
    if reading.query_prompt or reading.document_prompt:
        query, document = reading.query_prompt, reading.document_prompt
        said["prompts"] = f"{query!r} before short queries, {document!r} before documents"
    if reading.query_max_length is not None:
        said["longest short query"] = f"{reading.query_max_length} tokens; what is longer is cut"
    return said


def curves_of(log: list[dict[str, Any]]) -> pa.Table:
    """The table training_curves from a training's log."""
    points = sorted((entry["step"], name, float(value)) for entry in log for name, value in _curves_in(entry).items())
    return pa.table(list(zip(*points, strict=True)), names=["step", "metric", "value"])
