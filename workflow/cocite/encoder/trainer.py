"""Fine-tune an encoder on examples: the loop, from the tokens of a batch to the weights that are kept.

The published recipe (CoCite, 2024): AdamW, linear warm-up and decay; the state with the smallest validation loss is
kept. A step depends only on settings, seed and number, so that a training resumes to the same weights.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from cocite.config.encoders import Bottlenecks, LowRank
from cocite.config.entries import as_json
from cocite.config.models import TrainingSettings
from cocite.core.checkpoints import fingerprint_of, open_state, remove_state, work_in
from cocite.core.errors import InputError
from cocite.core.gpus import Precision
from cocite.core.progress import ahead, report
from cocite.core.randomness import derive_seed
from cocite.encoder import processes, results
from cocite.encoder.adapters import adapters_in, learned_weights, merge_lora, read_adapter, switch_on
from cocite.encoder.batch import Batch, Collator
from cocite.encoder.card import library_versions
from cocite.encoder.examples import ExampleFiles, Examples, describe_missing_teacher_vectors, open_sets
from cocite.encoder.measuring import KEEP_FREED, RETURN_FREED, explained_memory, measure, set_memory
from cocite.encoder.model import open_encoder
from cocite.encoder.objective import Learner, Objective, new_learner
from cocite.encoder.processes import Stopping, Unfinished
from cocite.encoder.results import BEST, EVENTS, Outputs, save_weights, write_results
from cocite.encoder.schedule import Schedule
from cocite.plan.memory import GPU_SHARE, check_weights, gpu_memory, mini_batch_tokens

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
    """The table graph_embeddings of each teacher, by its name."""

    @property
    def paths(self) -> list[Path]:
        """All files and folders, each once."""
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
    memory_mb: int | None = None,
    precision: Precision = "float32",
    stopping: Stopping | None = None,
) -> None:
    """Train, or resume a training that was killed or stopped; then write the results and remove `state`. Raises
    `Unfinished` if `stopping` stops it, and `InputError` if the tables cannot be used, the loss is not finite, or
    memory runs out."""
    torch.set_num_threads(threads)
    # Outside of a step's gradients, operations without a deterministic kernel warn instead of ending the training.
    torch.set_deterministic_debug_mode("warn")
    # Every tensor is written before it is read; filling all of them first takes a third of the kernels of a step.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    processes.connect()
    if memory_mb is not None and not torch.cuda.is_available():
        check_weights(inputs.encoder, settings, memory_mb, processes.count())
    encoder = open_encoder(inputs.encoder, precision, reduced=isinstance(settings.trainable, LowRank))
    if isinstance(settings.trainable, Bottlenecks) and settings.trainable.name in adapters_in(inputs.encoder):
        switch_on(encoder, read_adapter(encoder, inputs.encoder, settings.trainable.name))
    seeds = {"run": seed, "training": training_seed}
    computes_in = str(encoder.computes_in).removeprefix("torch.")
    resolved = {**as_json(settings), "block": settings.together, "precision": computes_in}
    work: dict[str, Any] = {"settings": resolved, "seeds": seeds, "processes": processes.count()}
    if processes.is_first():
        work |= {"inputs": fingerprint_of(inputs.paths), "versions": library_versions()}
    if settings.mini_batch_tokens == "auto":
        device = encoder.device.type
        chosen = processes.largest(_choose_tokens(inputs, settings, memory_mb, device, state, work)) or "all"
        settings = settings.model_copy(update={"mini_batch_tokens": chosen})
        resolved["mini_batch_tokens"] = chosen
    set_memory(KEEP_FREED if settings.tokens_at_once is None else RETURN_FREED)
    frame = encoder.tokenizer.frame
    training, opened = open_sets(inputs.training, inputs.validation, inputs.teachers, settings, frame)
    validation = [opened[files] for files in inputs.validation]
    if processes.is_first():
        implied = partial(results.implied_files, state)
        open_state(state, work, work="training", scratch=[f"{EVENTS}/*"], implied=implied)
    processes.wait()
    drawing_seed = derive_seed(seed, "train", training_seed)
    aspects = [] if training.aspects is None else np.unique(training.aspects).tolist()
    learner = new_learner(encoder, settings, drawing_seed, aspects, inputs.encoder)
    trainer = Trainer(learner, training, validation, settings, seed=drawing_seed, run_seed=seed, state=state)
    trainer.fit(stopping or Stopping())
    if processes.is_first():
        results.load_weights(state / BEST, learner)
        merge_lora(encoder, settings, inputs.encoder)
        counts = {"training": len(training), "validation": sum(map(len, opened.values()))}
        provenance = {"settings": resolved, "seeds": seeds, "triplets": counts, "versions": library_versions()}
        if untaught := describe_missing_teacher_vectors(training, opened.values()):
            provenance["teachers"] = untaught
        write_results(outputs, learner, trainer.history, inputs.encoder, state, provenance)
        remove_state(state)


def _choose_tokens(
    inputs: Inputs, settings: TrainingSettings, memory_mb: int | None, device: str, state: Path, work: Mapping[str, Any]
) -> int:
    """The tokens of a batch that are in memory at once, as before a kill; 0 for all, and in further processes."""
    if not processes.is_first():
        return 0
    before = work_in(state) or {}
    chosen = before.get("settings", {}).get("mini_batch_tokens", "auto")
    if before == {**work, "settings": {**work["settings"], "mini_batch_tokens": chosen}}:
        return chosen if isinstance(chosen, int) else 0
    how: dict[str, Any] = {"teachers": list(inputs.teachers.values()), "processes": processes.count()}
    if device == "cuda":
        free, _ = torch.cuda.mem_get_info()
        memory_mb = int(GPU_SHARE * free / 1e6)
        how = {"estimate": gpu_memory, "number_format": work["settings"]["precision"]}
    if memory_mb is None:
        return 0
    sets = [(files.table, files.tokens) for files in inputs.training]
    tokens, needed = mini_batch_tokens(memory_mb, inputs.encoder, sets, settings, **how)
    if tokens:
        report(f"To keep to {memory_mb:,} MB, {tokens:,} tokens of a batch are in memory at once.")
    if needed > memory_mb:
        report(f"The training may take {needed:,} MB; a smaller batch_size or max_length would take less.")
    return tokens or 0


class Trainer:
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
        packs = False
        if encoder.reads == "tokens":
            from cocite.encoder.attention import enable_sequence_packing, use_fast_dropout

            if encoder.device.type == ON_GPU:
                packs = enable_sequence_packing(encoder)
            else:
                use_fast_dropout(encoder)
        sizes = [len(training)] if training.objectives is None else np.bincount(training.objectives)
        queries = np.split(training.queries, np.cumsum(sizes)[:-1])
        self.schedule = Schedule(queries=queries, settings=settings, seed=seed)
        self.collate = Collator(examples=training, encoder=encoder, settings=settings, packs=packs, seed=seed)
        self.objective = Objective(learner=learner, settings=settings)
        self.weights = list(learned_weights(learner).values())
        # AdamW (Loshchilov and Hutter, 2019), in which matrices decay and vectors do not.
        matrices, vectors = ([weight for weight in self.weights if (weight.ndim > 1) == of] for of in (True, False))
        decays = ((matrices, settings.weight_decay), (vectors, 0.0))
        groups = [{"params": some, "weight_decay": decay} for some, decay in decays if some]
        self.optimiser = torch.optim.AdamW(groups, lr=settings.lr, eps=settings.epsilon, fused=True)
        self.history = results.History()
        self.deferred: list[tuple[int, Tensor]] = []
        """Losses by their steps that are read later, because reading waits for the device."""
        self.strict = True
        """Whether gradients come only from deterministic kernels; false after an operation that has none."""
        learner.train()

    def fit(self, stopping: Stopping) -> None:
        """Take all steps, from the first one or a checkpoint on. Raises `Unfinished` if it is stopped."""
        self.history = results.load_checkpoint(self.state, self.learner, self.optimiser)
        done, last = self.history.step, self.schedule.steps
        try:
            with stopping.listening():
                if self.schedule.is_validated(done) and done not in (each["step"] for each in self.history.validations):
                    self._validate(stopping)
                with results.shown(self.history, last, self.state / EVENTS) as advance:
                    self._train_loop(stopping, advance)
        except Unfinished as stopped:
            where = f"Stopped after step {self.history.step} of {last}: {stopped}."
            raise Unfinished(f"{where} All is saved; started again, the training goes on from here.") from None

    def _train_loop(self, stopping: Stopping, advance: Callable[[], None]) -> None:
        saved_at = time.monotonic()
        for step, batches in self.steps():
            self.step(step, batches)
            if self.schedule.is_logged(step):
                self._read_losses()
                loss = math.fsum(self.history.losses) / len(self.history.losses)
                learning_rate = self.schedule.learning_rate(step)
                self.history.log.append({"step": step, "loss": loss, "learning_rate": learning_rate})
                self.history.losses = []
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
        """Yield the steps that are left with their batches, made while a GPU works, or by a thread if they are bags."""
        made = (
            (step, [self.collate(*chosen) for chosen in self.schedule.batches_of(step)])
            for step in range(self.history.step + 1, self.schedule.steps + 1)
        )
        for step in ahead(made) if self.learner.encoder.reads == "bags" else made:
            if self.history.is_out_of(self.settings.patience):
                return
            yield step

    def step(self, step: int, batches: list[Batch]) -> None:
        """Move the weights by the gradients of some batches, added up."""
        try:
            losses = self._add_gradients(step, batches)
        except RuntimeError as error:
            if not self.strict or "deterministic" not in str(error):
                raise
            report(f"Weights may differ from run to run in their last digits: {str(error).splitlines()[0]}")
            self.strict = False
            self.optimiser.zero_grad()
            losses = self._add_gradients(step, batches)
        self.deferred += [(step, loss) for loss in losses]
        processes.add_up_gradients(self.weights)
        for weight in self.learner.heads.parameters():
            if weight.grad is not None:  # each process has computed the whole gradient of a head
                weight.grad /= processes.count()
        clip_grad_norm_(self.weights, self.settings.max_grad_norm)
        for group in self.optimiser.param_groups:
            group["lr"] = self.schedule.learning_rate(step)
        self.optimiser.step()
        self.optimiser.zero_grad()
        self.history.step = step

    def _add_gradients(self, step: int, batches: list[Batch]) -> list[Tensor]:
        device = self.learner.encoder.device
        seed = derive_seed(self.seed, "dropout", step, processes.number())
        torch.default_generator.manual_seed(seed)  # `torch.manual_seed` takes 0.7 ms to look for devices
        if device.type == "cuda":
            torch.cuda.manual_seed(seed)
        losses = []
        before = torch.get_deterministic_debug_mode()
        try:
            # Attention on a GPU takes its deterministic backward pass only where other ones raise instead of warning.
            torch.set_deterministic_debug_mode("error" if self.strict and before else before)
            for batch in batches:
                with explained_memory(batch):
                    loss = self.objective(batch.to(device))
                    if loss.requires_grad:  # not if other processes have all documents of the batch
                        (loss / len(batches)).backward()
                losses.append(loss.detach())
        finally:
            torch.set_deterministic_debug_mode(before)
        return losses

    def _read_losses(self) -> None:
        values = torch.stack([loss for _, loss in self.deferred]).tolist() if self.deferred else []
        for (step, _), value in zip(self.deferred, values, strict=True):
            if not math.isfinite(value):
                raise InputError(f"The training loss is {value} at step {step}; a smaller lr or max_grad_norm helps.")
        self.history.losses += values
        self.deferred = []

    def _validate(self, stopping: Stopping) -> None:
        """Measure the validation sets, unless a signal ends it, and keep the weights if they are the best so far."""

        def check() -> None:
            if (reason := stopping.asked()) is not None:
                self._save()
                raise Unfinished(reason)

        measured = []
        for number, examples in enumerate(self.validation):
            if len(self.validation) > 1:
                examples = replace(examples, objectives=np.full(len(examples), number))
            measured.append(measure(self.objective, examples, seed=self.run_seed, check=check))
        self.learner.train()
        metrics = measured[0]
        if len(measured) > 1:  # the means of all objectives, then the metrics of each
            metrics = {name: math.fsum(each[name] for each in measured) / len(measured) for name in metrics}
            named = zip(self.settings.sets, measured, strict=True)
            metrics |= {f"{name} of {of}": value for of, each in named for name, value in each.items()}
        step, loss, best = self.history.step, metrics["eval_loss"], self.history.best
        if not math.isfinite(loss):
            raise InputError(f"The validation loss is {loss} at step {step}; a smaller lr or max_grad_norm may help.")
        if processes.is_first():
            others = f"accuracy {metrics['eval_accuracy']:.4f}, rank correlation {metrics['eval_spearman']:.4f}"
            report(f"Step {step} of {self.schedule.steps}: validation loss {loss:.4f}, {others}.")
            if best is None or loss < best["eval_loss"]:
                save_weights(self.state / BEST, self.learner)
        self.history.log.append({"step": step, **metrics})

    def _save(self) -> None:
        self._read_losses()
        if processes.is_first():
            results.save_checkpoint(self.state, self.learner, self.optimiser, self.history)
        processes.wait()  # when a process ends, the launcher ends the others
