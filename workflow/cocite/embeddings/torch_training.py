"""Train a graph embedding in torch, and resume a killed training exactly.

The edges are dealt once into buckets by the partitions of their ends. An epoch goes through the buckets, a bucket a
stretch of edges at a time. Each stretch has its own seed, and checkpoints are between two stretches, or with several
devices between two rounds, so that a training that was killed ends with the same bits.
"""

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import ceil, inf
from pathlib import Path

import numba
import numpy as np
import torch

from cocite.config.entries import as_json
from cocite.core.checkpoints import fingerprint_of, sampled_fingerprint, write_checked_json
from cocite.core.errors import InputError
from cocite.core.gpus import computes_in, take_gpus
from cocite.core.progress import progress_bar, report
from cocite.core.randomness import derive_seed
from cocite.embeddings import torch_partitions
from cocite.embeddings.engines import Torch
from cocite.embeddings.imported import ImportedFolder
from cocite.embeddings.link_prediction import Batch, edge_loss, load_held_out, measure, score_batch
from cocite.embeddings.torch_compiled_step import CpuStep
from cocite.embeddings.torch_partitions import Block, Bucket, Buckets, Partitions, Position, Progress, TrainingState
from cocite.embeddings.torch_step import Step, make_batches
from cocite.embeddings.trained import Trained, Vectors, kept_scores, score_file

BYTES_ON_GPU = 40  # memory of a step for each number of the vectors of a batch
SHARE_OF_GPU = 0.9  # share of a GPU's free memory for the vectors
MOST_PARTITIONS = 64  # more would be swapped more often than trained
STRETCH = 1 << 18  # about the edges of a stretch: some seconds of a CPU

Stretch = tuple[Bucket, int]  # a bucket, and its first edge of the stretch


def train_graph_embedding(
    imported: Path, settings: Torch, *, seed: int, state: Path, devices: Sequence[torch.device]
) -> Trained:
    """Train to the end, from a checkpoint in `state` of the same settings, seed, edges and start. Raises `InputError`
    for a lack of memory, and for gradients that are not finite."""
    graph, kept = ImportedFolder(imported), TrainingState(state)
    depends_on = {
        "edges": fingerprint_of([imported]),
        "start": sampled_fingerprint(settings.files),
        "devices": [device.type for device in devices],
        "precision": str(computes_in(settings.precision, devices[0])).removeprefix("torch."),
    }
    progress = kept.open({**as_json(settings), "seed": seed, **depends_on})
    torch.set_num_threads(settings.threads)
    numba.set_num_threads(min(settings.threads, numba.config.NUMBA_NUM_THREADS))  # type: ignore[attr-defined]
    try:
        if progress is None:
            partitions = plan_partitions(settings, len(graph.papers()), devices)
            progress = Progress(partitions=partitions, versions=[0] * partitions)
            kept.commit(progress)
        training = Training(graph, settings, seed=seed, kept=kept, progress=progress, devices=devices)
        training.run()
    except torch.OutOfMemoryError as error:
        remedy = "lower memory_mb, so that the papers are trained in more partitions, or batch_size"
        raise InputError(f"the device is out of memory ({str(error).splitlines()[0]}); {remedy}.") from None
    return Trained(vectors=Vectors(training.partitions.vectors()), scores=kept_scores(state, settings.epochs))


