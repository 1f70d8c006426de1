"""The settings of a loss of the encoder: an entry of the configuration.

The losses are classes of `encoder/losses.py`; how to add one is in docs/how-to/new-loss.md.
"""

from abc import abstractmethod
from typing import Any, ClassVar, Literal

from cocite.config.entries import Entry


class Loss(Entry):
    """How the examples of a batch are compared.

    A loss has a field `kind`, its name, and is called with the vectors of the distinct documents of a batch (documents
    × dimension) and what is compared, by places among them (`encoder.batch.PairIndices`). One over documents compares
    no examples. It gives a scalar in the dtype of its input: float32 in a training, also under mixed precision, because
    exponentials of scaled similarities lose too much in bfloat16.
    """

    kind: str
    """How triplets are compared."""
    together: ClassVar[int] = 8
    """Default number of triplets of one query that stay together in a batch. Losses that compare the queries of a batch
    with each other use 1, since they learn less from fewer queries per batch."""
    needs_negatives: ClassVar[bool] = True  # whether it ignores examples without their own negatives
    input_kind: ClassVar[Literal["examples", "teacher", "masks"]] = "examples"
    """What it is given: examples; or documents, with the vectors that its teacher has of them, or with the losses of
    their masked tokens in place of vectors."""

    @property
    def teacher(self) -> str | None:
        """The graph embedding whose vectors it uses; None if it uses none."""
        return None

    @property
    def masked_share(self) -> float | None:
        """The share of the tokens that it asks to be predicted; None for none."""
        return None

    @property
    def counted(self) -> tuple[str, ...]:
        """The roles in which it asks how often each document occurs; none if it does not ask."""
        return ()

    @abstractmethod
    def __call__(self, vectors: Any, batch: Any) -> Any:
        """The loss of the vectors of the documents of a batch."""
