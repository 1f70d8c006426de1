"""The loss `angle`."""

from typing import TYPE_CHECKING, ClassVar, Literal

from cocite.config.entries import Positive
from cocite.config.loss import Loss

if TYPE_CHECKING:
    from torch import Tensor

    from cocite.encoder.batches import Compared


class Angle(Loss):
    """AnglE (Li & Li, 2024): CoSENT over the angle of vectors that are taken for complex ones."""

    kind: Literal["angle"]
    together: ClassVar[int] = 1
    temperature: Positive = 20.0
    """τ, by which similarities are multiplied."""

    def __call__(self, vectors: "Tensor", batch: "Compared") -> "Tensor":
        """`ranking` of |Σ(re, im)| of the complex quotients (see `similarities.angular_of`)."""
        from cocite.encoder.similarities import angular_of, ranking

        near, far = angular_of(vectors, batch.positives), angular_of(vectors, batch.negatives)
        return ranking(near, far, temperature=self.temperature)
