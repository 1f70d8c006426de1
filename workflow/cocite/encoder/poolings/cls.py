"""The first token's vector."""

from cocite.encoder.poolings import Tensor

SAVED_AS = "pooling_mode_cls_token"


def pool(hidden: Tensor, mask: Tensor) -> Tensor:
    """The vector of the token that every document starts with, [CLS] in BERT."""
    return hidden[:, 0]


def pool_packed(hidden: Tensor, starts: Tensor) -> Tensor:
    """The same of packed documents."""
    return hidden[starts[:-1]]
