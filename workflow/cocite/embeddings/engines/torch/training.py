"""Train a graph embedding in torch, and go on exactly where a killed training stood.

The edges are dealt once into buckets by the partitions of their ends; with one partition there is one bucket. An epoch
goes through the buckets (`schedule.py`), a bucket a stretch of edges at a time, a stretch batch by batch. What is
random in a stretch comes from a seed of its own, and a checkpoint lies between two stretches, so that a training that
was killed ends with the same bits as one that was not. With several devices it lies between two rounds.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import torch

from cocite.config.entries import as_json
from cocite.core.checkpoints import fingerprint_of, sampled_fingerprint
from cocite.core.errors import InputError
from cocite.core.precision import computes_in
from cocite.core.progress import progress_bar, report
from cocite.core.randomness import derive_seed
from cocite.embeddings.edges import Rows
from cocite.embeddings.engines.torch import Torch
from cocite.embeddings.engines.torch.batches import make_batches
from cocite.embeddings.engines.torch.blocks import Block, FloatRows, Partitions
from cocite.embeddings.engines.torch.buckets import Buckets, deal_into_buckets
from cocite.embeddings.engines.torch.checkpoints import EDGES, Position, Progress, TrainingState
from cocite.embeddings.engines.torch.devices import explain_full_memory, plan_partitions, use_threads
from cocite.embeddings.engines.torch.first_vectors import FirstVectors
from cocite.embeddings.engines.torch.schedule import Bucket, buckets_of_round, rounds_of_epoch
from cocite.embeddings.engines.torch.steps import Step
from cocite.embeddings.imported import ImportedFolder, partition_starts
from cocite.embeddings.link_prediction import Batch, load_held_out, measure
from cocite.embeddings.losses import edge_loss
from cocite.embeddings.scoring import score_batch
from cocite.embeddings.vectors import Trained, Vectors

STRETCH = 1 << 18
"""Edges of a stretch, about: some seconds of a CPU, and what is put into another order in each epoch."""

Stretch = tuple[Bucket, int]
"""A bucket, and its edge that the stretch begins with."""


def train_graph_embedding(
    imported: Path, settings: Torch, *, seed: int, state: Path, devices: Sequence[torch.device]
) -> Trained:
    """Train to the end, from the checkpoint in `state` if it belongs to the same settings, seed, edges and start.

    Raises `InputError` for what cannot be held in memory, and for gradients that are not finite.
    """
    graph, kept = ImportedFolder(imported), TrainingState(state)
    start = [] if settings.start is None else [Path(settings.start)]
    depends_on = {
        "edges": fingerprint_of([imported]),
        "start": sampled_fingerprint(start),
        "devices": [device.type for device in devices],
    }
    progress = kept.open({**as_json(settings), "seed": seed, **depends_on})
    with use_threads(settings.threads), explain_full_memory():
        if progress is None:
            partitions = plan_partitions(settings, len(graph.papers()), devices)
            progress = Progress(partitions=partitions, versions=[0] * partitions)
            kept.commit(progress)
        training = Training(graph, settings, seed=seed, kept=kept, progress=progress, devices=devices)
        training.run()
    return Trained(vectors=Vectors(training.partitions.vectors()), scores=kept.scores(settings.epochs))


class Training:
    """The parts of a training, and its loop."""

    def __init__(
        self,
        graph: ImportedFolder,
        settings: Torch,
        *,
        seed: int,
        kept: TrainingState,
        progress: Progress,
        devices: Sequence[torch.device],
    ) -> None:
        self.graph, self.settings, self.seed, self.kept, self.progress = graph, settings, seed, kept, progress
        papers = graph.papers()
        starts = partition_starts(len(papers), progress.partitions)
        start = None if settings.start is None else Path(settings.start)
        first = FirstVectors(papers, seed=seed, start=start, max_norm=settings.max_norm)
        self.partitions = Partitions(kept, progress, starts, first, settings.dimension)
        self.buckets = _buckets(graph, starts, kept.folder / EDGES)
        storage = getattr(torch, settings.storage)
        self.blocks = [Block(self.partitions, device, settings.dimension, storage) for device in devices]
        self.steps = [_step_on(block, settings, alone=len(devices) == 1) for block in self.blocks]
        self.stretch = max(1, STRETCH // settings.batch_size) * settings.batch_size
        self.committed = time.monotonic()
        if progress.held:
            self.blocks[0].hold_again(progress.held)

    def run(self) -> None:
        """Train the epochs that are left, and measure each."""
        epochs, done = self.settings.epochs, self.progress.position
        if done.epoch == epochs:
            return
        if done != Position():
            report(f"going on in epoch {done.epoch + 1} of {epochs}")
        held_out = load_held_out(self.graph, seed=self.seed)
        with progress_bar(of="train", unit="edges", total=self.buckets.edges * epochs) as self.bar:
            self.bar.update(self.buckets.edges * done.epoch)
            for epoch in range(done.epoch, epochs):
                self._train_epoch(epoch)
                self.kept.keep_scores(epoch + 1, self._measure(held_out))
                self._commit(Position(epoch=epoch + 1))

    def _train_epoch(self, epoch: int) -> None:
        rounds = rounds_of_epoch(len(self.partitions.versions), len(self.blocks), seed=self.seed, epoch=epoch)
        position = self.progress.position
        started, summed, edges = time.monotonic(), 0.0, 0
        for number in range(position.round, len(rounds)):
            of_devices = [list(self._stretches(buckets)) for buckets in buckets_of_round(rounds, number)]
            if len(self.blocks) == 1:
                skipped = position.stretch if number == position.round else 0
                done = self._train_alone(epoch, number, rounds[number][0], of_devices[0], skipped)
            else:
                done = self._train_together(epoch, number, rounds[number], of_devices)
            summed, edges = summed + done[0], edges + done[1]
        if edges == 0:  # a training that was killed had come to the end of the epoch, and had not measured it yet
            return
        rate = edges / (time.monotonic() - started)
        report(f"epoch {epoch + 1} of {self.settings.epochs}: training loss {summed / edges:.3f}, {rate:,.0f} edges/s")

    def _stretches(self, buckets: Sequence[Bucket]) -> Iterator[Stretch]:
        for lhs, rhs in buckets:
            for first in range(0, self.buckets.counts[lhs][rhs], self.stretch):
                yield (lhs, rhs), first

    def _train_alone(
        self, epoch: int, number: int, pair: tuple[int, ...], stretches: list[Stretch], skipped: int
    ) -> tuple[float, int]:
        """Train the rest of a round on the one device; the sum of losses, and the number of edges."""
        self.blocks[0].hold(pair)
        summed, edges = 0.0, 0
        for at, stretch in enumerate(stretches[skipped:], start=skipped):
            if time.monotonic() - self.committed > 60 * self.settings.checkpoint_minutes:
                self._commit(Position(epoch=epoch, round=number, stretch=at))
            loss, count = self._train_stretch(0, epoch, stretch)
            summed, edges = summed + loss, edges + count
        return summed, edges

    def _train_together(
        self, epoch: int, number: int, pairs: Sequence[tuple[int, ...]], of_devices: Sequence[list[Stretch]]
    ) -> tuple[float, int]:
        """Train a round, each pair of partitions on a device of its own; the next round begins from the files."""

        def train_pair(device: int) -> list[tuple[float, int]]:
            self.blocks[device].hold(pairs[device])
            done = [self._train_stretch(device, epoch, stretch) for stretch in of_devices[device]]
            self.blocks[device].leave()
            return done

        with ThreadPoolExecutor(len(pairs)) as threads:
            done = [result for results in threads.map(train_pair, range(len(pairs))) for result in results]
        self._commit(Position(epoch=epoch, round=number + 1))
        return sum(loss for loss, _ in done), sum(count for _, count in done)

    def _train_stretch(self, device: int, epoch: int, stretch: Stretch) -> tuple[float, int]:
        """Train on a stretch; the sum of losses, and the number of edges."""
        (bucket, first), block, step = stretch, self.blocks[device], self.steps[device]

        def seed_of(use: str) -> int:
            return derive_seed(self.seed, "torch", use, epoch, *bucket, first)

        ends, weights = self.buckets.read(bucket, first, self.stretch)
        order = torch.from_numpy(np.random.default_rng(seed_of("order of edges")).permutation(len(weights)))
        ends, weights = (numbers[..., order].to(block.device) for numbers in (ends, weights))
        step.seed(seed_of("rounding"))
        block.changed = True
        sides = block.side(bucket[0]), block.side(bucket[1])
        drawn = torch.Generator(block.device).manual_seed(seed_of("negatives"))
        losses = [step.train(batch) for batch in make_batches(ends, weights, sides, self.settings, drawn)]
        of_batches = torch.stack(losses).double().cpu()
        wrong = torch.nonzero(~of_batches.isfinite())
        if len(wrong):
            raise InputError(
                f"epoch {epoch + 1}, batch {int(wrong[0]) + 1} after edge {first:,} of bucket {bucket}: a gradient is "
                f"not finite; lower lr, which is {self.settings.lr:g}."
            )
        self.bar.update(len(weights))
        return float(of_batches.sum()), len(weights)

    def _measure(self, held_out: Sequence[Batch]) -> dict[str, object]:
        """Link prediction with the vectors as they are now."""
        if self.progress.partitions == 1:
            parts = [FloatRows(lambda: self.blocks[0].vectors[:-1])]
        else:
            self._write()
            parts = self.partitions.vectors()
        vectors = Vectors(parts)
        loss = edge_loss(self.settings.loss)
        score = partial(score_batch, vectors, comparator=self.settings.comparator, max_norm=self.settings.max_norm)
        return measure(held_out, score, lambda edges, negatives: loss(edges, negatives).sum())

    def _commit(self, position: Position) -> None:
        self._write()
        self.progress.position, self.progress.versions = position, list(self.partitions.versions)
        self.progress.held = list(self.blocks[0].held) if len(self.blocks) == 1 else []
        self.kept.commit(self.progress)
        self.committed = time.monotonic()

    def _write(self) -> None:
        for block in self.blocks:
            block.write()


def _buckets(graph: ImportedFolder, starts: Rows, folder: Path) -> Buckets:
    return Buckets(folder) if folder.exists() else deal_into_buckets(graph, starts, folder)


def _step_on(block: Block, settings: Torch, *, alone: bool) -> Step:
    """The step for a device: compiled for a CPU that trains alone, as Numba's threads may not be started by several."""
    precision = computes_in(settings.precision, block.device)
    if block.device.type == "cpu" and alone:
        from cocite.embeddings.engines.torch.cpu_steps import CpuStep

        return CpuStep(settings, block.vectors, block.squares, precision)
    return Step(settings, block.vectors, block.squares, precision)
