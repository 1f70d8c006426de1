"""Batches of edges with their negatives, by the rows of their papers.

As in PyTorch-BigGraph, a batch is cut into chunks of `batch_negatives` edges. In a chunk the ends of all edges are
negatives for each other, and `uniform_negatives` papers a side are drawn for the chunk. So the vectors of a chunk are
two matrices, sources and targets, and their product holds the scores of its edges and of all their negatives.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from cocite.embeddings.engines.torch import Torch


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Chunks of edges."""

    rows: Tensor
    """Rows of the sources' side and of the targets', 2 × chunks × (edges + drawn negatives), int32."""
    edges: int
    """Edges in a chunk, the first of its rows."""
    weights: Tensor
    """What each edge counts, chunks × edges, float32."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """Where the papers of one end of the edges lie."""

    first: int
    """The row of the first."""
    papers: int
    """Their number."""


def make_batches(
    edges: Tensor, weights: Tensor, sides: tuple[Side, Side], settings: Torch, drawn: torch.Generator
) -> Iterator[Batch]:
    """The edges, 2 × number and counted within their sides, in batches; what fills no chunk is a last, smaller one."""
    size, chunks = settings.edges_in_chunk, settings.chunks_in_batch
    whole = edges.shape[1] // size * size
    for part, in_chunk, step in ((slice(0, whole), size, chunks), (slice(whole, None), edges.shape[1] - whole, 1)):
        if edges[:, part].shape[1] == 0:
            continue
        of_part = edges[:, part].reshape(2, -1, in_chunk)
        rows = torch.stack([_with_negatives(*end, settings, drawn) for end in zip(of_part, sides, strict=True)])
        weight = weights[part].reshape(-1, in_chunk)
        for first in range(0, rows.shape[1], step):
            yield Batch(rows=rows[:, first : first + step], edges=in_chunk, weights=weight[first : first + step])


def _with_negatives(ends: Tensor, side: Side, settings: Torch, drawn: torch.Generator) -> Tensor:
    """Rows of the ends of chunks, chunks × edges, followed by those of papers drawn from the side."""
    negatives = torch.randint(
        side.papers,
        (len(ends), settings.uniform_negatives),
        generator=drawn,
        dtype=torch.int32,
        device=ends.device,
    )
    return torch.cat([ends, negatives], 1) + side.first
