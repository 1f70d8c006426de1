"""Attention over packed documents, which lie one after the other in one row: each attends to its own tokens only.

A row of all tokens of a batch costs what its tokens cost, and one start. It needs an attention kernel that takes
sequences of any length; torch has such kernels for GPUs, behind its nested tensors. On a CPU it has none that pays, and
documents are padded in mini-batches of like length (see `tokens`). It is imported only where it is used, because what
it needs of transformers takes seconds to import.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from cocite.encoder.model import Encoder, computing

NAME = "sdpa_of_packed_documents"
ARCHITECTURES = ("bert",)
"""Transformers that take their positions as given, and compare tokens by nothing but attention: SciBERT, MiniLM,
GTE, E5 and BGE are of this kind."""
TOLERANCE = 0.02
"""Distance that counts as rounding, over the norm; bfloat16 has three digits."""


def let_pack(encoder: Encoder) -> bool:
    """Let the encoder take packed documents; false, and no change, where it or the kernels of its device cannot."""
    sizes = encoder.transformer.config
    able = sizes.model_type in ARCHITECTURES and _kernel_is_right(
        encoder, sizes.num_attention_heads, sizes.hidden_size // sizes.num_attention_heads
    )
    if able:
        encoder.transformer.set_attn_implementation(NAME)
    return able


def _kernel_is_right(encoder: Encoder, heads: int, width: int) -> bool:
    """Whether attention over some packed documents and its gradients are those of the documents one by one."""
    lengths, device = [64, 1, 300], encoder.device
    numbers = torch.arange(3 * sum(lengths) * heads * width, dtype=torch.float32, device=device).sin().requires_grad_()
    query, key, value = numbers.view(3, 1, -1, heads, width).transpose(2, 3)
    starts = torch.tensor([0, *np.cumsum(lengths)], device=device)
    parts = zip(*(tokens.split(lengths, dim=2) for tokens in (query, key, value)), strict=True)
    try:
        with computing(encoder):
            together, _ = _attention(None, query, key, value, None, cu_seq_lens_q=starts, max_length_q=max(lengths))
            apart = torch.cat([scaled_dot_product_attention(*part) for part in parts], dim=2).transpose(1, 2)
        gradients = [torch.autograd.grad(way.float().square().sum(), numbers)[0] for way in (together, apart)]
    except RuntimeError:  # no kernel for this device, or for heads of this width
        return False
    return _close(together, apart) and _close(*gradients)


def _close(some: Tensor, others: Tensor) -> bool:
    return bool((some - others).norm() <= TOLERANCE * others.norm())


def _attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    dropout: float = 0.0,
    scaling: float | None = None,
    cu_seq_lens_q: Tensor | None = None,
    max_length_q: int | None = None,
    **keywords: Any,
) -> tuple[Tensor, None]:
    """Attention within each packed document; over padded documents, that of transformers.

    Packed, `query`, `key` and `value` are 1 × heads × tokens × width.
    """
    if cu_seq_lens_q is None:
        output, _ = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **keywords
        )
        return output, None

    def of_documents(tokens: Tensor) -> Tensor:
        rows = tokens[0].transpose(0, 1)
        return torch.nested.nested_tensor_from_jagged(
            rows, cu_seq_lens_q, min_seqlen=1, max_seqlen=max_length_q
        ).transpose(1, 2)

    attended = scaled_dot_product_attention(
        of_documents(query), of_documents(key), of_documents(value), dropout_p=dropout, scale=scaling
    )
    return attended.transpose(1, 2).values()[None], None


AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, sdpa_mask)
