"""One step of training, written in operations of torch that run on any device; `cpu_steps.py` has a faster one.

The scores of a chunk are one product of matrices, sources × targets, and so are the gradients of either side. What
lies between is the gradient of the loss by the scores. The vectors of all distinct papers of a batch move once, by
row-wise Adagrad, and none becomes longer than `max_norm`.

On a GPU nothing here waits for it: all shapes follow from the settings, so rows that come more than once are summed
into as many places as there are rows, and what is left over of the places goes to a row of nobody.
"""

import torch
from torch import Tensor
from torch.nn import functional

from cocite.config.edge_training import EdgeTraining
from cocite.embeddings.engines.torch.batches import Batch
from cocite.embeddings.losses import LEFT_OUT, edge_loss

TINY = 1e-10
"""What PyTorch-BigGraph adds to the root of the squares."""
STORED_BITS = 16


class Step:
    """Trains rows of vectors."""

    def __init__(self, settings: EdgeTraining, vectors: Tensor, squares: Tensor, precision: torch.dtype) -> None:
        """Train `vectors`, papers and a row of nobody × dimension, with the sums of their squared gradients.

        `precision` is that of the products of matrices.
        """
        self.settings, self.vectors, self.squares, self.precision = settings, vectors, squares, precision
        self.loss = edge_loss(settings.loss)
        self.rounding = torch.Generator(vectors.device)
        self.rooms: dict[torch.Size, Tensor] = {}

    def seed(self, seed: int) -> None:
        """Seed the rounding of what is stored in bfloat16."""
        self.rounding.manual_seed(seed)

    def train(self, batch: Batch) -> Tensor:
        """Train on a batch; return its summed loss, NaN where a gradient is not finite."""
        vectors, gradients = self._room(batch.rows.shape)
        self._look_up(batch.rows, vectors)
        sources, targets = vectors
        by_scores, loss = self._gradient_by_scores(torch.bmm(sources, targets.mT), batch)
        torch.bmm(by_scores, targets, out=gradients[0])
        torch.bmm(by_scores.mT, sources, out=gradients[1])
        finite = self._update(batch.rows, gradients)
        return torch.where(finite, loss, torch.nan)

    def _room(self, shape: torch.Size) -> Tensor:
        """Where the vectors of rows and their gradients go: the same memory for all batches of a shape."""
        if shape not in self.rooms:
            size = 2, *shape, self.vectors.shape[1]
            self.rooms[shape] = torch.empty(size, dtype=self.precision, device=self.vectors.device)
        return self.rooms[shape]

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
                negatives = side[:, :edges].masked_fill(self._left_out(side, edges), LEFT_OUT)
                of_edges = self.loss(own.reshape(-1), negatives.flatten(0, 1))
                loss = loss + (of_edges * batch.weights.reshape(-1)).sum()
            (gradient,) = torch.autograd.grad(loss, free)
        return gradient.to(scores.dtype), loss.detach()

    def _left_out(self, side: Tensor, edges: int) -> Tensor:
        """What is no negative of an edge: itself, and all of the batch where only drawn ones count."""
        if self.settings.batch_negatives:
            return torch.eye(edges, side.shape[2], dtype=torch.bool, device=side.device)
        return torch.arange(side.shape[2], device=side.device).expand(edges, -1) < edges

    def _update(self, rows: Tensor, gradients: Tensor) -> Tensor:
        """Row-wise Adagrad on the distinct rows; return whether all of it was finite."""
        risen, order = torch.sort(rows.reshape(-1), stable=True)
        place = functional.pad(risen[1:] != risen[:-1], (1, 0)).cumsum(0)
        owners = torch.full_like(place, len(self.vectors) - 1).scatter_(0, place, risen.long())
        sums = torch.zeros(len(risen), gradients.shape[-1], device=rows.device)
        # Repeated indices are summed in a fixed order; atomic additions (index_add_) would round differently each time.
        sums.index_put_((place,), gradients.reshape(len(risen), -1)[order].float(), accumulate=True)
        vectors = self.vectors[owners].float()
        if self.settings.comparator == "cos":
            sums = _by_unscaled(sums, vectors)
        means = sums.square().mean(1)
        squares = self.squares[owners] + means
        moved = vectors - self.settings.lr / (squares.sqrt() + TINY).unsqueeze(1) * sums
        finite = moved.isfinite().all(1)
        if self.settings.max_norm is not None:
            moved = torch.renorm(moved, 2, 0, self.settings.max_norm)
        kept = finite & (means > 0)
        self.squares[owners] = torch.where(kept, squares, self.squares[owners])
        self.vectors[owners] = torch.where(kept.unsqueeze(1), self._stored(moved), self.vectors[owners])
        return finite.all()

    def _stored(self, moved: Tensor) -> Tensor:
        """Vectors as they are stored; in bfloat16 rounded up or down by chance, so that they are right on average."""
        if self.vectors.dtype == torch.float32:
            return moved
        bits = moved.view(torch.int32)
        chance = torch.randint(
            2**STORED_BITS, bits.shape, generator=self.rounding, dtype=torch.int32, device=bits.device
        )
        return (((bits + chance) >> STORED_BITS) << STORED_BITS).view(torch.float32).to(self.vectors.dtype)


def _by_unscaled(gradients: Tensor, vectors: Tensor) -> Tensor:
    """Gradients by v / |v| as gradients by v, rows × dimension."""
    norms = vectors.norm(dim=1, keepdim=True).clamp_min(TINY)
    units = vectors / norms
    return (gradients - (gradients * units).sum(1, keepdim=True) * units) / norms
