"""The vectors that a training begins with: drawn at random, or those of an older release for the papers that stay."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.randomness import derive_seed
from cocite.core.tables.files import open_table
from cocite.embeddings.edges import Papers, Rows
from cocite.embeddings.vectors import VALUES_IN_MEMORY

DEVIATION = 1e-3
"""Of each number that is drawn, as in PyTorch-BigGraph."""


class FirstVectors:
    """Fills partitions."""

    def __init__(self, papers: Papers, *, seed: int, start: Path | None, max_norm: float | None) -> None:
        """`papers` are corpus ids by row; `start` is a table `graph_embeddings` of an older release."""
        self.papers, self.seed, self.start, self.max_norm = papers, seed, start, max_norm

    def fill(self, vectors: Tensor, first: int) -> None:
        """Fill the vectors of a partition, papers × dimension, whose first row this is."""
        drawn = torch.Generator(vectors.device).manual_seed(derive_seed(self.seed, "torch", "first vectors", first))
        vectors.normal_(std=DEVIATION, generator=drawn)
        if self.start is not None:
            self._take_over(self.start, vectors, self.papers[first : first + len(vectors)], first)

    def _take_over(self, start: Path, vectors: Tensor, papers: Papers, first: int) -> None:
        order = np.argsort(papers)
        rising, kept = papers[order], 0
        with open_table(start, "graph_embeddings") as table:
            for batch in table.iter_batches(
                max(1, VALUES_IN_MEMORY // vectors.shape[1]), columns=["corpusid", "vector"]
            ):
                older = batch.column("vector").flatten().to_numpy().reshape(len(batch), -1)
                _check_dimension(start, older.shape[1], vectors.shape[1])
                at, found = _places(rising, batch.column("corpusid").to_numpy())
                taken = torch.from_numpy(older[found])
                if self.max_norm is not None:
                    taken = torch.renorm(taken, 2, 0, self.max_norm)
                vectors[torch.from_numpy(order[at]).to(vectors.device)] = taken.to(vectors.device, vectors.dtype)
                kept += len(at)
        report(f"rows from {first:,} on: {kept:,} of {len(papers):,} papers begin with their vectors in {start}")


def _places(rising: Papers, ids: Papers) -> tuple[Rows, NDArray[np.bool_]]:
    """Where ids stand among rising ones, and which of them are there."""
    at = np.minimum(np.searchsorted(rising, ids), len(rising) - 1)
    found = rising[at] == ids
    return at[found], found


def _check_dimension(start: Path, older: int, newer: int) -> None:
    if older != newer:
        raise InputError(f"--settings: start is {start}, whose vectors have {older} dimensions; dimension is {newer}.")
