"""Which triplets make a batch: the order of an epoch, cut into batches.

The order of an epoch follows from the seed and the epoch alone, so that a training that goes on after a kill sees the
batches that it would have seen.
"""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from cocite.randomness import generator

ROLES = ("query", "positive", "negative")


def epoch_order(queries: NDArray[np.int64], *, block: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """The order of the triplets in one epoch: blocks of up to `block` triplets of one query, shuffled.

    `queries` holds the query of each triplet. Shuffled are the triplets of a query among and within its blocks, and the
    blocks of all queries. A query's blocks are of sizes that differ by one at most, and none is longer than `block`.
    """
    random = generator(seed, "epoch", epoch)
    shuffled = random.permutation(len(queries))
    grouped = shuffled[np.argsort(queries[shuffled], kind="stable")]
    _, sizes = np.unique(queries, return_counts=True)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    position = np.arange(len(queries)) - starts
    blocks = -(-np.repeat(sizes, sizes) // block)
    # Dealing a query's triplets out to its blocks in turn makes their sizes differ by one at most.
    block_of = starts + position % blocks
    rank = random.permutation(len(queries))
    return grouped[np.argsort(rank[block_of], kind="stable")]


class EpochBatches(torch.utils.data.BatchSampler):
    """Batches of triplets in the order of the epoch that the trainer sets; a batch's end may cut a block in two.

    Several processes take the batches in turn. Each must get as many as the others, and of whole size, so that an
    epoch ends with triplets from its start until that is so; for one process the last batch may be a short one.
    """

    def __init__(
        self, queries: NDArray[np.int64], *, batch_size: int, block: int, seed: int, processes: int = 1
    ) -> None:
        super().__init__(range(len(queries)), batch_size, drop_last=False)
        self.queries = queries
        self.block = block
        self.seed = seed
        self.processes = processes
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Tell the epoch, from 0."""
        self.epoch = epoch

    def __len__(self) -> int:
        """Count the batches of an epoch, over all processes."""
        batches = -(-len(self.queries) // self.batch_size)
        return -(-batches // self.processes) * self.processes

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the triplets of each batch of the epoch."""
        order = epoch_order(self.queries, block=self.block, seed=self.seed, epoch=self.epoch)
        if self.processes > 1:
            order = np.resize(order, len(self) * self.batch_size)
        for start in range(0, len(order), self.batch_size):
            yield order[start : start + self.batch_size].tolist()
