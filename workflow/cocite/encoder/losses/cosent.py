"""The loss `cosent`."""

from typing import ClassVar, Literal

from cocite.config.entries import Positive
from cocite.config.loss import Loss
from cocite.encoder.losses import PairIndices, Tensor, cosines_of, ranking


class CoSent(Loss):
    """CoSENT (Su, 2022): every positive pair of a batch is to be nearer than every negative one, by cosine."""

    kind: Literal["cosent"]
    together: ClassVar[int] = 1
    temperature: Positive = 20.0
    """τ, by which similarities are multiplied."""

    def __call__(self, vectors: Tensor, batch: PairIndices) -> Tensor:
        """`ranking` of the cosines."""
        near, far = cosines_of(vectors, batch.positives), cosines_of(vectors, batch.negatives)
        return ranking(near, far, temperature=self.temperature)
