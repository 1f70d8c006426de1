"""BERT-base on whatever device there is: what a training and an embedding make of it, and what limits them.

Random weights in the shape of BERT-base, texts as long as those of hci and up to 512 tokens, five triplets a query,
triplet loss; bfloat16 on a GPU, float32 on a CPU. On a GPU also a decoder in the shape of Qwen3-Embedding-0.6B, which
learns low-rank additions by MNRL. The device's best is a product of large matrices, measured here; the share of it
counts the work that the tokens need, without padding and recomputation. What a CPU takes to give a GPU the work of a
step is measured with as many layers, packed documents and hardly anything to compute in them.
"""

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from tests.benchmarks.made_triplets import PER_QUERY, write_decoder, write_documents, write_encoder, write_triplets
from tests.benchmarks.measuring import say, say_header, say_row
from tests.examples import files_in

from cocite.config.encoders import LowRank
from cocite.config.models import TrainingSettings
from cocite.core.gpus import Precision
from cocite.encoder import attention
from cocite.encoder.embedding import embed_tables
from cocite.encoder.examples import open_examples
from cocite.encoder.model import open_encoder
from cocite.encoder.objective import new_learner
from cocite.encoder.trainer import Trainer
from cocite.plan.memory import GPU_SHARE, gpu_memory, mini_batch_tokens

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
SIZE = 8192 if ON_GPU else 2048
PRODUCTS, ROUNDS = 10, 5
LAYERS, HIDDEN, HEADS = 12, 768, 12
NARROW, SHORT, FEW = 12, 4, 100
"""Width of an encoder, length of its documents and words of its vocabulary that take next to no time."""
WARM_NARROW, STEPS_NARROW = 20, 200
THREADS = torch.get_num_threads()
PRECISION: Precision = "bfloat16" if ON_GPU else "float32"
BATCHES = (32, 128, 512) if ON_GPU else (PER_QUERY,)
WARM, STEPS = (5, 15) if ON_GPU else (1, 2)
DOCUMENTS = 50_000 if ON_GPU else 100
PHASES = ("forward", "backward", "optimiser")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """An encoder that is measured, and how it learns."""

    name: str
    layers: int
    of_token: float
    """Weights of a layer that a token is multiplied with, counted as often as their products are: forwards, and
    backwards for the tokens and for the weights, if they learn."""
    of_pair: float
    """Multiplications of a layer for each pair of tokens, forwards and backwards."""
    settings: dict[str, Any]
    """Of the training, without its batch size."""
    batches: tuple[int, ...] = BATCHES
    """Triplets of a batch."""


BERT = Shape(name="bert", layers=LAYERS, of_token=3 * 12 * HIDDEN**2, of_pair=3 * 2 * HIDDEN, settings={})
QWEN = Shape(
    name="qwen3",
    layers=28,
    of_token=2 * 1024 * (2048 + 2 * 1024 + 2048 + 3 * 3072),
    of_pair=3 * 2048,  # a token attends to those before it
    settings={"loss": "mnrl", "trainable": {"kind": "lora", "rank": 16}},
    batches=(32, 128),
)


class Phases:
    """Adds up the seconds of each phase of the steps that are measured; the device is waited for after each."""

    def __init__(self, training: Trainer) -> None:
        self.spent = dict.fromkeys(PHASES, 0.0)
        training.objective = self.timed("forward", training.objective)
        training.optimiser.step = self.timed("optimiser", training.optimiser.step)
        self.backward, torch.Tensor.backward = torch.Tensor.backward, self.timed("backward", torch.Tensor.backward)

    def timed(self, phase: str, call: Callable[..., Any]) -> Callable[..., Any]:

        def called(*arguments: Any, **keywords: Any) -> Any:
            start = now()
            answer = call(*arguments, **keywords)
            self.spent[phase] += now() - start
            return answer

        return called

    def forget(self) -> None:
        self.spent = dict.fromkeys(PHASES, 0.0)

    def stop(self) -> None:
        torch.Tensor.backward = self.backward


