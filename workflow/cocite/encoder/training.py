"""Fine-tune an encoder on examples: the loop, from the tokens of a batch to the weights that are kept.

The published recipe (CoCite, 2024): AdamW, linear warm-up, then linear decay; the state with the smallest validation
loss is kept. What happens in a step follows from the settings, the seed and the number of the step alone: its batches,
its learning rate, the random numbers of its dropout, whether it is followed by a validation. So a training that was
killed, or has stopped by itself, goes on from its last checkpoint and ends with the same weights and curves.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from cocite.config.aspects import ASPECTS
from cocite.config.entries import as_json
from cocite.config.models import Bottlenecks, TrainingSettings
from cocite.core.checkpoints import fingerprint_of, open_state, remove_state
from cocite.core.errors import InputError
from cocite.core.precision import Precision
from cocite.core.progress import report
from cocite.core.randomness import derive_seed
from cocite.encoder import processes
from cocite.encoder.adapters import adapters_in, read_adapter, switch_on
from cocite.encoder.batches import TOKENS_OF_A_START, Batch, Collator
from cocite.encoder.card import library_versions
from cocite.encoder.checkpoints import (
    EVENTS,
    History,
    implied_files,
    load_best,
    load_checkpoint,
    save_best,
    save_checkpoint,
)
from cocite.encoder.dropout import let_drop_fast
from cocite.encoder.examples import ExampleFiles, Examples, joined_examples, open_examples
from cocite.encoder.learner import Learner, new_learner
from cocite.encoder.masking import masking_of
from cocite.encoder.measuring import Loss, UnreadLoss, explained_memory, measure, predict, read_losses, unread
from cocite.encoder.memory import KEPT, RETURNED, set_memory
from cocite.encoder.mixing import Mixture
from cocite.encoder.model import open_encoder
from cocite.encoder.objective import Objective, refusing_what_is_not_deterministic
from cocite.encoder.packing import let_pack
from cocite.encoder.results import Outputs, shown, write_results
from cocite.encoder.schedule import Schedule, Stopping, Unfinished
from cocite.encoder.spaces import read_space, spaces_in
from cocite.encoder.teachers import taught, untaught_of
from cocite.encoder.trainable import learned_weights, merge_lora

SECONDS_BETWEEN_CHECKPOINTS = 300.0
ON_GPU = "cuda"
"""The kind of device on which documents are packed."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What a training is made from."""

    encoder: Path
    """Folder of the encoder to start from."""
    training: Sequence[ExampleFiles]
    """The examples to learn from, a set for each objective."""
    validation: Sequence[ExampleFiles]
    """The examples that each objective is validated on."""
    teachers: Mapping[str, Path] = field(default_factory=dict)
    """The table graph_embeddings of each embedding that teaches, by its name."""

    @property
    def paths(self) -> list[Path]:
        """All files and folders."""
        sets = (*self.training, *self.validation)
        of_sets = dict.fromkeys(path for of in sets for path in (of.table, of.tokens))
        return [self.encoder, *of_sets, *self.teachers.values()]


