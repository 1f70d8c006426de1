"""Attention over packed documents, which lie one after the other in one row: each attends to its own tokens only.

A row of all tokens of a batch costs what its tokens cost, and one start. It needs a kernel that takes sequences of any
length: on a GPU that is FlashAttention (Dao, 2024), which torch brings along, and which is called directly, because the
way to it through nested tensors costs a batch more time than its products do. A CPU has no such kernel, and documents
are padded there in mini-batches of like length (see `tokens`); in tests, attention document by document stands in for
the kernel.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from cocite.encoder.model import Encoder

NAME = "attention_of_packed_documents"
ARCHITECTURES = ("bert", "roberta", "xlm-roberta", "modernbert")
"""Transformers that take their positions as given, and compare tokens by nothing but attention. SciBERT, MiniLM, GTE,
E5 and BGE are BERTs. MPNet and DeBERTa are not among them: they compare positions within attention."""
ALL = -1
"""A window that reaches over all of a document."""
TOLERANCE = 0.02
"""Distance that counts as rounding, over the norm; bfloat16 has three digits."""


def let_pack(encoder: Encoder) -> bool:
    """Let the encoder take packed documents; false, and no change, where it or the kernel of its device cannot."""
    sizes = encoder.transformer.config
    # RoBERTa counts no position for its padding, which documents have where the tokenizer pads with another token.
    counts_all = "roberta" not in sizes.model_type or sizes.pad_token_id == encoder.tokenizer.padding
    able = sizes.model_type in ARCHITECTURES and counts_all and _kernel_is_right(encoder)
    if able:
        encoder.transformer.set_attn_implementation(NAME)
    return able


def flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    starts: Tensor,
    longest: int,
    *,
    dropout: float = 0.0,
    scale: float | None = None,
    window: int = ALL,
) -> Tensor:
    """Attention within each document, by the kernel of a GPU, tokens × heads × width as all that it takes.

    `starts` says where each document starts and, at the end, where the last one ends, int32; `longest` is the length of
    the longest. A token attends to those of its document that are at most `window` tokens away. Raises `RuntimeError`
    where there is no such kernel, as for float32.
    """
    attended: Tensor = torch.ops.aten._flash_attention_forward(
        query, key, value, starts, starts, longest, longest, dropout, False, False,
        scale=scale, window_size_left=window, window_size_right=window,
    )[0]  # fmt: skip
    return attended


def attention_of_each(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    starts: Tensor,
    longest: int,
    *,
    dropout: float = 0.0,
    scale: float | None = None,
    window: int = ALL,
) -> Tensor:
    """The same, document by document: slow, and on any device."""
    attended = []
    for start, end in pairwise(starts.tolist()):
        asking, asked, given = (tokens[start:end].transpose(0, 1) for tokens in (query, key, value))
        places = torch.arange(end - start, device=query.device)
        near = None if window == ALL else (places[:, None] - places).abs() <= window
        attended.append(scaled_dot_product_attention(asking, asked, given, near, dropout, scale=scale))
    return torch.cat(attended, dim=1).transpose(0, 1)


KERNELS: dict[str, Callable[..., Tensor]] = {"cuda": flash_attention, "cpu": attention_of_each}
"""What computes attention on each kind of device."""


def _kernel_is_right(encoder: Encoder) -> bool:
    """Whether attention over some packed documents and its gradients are those of the documents one by one."""
    sizes, lengths, device = encoder.transformer.config, [64, 1, 300], encoder.device
    heads = sizes.num_attention_heads
    shape = (3, sum(lengths), heads, sizes.hidden_size // heads)
    numbers = torch.arange(float(np.prod(shape)), device=device).sin().requires_grad_()
    starts = torch.tensor([0, *np.cumsum(lengths)], device=device, dtype=torch.int32)
    for window in (ALL, 40):
        attended = []
        for kernel in (KERNELS[device.type], attention_of_each):
            query, key, value = numbers.to(encoder.computes_in).view(shape)
            try:
                attended.append(kernel(query, key, value, starts, max(lengths), window=window))
            except RuntimeError:  # no kernel for this device, for these numbers, or for heads of this width
                return False
        gradients = [torch.autograd.grad(way.float().square().sum(), numbers)[0] for way in attended]
        if not (_close(*attended) and _close(*gradients)):
            return False
    return True


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
    sliding_window: int | None = None,
    cu_seq_lens_q: Tensor | None = None,
    max_length_q: int = 0,
    **keywords: Any,
) -> tuple[Tensor, None]:
    """Attention within each packed document; over padded documents, that of transformers.

    Packed, `query`, `key` and `value` are 1 × heads × tokens × width. A `sliding_window` counts the token itself.
    """
    if cu_seq_lens_q is None:
        output, _ = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **keywords
        )
        return output, None
    queries, keys, values = (tokens[0].transpose(0, 1) for tokens in (query, key, value))
    attended = KERNELS[query.device.type](
        queries,
        keys,
        values,
        cu_seq_lens_q,
        max_length_q,
        dropout=dropout,
        scale=scaling,
        window=ALL if sliding_window is None else sliding_window - 1,
    )
    return attended[None], None


def _mask(attention_mask: Tensor | None = None, **keywords: Any) -> Tensor | None:
    """The mask of padded documents; packed ones, which come without, need none."""
    return None if attention_mask is None else sdpa_mask(attention_mask=attention_mask, **keywords)


AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, _mask)