def main(folder: Path) -> None:
    write_encoder(folder / "bert", layers=LAYERS, hidden=HIDDEN, heads=HEADS)
    if ON_GPU:
        write_decoder(folder / "qwen3")
    queries = {"training": -(-max(BATCHES) * (WARM + STEPS) // PER_QUERY), "validation": 1}
    for seed, (name, count) in enumerate(queries.items(), 1):
        write_triplets(folder / name, count, seed, folder / "bert")
    best = product_peak(PRECISION)
    name = torch.cuda.get_device_name() if ON_GPU else f"CPU, {THREADS} threads"
    say(f"{name}, {PRECISION}; a product of {SIZE} × {SIZE} matrices makes {best / 1e12:.2f} TFLOP/s")
    cases = [(shape, batch) for shape in ((BERT, QWEN) if ON_GPU else (BERT,)) for batch in shape.batches]
    speeds = ("triplets/s", "tokens/s", "padding", "TFLOP/s", "of the best", "memory")
    say_header("encoder", "triplets a batch", "at once", *speeds)
    for shape, batch in cases:
        tell_speed(folder, shape, batch, best)
    say_header("encoder", "triplets a batch", *PHASES, "the rest", "making a batch")
    for shape, batch in cases:
        tell_phases(folder, shape, batch)
    tell_overhead(folder / "narrow")
    write_documents(folder / "documents.parquet", DOCUMENTS)
    start = now()
    where = {"threads": THREADS, "state": folder / "state", "precision": PRECISION}
    embed_tables(folder / "bert", [folder / "documents.parquet"], folder / "vectors", **where)
    say(f"\nembedding {DOCUMENTS} documents: {DOCUMENTS / (now() - start):.1f} a second, start included")


def tell_speed(folder: Path, shape: Shape, batch: int, best: float) -> None:
    training = prepared(folder, batch, shape=shape)
    lengths, padded, _ = made_batches(training)
    tokens, squares = sum(some.sum() for some in lengths), sum((some**2).sum() for some in lengths)
    seconds = seconds_of(training)
    # Additions and multiplications of matrices, forwards and backwards.
    rate = 2.0 * shape.layers * (shape.of_token * tokens + shape.of_pair * squares) / seconds
    speeds = (f"{STEPS * batch / seconds:.2f}", f"{tokens / seconds:,.0f}", f"{1 - tokens / padded:.0%}")
    shares = (f"{rate / 1e12:.2f}", f"{rate / best:.0%}", f"{peak_gb():.1f} GB")
    say_row(shape.name, batch, training.settings.mini_batch_tokens, *speeds, *shares)


def tell_phases(folder: Path, shape: Shape, batch: int) -> None:
    training = prepared(folder, batch, shape=shape)
    *_, making = made_batches(training)
    seconds, phases = phases_of(training)
    shares = [spent / seconds for spent in phases]
    told = [f"{share:.0%}" for share in (*shares, 1 - sum(shares))]
    say_row(shape.name, batch, *told, f"{1000 * making / STEPS:.1f} ms")


def tell_overhead(folder: Path) -> None:
    """Print what the CPU takes for a step in which there is next to nothing to compute, in both precisions.

    A batch is one triplet. Without a GPU the documents are packed as for one, attention hands on its values, and rows
    are not filled: all that is computed is computed by the CPU that is measured.
    """
    write_encoder(folder / "bert", layers=LAYERS, hidden=NARROW, heads=HEADS, length=SHORT, words=FEW)
    for seed, name in enumerate(("training", "validation")):
        write_triplets(folder / name, WARM_NARROW + STEPS_NARROW, seed, folder / "bert")
    torch.set_num_threads(1)
    say_header(f"{LAYERS} narrow layers", *PHASES, "a whole step")
    for precision in ("float32", "bfloat16"):
        with nullcontext() if ON_GPU else as_for_a_gpu() as stubbed, torch.backends.mkldnn.flags(enabled=False):
            narrow = prepared(folder, 1, WARM_NARROW + STEPS_NARROW, precision)
            with patch.dict(attention.KERNELS, stubbed or {}):
                seconds, phases = phases_of(narrow, warm=WARM_NARROW)
        say_row(precision, *(f"{1000 * spent / STEPS_NARROW:.1f} ms" for spent in (*phases, seconds)))
    torch.set_num_threads(THREADS)


@contextmanager
def as_for_a_gpu() -> Iterator[dict[str, Any]]:
    """Let a CPU pack documents, in rows that are not filled; yield the attention that hands on its values."""
    with patch("cocite.encoder.trainer.ON_GPU", DEVICE), patch("cocite.encoder.documents.ROW", 1):
        yield {DEVICE: lambda tokens, *_, **__: tokens[2]}


def prepared(
    folder: Path, batch: int, steps: int = WARM + STEPS, precision: Precision = PRECISION, shape: Shape = BERT
) -> Trainer:
    settings = TrainingSettings(batch_size=batch, **shape.settings)
    encoder = open_encoder(folder / shape.name, precision, reduced=isinstance(settings.trainable, LowRank))
    files, validation = files_in(folder / "training"), open_examples(files_in(folder / "validation"))
    if ON_GPU:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        memory_mb = int(GPU_SHARE * torch.cuda.mem_get_info()[0] / 1e6)
        sets, how = [(files.table, files.tokens)], {"estimate": gpu_memory, "number_format": precision}
        tokens, _ = mini_batch_tokens(memory_mb, folder / shape.name, sets, settings, **how)
        settings = settings.model_copy(update={"mini_batch_tokens": tokens or "all"})
    training = open_examples(files)
    some = replace(training, queries=training.queries[: batch * steps])
    learner = new_learner(encoder, settings, seed=1)
    return Trainer(learner, some, [validation], settings, seed=1, state=folder / "state")


def phases_of(training: Trainer, warm: int = WARM) -> tuple[float, list[float]]:
    """The seconds of the steps that are measured, and those of each phase."""
    phases = Phases(training)
    seconds = seconds_of(training, warm, phases.forget)
    phases.stop()
    return seconds, [*phases.spent.values()]


def seconds_of(training: Trainer, warm: int = WARM, then: Callable[[], None] = lambda: None) -> float:
    """The seconds of the steps that are measured, after those that warm the device up; in between, `then` is called."""
    start = now()
    for step, batches in training.steps():
        training.step(step, batches)
        if step == warm:
            then()
            start = now()
    return now() - start


def made_batches(training: Trainer) -> tuple[list[np.ndarray], int, float]:
    """The lengths of the distinct documents of each batch, their tokens with padding, and the seconds of making."""
    start = time.perf_counter()
    numbers = (batch for step in range(WARM + 1, WARM + STEPS + 1) for batch in training.schedule.batches_of(step))
    batches = [training.collate(*of_batch) for of_batch in numbers]
    making = time.perf_counter() - start
    padded = sum(some["input_ids"].numel() for batch in batches for some in batch.mini_batches)
    return [training.training.documents.lengths[batch.documents] for batch in batches], padded, making


def peak_gb() -> float:
    """Peak of the memory: a GPU's since the training was prepared, or that of the process."""
    if ON_GPU:
        return torch.cuda.max_memory_allocated() / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def product_peak(precision: str) -> float:
    """Operations a second, the best of `ROUNDS`."""
    some, others = torch.randn(2, SIZE, SIZE, device=DEVICE).to(getattr(torch, precision))
    return 2 * SIZE**3 * PRODUCTS / _shortest(lambda: [some @ others for _ in range(PRODUCTS)])


def copy_peak(size: int = 2**30) -> float:
    """Bytes a second that a copy reads and writes on the device, the best of `ROUNDS`."""
    some, others = torch.zeros(2, size, dtype=torch.uint8, device=DEVICE)
    return 2 * size / _shortest(lambda: others.copy_(some))


def now() -> float:
    if ON_GPU:
        torch.cuda.synchronize()
    return time.perf_counter()


def _shortest(call: Callable[[], object]) -> float:
    """Seconds of the quickest of several calls, after one that warms up."""
    call()
    seconds = []
    for _ in range(ROUNDS):
        start = now()
        call()
        seconds.append(now() - start)
    return min(seconds)
