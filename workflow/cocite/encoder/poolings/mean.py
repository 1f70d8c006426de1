"""The mean over all tokens."""

from cocite.encoder.poolings import Tensor

SAVED_AS = "pooling_mode_mean_tokens"


def pool(hidden: Tensor, mask: Tensor) -> Tensor:
    """Σ h / n over the n tokens of a document; 0 where there are none."""
    weights = mask.unsqueeze(-1).expand(hidden.shape).to(hidden.dtype)
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1e-9)


def pool_packed(hidden: Tensor, starts: Tensor) -> Tensor:
    """The same of packed documents, in float32."""
    import torch

    return torch.segment_reduce(hidden.float(), "mean", lengths=starts.diff(), unsafe=True)
