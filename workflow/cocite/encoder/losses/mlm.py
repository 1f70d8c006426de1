"""The loss `mlm`."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from cocite.config.loss import Loss
from cocite.encoder.losses import PairIndices, Tensor


class MaskedLanguageModelling(Loss):
    """Masked language modelling (Devlin et al., 2019): tokens of the documents that are hidden are predicted."""

    kind: Literal["mlm"]
    together: ClassVar[int] = 1
    needs_negatives: ClassVar[bool] = False
    input_kind = "masks"
    share: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """Share of the tokens that are predicted. Of these, 80% are replaced by the mask, 10% by a random token, and 10%
    stay. They are drawn again for each epoch."""

    @property
    def masked_share(self) -> float:
        """The share of the tokens that it asks to be predicted."""
        return self.share

    def __call__(self, vectors: Tensor, batch: PairIndices) -> Tensor:
        """Mean cross entropy over the tokens that are predicted; 0 where there are none.

        `vectors` has for each document the sum of the cross entropies of its tokens, and their number.
        """
        losses, counts = vectors[batch.places].unbind(dim=1)
        return losses.sum() / counts.sum().clamp_min(1)
