"""One step of training, in operations of torch that run on any device; `torch_compiled_step.py` has a faster one.

As in PyTorch-BigGraph, a batch is cut into chunks of `batch_negatives` edges, whose ends are negatives for each other,
and `uniform_negatives` papers a side are drawn. The distinct papers of a batch move once, by row-wise Adagrad. Nothing
waits for a GPU: all shapes follow from the settings, and places that are left over write to a padding row.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from cocite.embeddings.engines import Torch
from cocite.embeddings.link_prediction import LEFT_OUT, edge_loss

TINY = 1e-10  # what PyTorch-BigGraph adds to the root of the squares
STORED_BITS = 16


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Chunks of edges."""

    rows: Tensor  # rows of sources and of targets, 2 × chunks × (edges + drawn negatives), int32
    edges: int  # edges in a chunk, the first of its rows
    weights: Tensor  # weight of each edge, chunks × edges, float32


@dataclass(frozen=True, kw_only=True)
class Side:
    """The rows of the papers of one end of the edges: the first, and their number."""

    first: int
    papers: int


def make_batches(
    edges: Tensor, weights: Tensor, sides: tuple[Side, Side], settings: Torch, drawn: torch.Generator
) -> Iterator[Batch]:
    """The edges, 2 × number and counted within their sides, in batches; the last chunk may be smaller."""
    size, chunks = settings.edges_in_chunk, settings.chunks_in_batch
    whole = edges.shape[1] // size * size
    for part, in_chunk, step in ((slice(0, whole), size, chunks), (slice(whole, None), edges.shape[1] - whole, 1)):
        if edges[:, part].shape[1] == 0:
            continue
        of_sides = []  # rows of the ends of chunks, chunks × edges, followed by those of papers drawn from the side
        for ends, side in zip(edges[:, part].reshape(2, -1, in_chunk), sides, strict=True):
            shape = len(ends), settings.uniform_negatives
            negatives = torch.randint(side.papers, shape, generator=drawn, dtype=torch.int32, device=ends.device)
            of_sides.append(torch.cat([ends, negatives], 1) + side.first)
        rows = torch.stack(of_sides)
        weight = weights[part].reshape(-1, in_chunk)
        for first in range(0, rows.shape[1], step):
            yield Batch(rows=rows[:, first : first + step], edges=in_chunk, weights=weight[first : first + step])


class Step:
    """Trains rows of vectors."""

    def __init__(self, settings: Torch, vectors: Tensor, squares: Tensor, precision: torch.dtype) -> None:
        """Train `vectors`, papers and a padding row × dimension; `precision` is that of the products of matrices."""
        self.settings, self.vectors, self.squares, self.precision = settings, vectors, squares, precision
        self.loss = edge_loss(settings.loss)
        self.rounding = torch.Generator(vectors.device)
        self.buffer = torch.empty(0, dtype=precision, device=vectors.device)

    def seed(self, seed: int) -> None:
        """Seed the rounding of what is stored in bfloat16."""
        self.rounding.manual_seed(seed)

    def train(self, batch: Batch) -> Tensor:
        """Train on a batch; return its summed loss, NaN if a gradient is not finite."""
        size = torch.Size((2, *batch.rows.shape, self.vectors.shape[1]))
        if len(self.buffer) < size.numel():
            self.buffer = self.buffer.new_empty(size.numel())
        vectors, gradients = self.buffer[: size.numel()].view(size)
        self._look_up(batch.rows, vectors)
        sources, targets = vectors
        by_scores, loss = self._gradient_by_scores(torch.bmm(sources, targets.mT), batch)
        torch.bmm(by_scores, targets, out=gradients[0])
        torch.bmm(by_scores.mT, sources, out=gradients[1])
        finite = self._update(batch.rows, gradients)
        return torch.where(finite, loss, torch.nan)

    def _look_up(self, rows: Tensor, found: Tensor) -> None:
        """Fill `found` with the vectors of rows, in the precision of the products."""
        vectors = self.vectors[rows]
        found.copy_(functional.normalize(vectors.float(), dim=-1) if self.settings.comparator == "cos" else vectors)

    def _gradient_by_scores(self, scores: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """The gradient of the loss by the scores, chunks × rows × rows, and the loss summed over both sides."""
        edges = batch.edges
        with torch.enable_grad():
            free = scores.detach().float().requires_grad_()
            own = free.diagonal(dim1=1, dim2=2)[:, :edges]
            loss = torch.zeros((), device=free.device)
            for side in (free, free.mT):
                negatives = side[:, :edges]
                if self.settings.batch_negatives:  # all but the edge itself; else only drawn papers
                    itself = torch.eye(*negatives.shape[1:], dtype=torch.bool, device=free.device)
                    negatives = negatives.masked_fill(itself, LEFT_OUT)
                else:
                    negatives = negatives[:, :, edges:]
                of_edges = self.loss(own.reshape(-1), negatives.flatten(0, 1))
                loss = loss + (of_edges * batch.weights.reshape(-1)).sum()
            (gradient,) = torch.autograd.grad(loss, free)
        return gradient.to(scores.dtype), loss.detach()

    def _update(self, rows: Tensor, gradients: Tensor) -> Tensor:
        """Row-wise Adagrad on the distinct rows; return whether all of it was finite."""
        ordered, order = torch.sort(rows.reshape(-1), stable=True)
        place = functional.pad(ordered[1:] != ordered[:-1], (1, 0)).cumsum(0)
        owners = torch.full_like(place, len(self.vectors) - 1).scatter_(0, place, ordered.long())
        sums = torch.zeros(len(ordered), gradients.shape[-1], device=rows.device)
        # Repeated indices are summed in a fixed order, unlike by atomic additions (index_add_).
        sums.index_put_((place,), gradients.reshape(len(ordered), -1)[order].float(), accumulate=True)
        vectors = self.vectors[owners].float()
        if self.settings.comparator == "cos":  # gradients by v / |v| become gradients by v
            norms = vectors.norm(dim=1, keepdim=True).clamp_min(TINY)
            units = vectors / norms
            sums = (sums - (sums * units).sum(1, keepdim=True) * units) / norms
        means = sums.square().mean(1)
        squares = self.squares[owners] + means
        moved = vectors - self.settings.lr / (squares.sqrt() + TINY).unsqueeze(1) * sums
        finite = moved.square().sum(1).isfinite()
        if self.settings.max_norm is not None:
            moved = torch.renorm(moved, 2, 0, self.settings.max_norm)
        kept = finite & (means > 0)
        self.squares[owners] = torch.where(kept, squares, self.squares[owners])
        if self.vectors.dtype == torch.bfloat16:  # rounded up or down by chance, right on average
            bits = moved.view(torch.int32)
            chance = torch.empty_like(bits).random_(2**STORED_BITS, generator=self.rounding)
            moved = (((bits + chance) >> STORED_BITS) << STORED_BITS).view(torch.float32).to(torch.bfloat16)
        self.vectors[owners] = torch.where(kept.unsqueeze(1), moved, self.vectors[owners])
        return finite.all()