def train_encoder(
    inputs: Inputs,
    outputs: Outputs,
    settings: TrainingSettings,
    *,
    seed: int,
    training_seed: int,
    threads: int,
    state: Path,
    precision: Precision = "float32",
    stopping: Stopping | None = None,
) -> None:
    """Train, or go on with a training that was killed or stopped; then write the results and remove `state`.

    Raises `Unfinished` where `stopping` said to stop before the end, and `InputError` if the tables cannot be used,
    the loss is no longer a number, or memory runs out.
    """
    _set_up(threads)
    set_memory(KEPT if settings.mini_batch_tokens is None else RETURNED)
    seeds = {"run": seed, "training": training_seed}
    encoder = open_encoder(inputs.encoder, precision)
    if isinstance(settings.trainable, Bottlenecks) and settings.trainable.name in adapters_in(inputs.encoder):
        switch_on(encoder, read_adapter(encoder, inputs.encoder, settings.trainable.name))
    computes_in = str(encoder.computes_in).removeprefix("torch.")
    given = {**as_json(settings), "block": settings.together, "precision": computes_in}
    if not len(inputs.training) == len(inputs.validation) == len(settings.shares):
        raise InputError(
            f"The settings are for {len(settings.shares)} sets of examples; {len(inputs.training)} to learn from and "
            f"{len(inputs.validation)} to validate on are given."
        )
    frame = encoder.tokenizer.frame
    training = joined_examples([open_examples(files, frame) for files in inputs.training])
    validation = {files: open_examples(files, frame) for files in inputs.validation}
    if all(each.negatives for each in settings.comparisons):  # what no loss sees is not embedded
        training = training.with_negatives([kind for each in settings.comparisons for kind in each.negatives or ()])
    training, *others = taught(training, list(validation.values()), inputs.teachers, settings)
    validation = dict(zip(validation, others, strict=True))
    if processes.is_first():
        follows_from = {
            "settings": given,
            "seeds": seeds,
            "processes": processes.count(),
            "inputs": fingerprint_of(inputs.paths),
            "versions": library_versions(),
        }
        implied = partial(implied_files, state)
        open_state(state, follows_from, work="training", scratch=[f"{EVENTS}/*"], implied=implied)
    processes.wait()
    seed = derive_seed(seed, "train", training_seed)
    maps = _maps(inputs.encoder, encoder.dimension, training)
    learner = new_learner(encoder, settings, seed, maps, inputs.encoder)
    validated = [validation[files] for files in inputs.validation]
    done = Training(learner, training, validated, settings, seed=seed, run_seed=seeds["run"], state=state)
    done.learn(stopping or Stopping())
    if processes.is_first():
        load_best(state, learner)
        merge_lora(encoder, settings)
        write_results(
            outputs,
            encoder,
            done.history.log,
            source=inputs.encoder,
            events=state / EVENTS,
            settings=given,
            seeds=seeds,
            triplets={"training": len(training), "validation": sum(map(len, validation.values()))},
            spaces=learner.aspects,
            untaught=untaught_of(training, validation.values()),
        )
        remove_state(state)


def _maps(folder: Path, dimension: int, examples: Examples) -> dict[str, nn.Linear | None]:
    """The aspects of examples, each with the map to its space that is in the folder of an encoder, if there is one."""
    present = set() if examples.aspects is None else set(examples.aspects.tolist())
    known = spaces_in(folder)
    return {name: read_space(folder, name, dimension) if name in known else None for name in ASPECTS if name in present}


def mixture_of(training: Examples, settings: TrainingSettings, seed: int) -> Mixture:
    """How a training goes through its examples, set by set."""
    sizes = [len(training)] if training.objectives is None else np.bincount(training.objectives)
    return Mixture(
        queries=np.split(training.queries, np.cumsum(sizes)[:-1]),
        shares=settings.shares,
        one_per_query=settings.of_one_per_query,
        mixing=settings.mixing or "in-batch",
        batch_size=settings.batch_size,
        block=settings.together,
        seed=seed,
    )


def _set_up(threads: int) -> None:
    torch.set_num_threads(threads)
    # Outside of a step's gradients, operations without a deterministic kernel warn instead of ending the training.
    torch.set_deterministic_debug_mode("warn")
    # Every tensor is written before it is read; filling all of them first takes a third of the kernels of a step.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    processes.connect()


