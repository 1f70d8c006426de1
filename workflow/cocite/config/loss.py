"""What a loss of the encoder is to the configuration: an entry of its own settings.

The losses are classes of `encoder/losses.py`; how to add one is in docs/how-to/new-loss.md.
"""

from abc import abstractmethod
from typing import Any, ClassVar, Literal

from cocite.config.entries import Entry


class Loss(Entry):
    """How the examples of a batch are compared.

    A loss has a field `kind`, its name, and is called with the vectors of the distinct documents of a
    batch (documents × dimension) and what is compared, which says by places among them what each query's positives and
    negatives are (see `encoder.batch.PairIndices`). It gives a scalar in the dtype of its input. A training gives
    float32, also under mixed precision, because exponentials of scaled similarities lose too much in bfloat16.

    A loss over documents compares no examples: it is given the places of the documents that it sees.
    """

    kind: str
    """How triplets are compared."""
    together: ClassVar[int] = 8
    """Triplets of a query that stay together in a batch if the configuration does not say how many. Losses that compare
    the queries of a batch with each other have 1, since the fewer queries a batch has, the less they learn."""

    needs_negatives: ClassVar[bool] = True
    """Whether it learns nothing from examples without negatives of their own."""

    input_kind: ClassVar[Literal["examples", "teacher", "masks"]] = "examples"
    """What it is given: examples; or documents, with the vectors that its teacher has of them, or with the losses of
    their masked tokens in place of vectors."""

    @property
    def teacher(self) -> str | None:
        """The graph embedding that it asks for vectors; None for none."""
        return None

    @property
    def masked_share(self) -> float | None:
        """The share of the tokens that it asks to be predicted; None for none."""
        return None

    @abstractmethod
    def __call__(self, vectors: Any, batch: Any) -> Any:
        """The loss of the vectors of the documents of a batch."""
