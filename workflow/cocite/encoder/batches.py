"""Triplets as batches of tokens: the order of an epoch, and the padding of a batch.

The order of an epoch follows from the seed and the epoch alone, so that a training that goes on after a kill sees the
batches that it would have seen.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cocite.encoder.embedding import features_of
from cocite.encoder.texts import Documents
from cocite.randomness import generator

BLOCK = 4
"""Triplets of one query that InfoNCE keeps together: their negatives are shared."""
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
    """Batches of triplets in the order of the epoch that the trainer sets; a batch's end may cut a block in two."""

    def __init__(self, queries: NDArray[np.int64], *, batch_size: int, block: int, seed: int) -> None:
        super().__init__(range(len(queries)), batch_size, drop_last=False)
        self.queries = queries
        self.block = block
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Tell the epoch, from 0."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the triplets of each batch of the epoch."""
        order = epoch_order(self.queries, block=self.block, seed=self.seed, epoch=self.epoch)
        for start in range(0, len(order), self.batch_size):
            yield order[start : start + self.batch_size].tolist()


@dataclass(frozen=True, kw_only=True)
class Collator:
    """Makes a batch of triplets what the model and the loss take."""

    documents: Documents
    """The tokens."""
    padding: int
    """Token id of the padding."""
    valid_label_columns: tuple[str, ...] = ()
    """Read by the trainer; the queries' ids are no column that could be mistaken for a text."""

    def __call__(self, triplets: list[dict[str, int]]) -> dict[str, Any]:
        """Tokens of the three documents of each triplet, and as labels which query it is of."""
        batch: dict[str, Any] = {"label": torch.tensor([triplet["query"] for triplet in triplets])}
        for role in ROLES:
            features = features_of(self.documents, [triplet[role] for triplet in triplets], self.padding, "cpu")
            batch.update({f"{role}_{name}": values for name, values in features.items()})
        return batch