def _seed_dropout(seed: int, device: torch.device) -> None:
    """Seed torch's generators for a CPU and for the device.

    `torch.manual_seed` goes through all kinds of devices, and takes 0.7 ms where there are none.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)


def optimiser_of(weights: list[torch.nn.Parameter], settings: TrainingSettings) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter, 2019), in which matrices decay and vectors do not."""
    groups = [
        {"params": [weight for weight in weights if weight.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [weight for weight in weights if weight.ndim <= 1], "weight_decay": 0.0},
    ]
    held = [group for group in groups if group["params"]]
    return torch.optim.AdamW(held, lr=settings.lr, eps=settings.epsilon, fused=True)


class Training:
    """A training: the loop, and what it keeps from step to step."""

    def __init__(
        self,
        learner: Learner,
        training: Examples,
        validation: Sequence[Examples],
        settings: TrainingSettings,
        *,
        seed: int,
        state: Path,
        run_seed: int = 0,
    ) -> None:
        self.learner, self.training, self.validation = learner, training, validation
        self.settings, self.seed, self.run_seed, self.state = settings, seed, run_seed, state
        encoder = learner.encoder
        on_gpu = encoder.device.type == ON_GPU
        packs = on_gpu and let_pack(encoder)
        if not on_gpu:
            let_drop_fast(encoder)
        self.schedule = Schedule(mixture=mixture_of(training, settings, seed), settings=settings)
        self.collate = Collator(
            examples=training,
            padding=encoder.tokenizer.padding,
            start=TOKENS_OF_A_START[encoder.device.type],
            mini_batch_tokens=settings.mini_batch_tokens,
            packs=packs,
            first_position=encoder.first_position,
            process=processes.number(),
            processes=processes.count(),
            comparisons=settings.comparisons,
            masking=masking_of(encoder.tokenizer, settings.masked_share),
            seed=seed,
        )
        self.objective = Objective(
            learner=learner,
            comparisons=settings.comparisons,
            recompute=settings.mini_batch_tokens is not None,
            leading=settings.matryoshka or (),
        )
        self.weights = list(learned_weights(learner).values())
        self.optimiser = optimiser_of(self.weights, settings)
        self.history = History()
        self.unread: list[UnreadLoss] = []
        self.strict = True
        """Whether gradients come from deterministic kernels only; false from the first operation on that has none."""

    def learn(self, stopping: Stopping) -> None:
        """Go through the steps, from the first one or from a checkpoint on. Raises `Unfinished` where it is stopped."""
        self.history = load_checkpoint(self.state, self.learner, self.optimiser)
        last = self.schedule.steps
        try:
            with stopping.listening():
                if self.schedule.is_validated(self.history.step) and self.history.validated_step < self.history.step:
                    self._validate(stopping)
                with shown(self.history, last, self.state / EVENTS) as advance:
                    self._go_on(stopping, advance)
        except Unfinished as stopped:
            raise Unfinished(
                f"Stopped after step {self.history.step} of {last}: {stopped}. All is saved; started again, the "
                "training goes on from here."
            ) from None

    def _go_on(self, stopping: Stopping, advance: Callable[[], None]) -> None:
        """Take the steps that are left. Raises `Unfinished` with the reason where it is stopped."""
        saved_at = time.monotonic()
        for step, batches in self.steps():
            self.take(step, batches)
            if self.schedule.is_logged(step):
                self._log({**self._mean_loss(), "learning_rate": self.schedule.learning_rate(step)})
            if self.schedule.is_validated(step):
                self._validate(stopping)
            advance()
            reason = stopping.reason() if step < self.schedule.steps else None
            late = processes.any_of(time.monotonic() - saved_at > SECONDS_BETWEEN_CHECKPOINTS)
            if late or reason is not None or self.schedule.is_validated(step):
                self._save()
                saved_at = time.monotonic()
            if reason is not None:
                raise Unfinished(reason)

    def steps(self) -> Iterator[tuple[int, list[Batch]]]:
        """Yield the steps that are left, with their batches.

        A GPU works on a step while the CPU makes the batches of the next one, since nothing in a step waits for it.
        """
        for step in range(self.history.step + 1, self.schedule.steps + 1):
            if self.history.is_out_of(self.settings.patience):
                return
            yield step, [self.collate(*chosen) for chosen in self.schedule.batches_of(step)]

    def take(self, step: int, batches: list[Batch]) -> None:
        """Take a step: the gradients of its batches, added up, move the weights."""
        try:
            self.unread += self._add_gradients(step, batches)
        except RuntimeError as error:
            if not self.strict or "deterministic" not in str(error):
                raise
            report(f"Weights may differ from run to run in their last digits: {str(error).splitlines()[0]}")
            self.strict = False
            self.optimiser.zero_grad()
            self.unread += self._add_gradients(step, batches)
        processes.add_up([weight.grad for weight in self.weights if weight.grad is not None])
        for weight in self.learner.heads.parameters():
            if weight.grad is not None:  # of a head, each process has computed the whole gradient
                weight.grad /= processes.count()
        clip_grad_norm_(self.weights, self.settings.max_grad_norm)
        for group in self.optimiser.param_groups:
            group["lr"] = self.schedule.learning_rate(step)
        self.optimiser.step()
        self.optimiser.zero_grad()
        self.history.step = step

    def _add_gradients(self, step: int, batches: list[Batch]) -> list[UnreadLoss]:
        """Compute the gradients of the batches of a step, added up; return the losses."""
        _seed_dropout(derive_seed(self.seed, "dropout", step, processes.number()), self.learner.encoder.device)
        if not self.learner.encoder.transformer.training:  # as it is opened, and as a validation leaves it
            self.learner.train()
        losses = []
        with refusing_what_is_not_deterministic(self.strict):
            for batch in batches:
                with explained_memory(batch):
                    loss, vectors = self.objective(batch.to(self.learner.encoder.device))
                    (loss / len(batches)).backward()
                losses.append(unread(loss, batch, vectors, step))
        return losses

    def _mean_loss(self) -> dict[str, float]:
        """The mean loss of the batches since it was last logged."""
        self._read_losses()
        losses, self.history.losses = self.history.losses, []
        return {"loss": math.fsum(losses) / len(losses)}

    def _read_losses(self) -> None:
        self.history.losses += read_losses(self.unread, self.training)
        self.unread = []

    def _validate(self, stopping: Stopping) -> None:
        """Measure the validation set, and keep the weights if they are the best so far.

        A signal ends it between two batches: the step is saved, and measured when the training goes on.
        """

        def check() -> None:
            if (reason := stopping.asked()) is not None:
                self._save()
                raise Unfinished(reason)

        metrics = self._measured(check)
        step, loss = self.history.step, metrics["eval_loss"]
        if not math.isfinite(loss):
            raise InputError(f"The validation loss is {loss} at step {step}; a smaller lr or max_grad_norm may help.")
        if processes.is_first():
            report(
                f"Step {step} of {self.schedule.steps}: validation loss {loss:.4f}, accuracy "
                f"{metrics['eval_accuracy']:.4f}, rank correlation {metrics['eval_spearman']:.4f}."
            )
            if loss < min(self.history.validation_losses, default=math.inf):
                save_best(self.state, self.learner)
        self._log(metrics)

    def _measured(self, check: Callable[[], None]) -> dict[str, float]:
        """The metrics of the validation, of several objectives their means, and those of each beside."""
        measured = [self._measured_on(number, check) for number in range(len(self.validation))]
        if len(measured) == 1:
            return measured[0]
        means = {name: math.fsum(each[name] for each in measured) / len(measured) for name in measured[0]}
        named = zip(self.settings.sets, measured, strict=True)
        return means | {f"{name} of {of}": value for of, each in named for name, value in each.items()}

    def _measured_on(self, number: int, check: Callable[[], None]) -> dict[str, float]:
        """The metrics of the validation of one of the objectives; of losses that are added up, that of each beside."""
        examples, predicted = self.validation[number], None
        if len(self.validation) > 1:
            examples = replace(examples, objectives=np.full(len(examples), number))
        if self.collate.masking is not None:
            predicted = predict(self.learner, examples, self.collate.masking, seed=self.run_seed, check=check)

        def by(loss: Callable[[Tensor, Batch, Tensor | None], Tensor]) -> Loss:
            return lambda vectors, batch: loss(
                vectors, batch, None if predicted is None else predicted[batch.documents]
            )

        return measure(
            self.learner.encoder,
            examples,
            by(self.objective.loss_of),
            beside={name: by(partial(self.objective.one_of, each)) for name, each in self.objective.named.items()},
            batch_size=self.settings.batch_size,
            comparisons=self.settings.comparisons,
            seed=self.run_seed,
            check=check,
        )

    def _log(self, metrics: dict[str, float]) -> None:
        self.history.log.append({"step": self.history.step, **metrics})

    def _save(self) -> None:
        self._read_losses()
        if processes.is_first():
            save_checkpoint(self.state, self.learner, self.optimiser, self.history)
        processes.wait()  # a process that ends before all is saved would have the others ended
