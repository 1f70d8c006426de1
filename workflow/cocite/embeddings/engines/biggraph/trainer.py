"""PyTorch-BigGraph's trainer and its order of partitions, without randomness of their own."""

import multiprocessing
import os
import random
import threading
from typing import Any

import numpy as np
import torch
import torchbiggraph.train
from numpy.typing import NDArray
from torchbiggraph.bucket_scheduling import BucketStats, SingleMachineBucketScheduler, create_ordered_buckets
from torchbiggraph.config import ConfigSchema
from torchbiggraph.edgelist import EdgeList
from torchbiggraph.model import MultiRelationEmbedder
from torchbiggraph.stats import Stats
from torchbiggraph.train import Trainer
from torchbiggraph.util import DummyOptimizer

from cocite.core.randomness import derive_seed


class SeededTrainer(Trainer):
    """PyTorch-BigGraph's trainer, whose negatives depend on the seed, the iteration and the edges it is given."""

    def __init__(self, config: ConfigSchema, seed: int) -> None:
        # Only the vectors are trained, and they have optimisers of their own: there is no operator, no common vector.
        super().__init__(DummyOptimizer(), config.loss_fn, config.margin, config.relations)
        self.seed = seed
        self.iteration = 0
        self.seeded = False

    def begin(self, iteration: int) -> None:
        """Seed what the main process draws in an iteration: first vectors, order of partitions, order of edges."""
        self.iteration = iteration
        torch.manual_seed(derive_seed(self.seed, "biggraph", "order", iteration))

    def process_one_batch(self, model: MultiRelationEmbedder, batch_edges: EdgeList) -> Stats:
        """Train on one batch. A worker gets a copy of the trainer for each task, and seeds itself once with it."""
        if not self.seeded:
            first = int(batch_edges.lhs.tensor[0]), int(batch_edges.rhs.tensor[0])
            torch.manual_seed(derive_seed(self.seed, "biggraph", "negatives", self.iteration, *first))
            self.seeded = True
        return super().process_one_batch(model, batch_edges)

    def vectors_in_memory(self) -> dict[int, NDArray[np.float32]]:
        """The vectors of the partitions that are being trained, by the number of the partition."""
        return {
            int(part): optimizer.param_groups[0]["params"][0].detach().numpy()
            for (_, part), optimizer in self.entity_optimizers.items()
        }


class SeededBucketScheduler(SingleMachineBucketScheduler):
    """PyTorch-BigGraph's order of pairs of partitions, drawn for each iteration from the seed that it began with."""

    def new_pass(self, is_first: bool) -> None:
        """Begin an iteration."""
        drawn = random.Random(torch.initial_seed())  # noqa: S311
        self.buckets = create_ordered_buckets(self.nparts_lhs, self.nparts_rhs, self.order, generator=drawn)
        self.stats: list[BucketStats] = []


# The original draws from the system's entropy, and there is no other way to hand it another scheduler.
torchbiggraph.train.SingleMachineBucketScheduler = SeededBucketScheduler


def stop_with_parent() -> None:
    """Let a worker end when its parent does, even by SIGKILL, instead of training on for nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent,), daemon=True).start()


def _exit_after(parent: Any) -> None:
    parent.join()
    os._exit(1)
