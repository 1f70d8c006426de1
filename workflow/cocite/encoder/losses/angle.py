"""The loss `angle`."""

from typing import ClassVar, Literal

from cocite.config.entries import Positive
from cocite.config.loss import Loss
from cocite.core.errors import InputError
from cocite.encoder.losses import PairIndices, Tensor, ranking


class Angle(Loss):
    """AnglE (Li & Li, 2024): CoSENT over the angle of vectors that are taken for complex ones."""

    kind: Literal["angle"]
    together: ClassVar[int] = 1
    temperature: Positive = 20.0
    """τ, by which similarities are multiplied."""

    def __call__(self, vectors: Tensor, batch: PairIndices) -> Tensor:
        """`ranking` of |Σ(re, im)| of the complex quotient of each pair, whose halves are real and imaginary parts.

        With x = (a, b) and y = (c, d): re = (ac + bd) / (‖x‖‖y‖), im = (bc − ad) / (‖x‖‖y‖). Raises `InputError` where
        the dimension is odd.
        """
        import torch

        if vectors.shape[1] % 2:
            raise InputError(f"The loss angle needs an even number of dimensions, and there are {vectors.shape[1]}.")

        def similarities(pairs: Tensor) -> Tensor:
            x, y = vectors[pairs].unbind(dim=1)
            (a, b), (c, d) = x.chunk(2, dim=1), y.chunk(2, dim=1)
            norms = (x.norm(dim=1) * y.norm(dim=1)).clamp_min(torch.finfo(x.dtype).tiny)
            return ((a * c + b * d + b * c - a * d).sum(dim=1) / norms).abs()

        near, far = similarities(batch.positives), similarities(batch.negatives)
        return ranking(near, far, temperature=self.temperature)