class Training:
    """The parts of a training, and its loop."""

    def __init__(
        self, graph: ImportedFolder, settings: Torch, *, seed: int, kept: TrainingState, progress: Progress,
        devices: Sequence[torch.device],
    ) -> None:  # fmt: skip
        self.graph, self.settings, self.seed, self.kept, self.progress = graph, settings, seed, kept, progress
        self.partitions = Partitions(kept, progress, graph.papers(), settings, seed=seed)
        edges, starts = kept.folder / torch_partitions.EDGES, self.partitions.starts
        self.buckets = Buckets(edges) if edges.exists() else torch_partitions.deal_into_buckets(graph, starts, edges)
        storage = getattr(torch, settings.storage)
        self.blocks = [Block(self.partitions, device, settings.dimension, storage) for device in devices]
        # With several devices, several threads train, which may not start those of Numba.
        step = CpuStep if len(devices) == 1 and devices[0].type == "cpu" else Step
        precisions = (computes_in(settings.precision, device) for device in devices)
        self.steps = [
            step(settings, block.vectors, block.squares, precision)
            for block, precision in zip(self.blocks, precisions, strict=True)
        ]
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
            report(f"resuming in epoch {done.epoch + 1} of {epochs}")
        held_out = load_held_out(self.graph, seed=self.seed)
        with progress_bar(of="train", unit="edges", total=self.buckets.edges * epochs) as self.bar:
            self.bar.update(self.buckets.edges * done.epoch)
            for epoch in range(done.epoch, epochs):
                self._train_epoch(epoch)
                write_checked_json(score_file(self.kept.folder, epoch + 1), self._measure(held_out))
                self._commit(Position(epoch=epoch + 1))

    def _train_epoch(self, epoch: int) -> None:
        partitions, devices = len(self.partitions.versions), len(self.blocks)
        rounds = torch_partitions.rounds_of_epoch(partitions, devices, seed=self.seed, epoch=epoch)
        position = self.progress.position
        started, summed, edges = time.monotonic(), 0.0, 0
        for number in range(position.round, len(rounds)):
            of_devices: list[list[Stretch]] = [
                [
                    (bucket, first)
                    for bucket in buckets
                    for first in range(0, self.buckets.counts[bucket[0]][bucket[1]], self.stretch)
                ]
                for buckets in torch_partitions.buckets_of_round(rounds, number)
            ]
            if len(self.blocks) == 1:
                skipped = position.stretch if number == position.round else 0
                done = self._train_alone(epoch, number, rounds[number][0], of_devices[0], skipped)
            else:
                done = self._train_together(epoch, number, rounds[number], of_devices)
            summed, edges = summed + done[0], edges + done[1]
        if edges == 0:  # a training that was killed had not measured the end of the epoch
            return
        rate = edges / (time.monotonic() - started)
        report(f"epoch {epoch + 1} of {self.settings.epochs}: training loss {summed / edges:.3f}, {rate:,.0f} edges/s")

    def _train_alone(
        self, epoch: int, number: int, pair: tuple[int, ...], stretches: list[Stretch], skipped: int
    ) -> tuple[float, int]:
        """Train the rest of a round on one device; the sum of losses, and the number of edges."""
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
        """Train a round, each pair of partitions on its own device; the next round begins from the files."""

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
            where = f"epoch {epoch + 1}, batch {int(wrong[0]) + 1} after edge {first:,} of bucket {bucket}"
            raise InputError(f"{where}: a gradient is not finite; lower lr, which is {self.settings.lr:g}.")
        self.bar.update(len(weights))
        return float(of_batches.sum()), len(weights)

    def _measure(self, held_out: Sequence[Batch]) -> dict[str, object]:
        """Link prediction with the vectors as they are now."""
        if self.progress.partitions == 1:
            parts = [torch_partitions.FloatRows(lambda: self.blocks[0].vectors[:-1])]
        else:
            for block in self.blocks:
                block.write()
            parts = self.partitions.vectors()
        loss, vectors = edge_loss(self.settings.loss), Vectors(parts)
        score = partial(score_batch, vectors, comparator=self.settings.comparator, max_norm=self.settings.max_norm)
        return measure(held_out, score, lambda edges, negatives: loss(edges, negatives).sum())

    def _commit(self, position: Position) -> None:
        for block in self.blocks:
            block.write()
        self.progress.position, self.progress.versions = position, list(self.partitions.versions)
        self.progress.held = list(self.blocks[0].held) if len(self.blocks) == 1 else []
        self.kept.commit(self.progress)
        self.committed = time.monotonic()


def available_devices(settings: Torch) -> list[torch.device]:
    """The requested GPUs, as far as available, or the CPU."""
    take_gpus(settings.gpus)
    gpus = min(settings.gpus, torch.cuda.device_count())
    return [torch.device("cuda", number) for number in range(gpus)] or [torch.device("cpu")]


def plan_partitions(settings: Torch, papers: int, devices: Sequence[torch.device]) -> int:
    """The fewest partitions that the memory of the devices, or `memory_mb`, allows."""
    bound, overhead = settings.memory_mb, settings.overhead_mb(papers)
    if devices[0].type == "cuda":
        free = min(torch.cuda.mem_get_info(device)[0] for device in devices)
        bound = min(bound or sys.maxsize, int(free / 1e6 * SHARE_OF_GPU))
        overhead = settings.values_of_batch * BYTES_ON_GPU / 1e6
    vectors = settings.vectors_mb(papers)
    partitions = partitions_within(bound, vectors, overhead=overhead, papers=papers, devices=len(devices))
    report(f"{papers:,} papers in {partitions} {'partition' if partitions == 1 else 'partitions'}")
    return partitions


def partitions_within(
    bound_mb: float | None, vectors: float, *, overhead: float = 0, papers: int, devices: int = 1
) -> int:
    """The smallest number of partitions of which two fit into the bound on each device, or 1; sizes are in MB. Raises
    `InputError` if even the smallest partitions are too large, or the papers too few for the devices."""
    room = inf if bound_mb is None else bound_mb - overhead
    if devices == 1 and vectors <= room:
        return 1
    most = min(MOST_PARTITIONS, papers)
    fewest = max(2 * devices, 3)
    if fewest > most:
        few = f"{devices} GPUs take {fewest} partitions, but there are {papers} papers"
        raise InputError(f"--settings: {few}; lower gpus.")
    if room * most < 2 * vectors:
        needed = f"at least {ceil(overhead + 2 * vectors / most):,} MB, in {most} partitions"
        allowed = f"{bound_mb:,.0f} MB are allowed or free; raise memory_mb or lower dimension"
        raise InputError(f"--settings: {papers:,} papers need {needed}, but {allowed}.")
    return max(fewest, ceil(2 * vectors / room))
