"""The largest value of each dimension."""

from cocite.encoder.poolings import Tensor

SAVED_AS = "pooling_mode_max_tokens"


def pool(hidden: Tensor, mask: Tensor) -> Tensor:
    """The maximum over the tokens of a document, for each dimension."""
    return hidden.masked_fill(mask.unsqueeze(-1) == 0, float("-inf")).amax(dim=1)


def pool_packed(hidden: Tensor, starts: Tensor) -> Tensor:
    """The same of packed documents, in float32."""
    import torch

    return torch.segment_reduce(hidden.float(), "max", lengths=starts.diff(), unsafe=True)
