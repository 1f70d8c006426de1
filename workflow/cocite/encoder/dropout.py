"""Dropout on a CPU, in a fraction of the time that torch takes: sixteen random bits decide on each number.

torch draws a random number for each number that may be dropped, on one thread. Beside products in bfloat16 nothing in a
step takes as long, above all in attention, where each pair of tokens has one. NumPy draws bits several times as fast,
by PCG64 from a seed that torch draws, so that they follow from torch's generator as well. With sixteen bits the
probability is rounded to a multiple of 1/65,536; what is kept is scaled by the rounded one. A GPU draws within its
kernels, and keeps torch's dropout.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from cocite.encoder.model import Encoder

NAME = "attention_with_fast_dropout"
BITS = 16
"""Random bits that decide on a number."""


class Dropout(nn.Module):
    """Drops each number with probability `p` in training, and scales the others by 1 / (1 − p)."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, numbers: Tensor) -> Tensor:
        """The numbers, of which some are 0."""
        if not (self.training and self.p):
            return numbers
        return numbers * _scale(self.p) * _kept(numbers.shape, self.p)


def let_drop_fast(encoder: Encoder) -> None:
    """Let the encoder draw its dropout from bits; the probabilities stay as they are."""
    transformer = encoder.transformer
    for module in list(transformer.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, name, Dropout(child.p))
    if transformer.config._attn_implementation == "sdpa":
        transformer.set_attn_implementation(NAME)


def _kept(shape: Sequence[int], p: float) -> Tensor:
    """1 for each number that is kept, 0 for the others, int8; the draw follows from torch's generator."""
    seed = int(torch.randint(2**63 - 1, ()))
    drawn = np.random.PCG64DXSM(seed).random_raw(-(-prod(shape) * BITS // 64)).view(np.int16)
    kept = drawn[: prod(shape)] >= _dropped(p) - 2 ** (BITS - 1)
    return torch.from_numpy(kept.view(np.int8)).view(*shape)


def _dropped(p: float) -> int:
    """How many of the values that the bits can have stand for dropping."""
    return round(p * 2**BITS)


def _scale(p: float) -> float:
    """What the kept numbers are multiplied by, so that their expected sum stays the same."""
    return 2**BITS / (2**BITS - _dropped(p))


def _attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    dropout: float = 0.0,
    scaling: float | None = None,
    **keywords: Any,
) -> tuple[Tensor, None]:
    """Attention, documents × heads × tokens × width.

    It is that of transformers where nothing is dropped, where tokens see only those before them without a mask that
    says so, where a mask adds numbers, and where heads share their keys.
    """
    causal = keywords["is_causal"] if "is_causal" in keywords else getattr(module, "is_causal", True)
    adds = attention_mask is not None and attention_mask.dtype != torch.bool
    if not dropout or (causal and attention_mask is None) or adds or query.shape[1] != key.shape[1]:
        output, _ = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **keywords
        )
        return output, None
    scores = (query * (query.shape[-1] ** -0.5 if scaling is None else scaling)) @ key.transpose(2, 3)
    if attention_mask is not None:
        scores += torch.zeros(attention_mask.shape, dtype=scores.dtype).masked_fill(~attention_mask, -torch.inf)
    weights = scores.softmax(dim=-1)
    attended = (weights * _kept(weights.shape, dropout)) @ (value * _scale(dropout))
    return attended.transpose(1, 2).contiguous(), None


AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, sdpa_mask)
