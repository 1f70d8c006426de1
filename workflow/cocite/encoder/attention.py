"""Attention over packed documents on a GPU, and with a faster dropout on a CPU.

Packed documents are in one row, and each attends only to its own tokens. FlashAttention (Dao, 2024) is called directly,
as nested tensors cost more time than its products. torch's dropout on a CPU takes longer than all else in a step in
bfloat16; here NumPy draws 16 random bits for each number, and the probability is a multiple of 1/65,536.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from cocite.encoder.model import Encoder

OURS = "attention_of_cocite"
"""The name of `_attention` in transformers."""
ARCHITECTURES = ("bert", "roberta", "xlm-roberta", "modernbert")
"""Transformers that take positions as input; MPNet and DeBERTa compare positions within attention."""
DECODERS = ("llama", "qwen3")
"""Transformers like these in which a token attends only to those before it."""
ALL = -1
"""A window over a whole document."""
TOLERANCE = 0.02
"""Relative distance that counts as rounding; bfloat16 has three digits."""
BITS = 16
"""Random bits for each number that may be dropped."""
Tokens = Sequence[Tensor]
"""Queries, keys and values of packed tokens, each tokens × heads × width; several heads of queries may share keys."""


def enable_sequence_packing(encoder: Encoder) -> bool:
    """Let the encoder take packed documents; false, without a change, if it or the kernel of its device cannot."""
    sizes = encoder.transformer.config
    # RoBERTa counts no position for its padding token, which a document may have if the tokenizer pads with another.
    counts_all = "roberta" not in sizes.model_type or sizes.pad_token_id == encoder.tokenizer.padding
    if sizes.model_type not in ARCHITECTURES + DECODERS or not counts_all or not _kernel_is_right(encoder):
        return False
    encoder.transformer.set_attn_implementation(OURS)
    return True


def flash_attention(
    tokens: Tokens, starts: Tensor, longest: int, *, window: int, causal: bool, dropout_p: float = 0.0, **how: Any
) -> Tensor:
    """Attention within each document, by the kernel of a GPU, tokens × heads × width. `starts` has the start of each
    document and the end of the last, int32. A token attends to those at most `window` tokens away and, if `causal`, not
    to later ones. Raises `RuntimeError` if there is no kernel, as for float32."""
    how |= {"window_size_left": window, "window_size_right": 0 if causal else window}
    sizes = starts, starts, longest, longest
    attended: Tensor = torch.ops.aten._flash_attention_forward(*tokens, *sizes, dropout_p, causal, False, **how)[0]
    return attended


def attention_of_each(tokens: Tokens, starts: Tensor, longest: int, *, window: int, causal: bool, **how: Any) -> Tensor:
    """The same, document by document: slow, and on any device."""
    attended = []
    for start, end in pairwise(starts.tolist()):
        query, key, value = (some[start:end].transpose(0, 1) for some in tokens)
        places = torch.arange(end - start, device=starts.device)
        ahead = places[:, None] - places
        near = (ahead >= 0) | (not causal)
        if window != ALL:
            near &= ahead.abs() <= window
        attended.append(scaled_dot_product_attention(query, key, value, near, enable_gqa=True, **how))
    return torch.cat(attended, dim=1).transpose(0, 1)


KERNELS: dict[str, Callable[..., Tensor]] = {"cuda": flash_attention, "cpu": attention_of_each}


def _kernel_is_right(encoder: Encoder) -> bool:
    """Whether attention over packed documents and its gradients are those of the documents one by one."""
    sizes, lengths, device = encoder.transformer.config, [64, 1, 300], encoder.device
    asking = sizes.num_attention_heads
    asked = getattr(sizes, "num_key_value_heads", None) or asking
    wide = getattr(sizes, "head_dim", None) or sizes.hidden_size // asking
    shape = (sum(lengths), asking + 2 * asked, wide)
    numbers = torch.arange(float(prod(shape)), device=device).sin().requires_grad_()
    starts = torch.tensor([0, *np.cumsum(lengths)], device=device, dtype=torch.int32)
    causal = sizes.model_type in DECODERS
    for window in (ALL, 40):
        attended = []
        for kernel in (KERNELS[device.type], attention_of_each):
            tokens = numbers.to(encoder.computes_in).view(shape).split([asking, asked, asked], dim=1)
            try:
                attended.append(kernel(tokens, starts, max(lengths), window=window, causal=causal))
            except RuntimeError:  # no kernel for this device, for these numbers, or for heads of this width
                return False
        gradients = [torch.autograd.grad(way.float().square().sum(), numbers)[0] for way in attended]
        for some, others in (attended, gradients):
            if not (some - others).norm() <= TOLERANCE * others.norm():
                return False
    return True


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
    """Attention within each packed document, 1 × heads × tokens × width, or over padded ones with the faster dropout;
    if that cannot be, as transformers has it."""
    causal = bool(keywords["is_causal"] if "is_causal" in keywords else getattr(module, "is_causal", True))
    if cu_seq_lens_q is not None:
        tokens = [some[0].transpose(0, 1) for some in (query, key, value)]
        window = ALL if sliding_window is None else sliding_window - 1  # which counts the token itself
        kernel = partial(KERNELS[query.device.type], dropout_p=dropout, scale=scaling, window=window, causal=causal)
        return kernel(tokens, cu_seq_lens_q, max_length_q)[None], None
    adds = attention_mask is not None and attention_mask.dtype != torch.bool
    drops = dropout and query.device.type == "cpu"  # a GPU keeps torch's dropout
    if not drops or (causal and attention_mask is None) or adds or query.shape[1] != key.shape[1]:
        keywords |= {"dropout": dropout, "scaling": scaling}
        return sdpa_attention_forward(module, query, key, value, attention_mask, **keywords)[0], None
    scores = (query * (query.shape[-1] ** -0.5 if scaling is None else scaling)) @ key.transpose(2, 3)
    if attention_mask is not None:
        masked = torch.finfo(scores.dtype).min  # finite, as padding may have nothing to attend to
        scores += torch.zeros(attention_mask.shape, dtype=scores.dtype).masked_fill(~attention_mask, masked)
    weights = scores.softmax(dim=-1)
    kept, scale = _drawn(weights.shape, dropout)
    return ((weights * kept) @ (value * scale)).transpose(1, 2).contiguous(), None


def _mask(attention_mask: Tensor | None = None, **keywords: Any) -> Tensor | None:
    return None if attention_mask is None else sdpa_mask(attention_mask=attention_mask, **keywords)


class Dropout(nn.Module):
    """Drops each number with probability `p` in training, and scales the others by 1 / (1 − p)."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, numbers: Tensor) -> Tensor:
        """The numbers, some of them dropped."""
        if not (self.training and self.p):
            return numbers
        kept, scale = _drawn(numbers.shape, self.p)
        return numbers * scale * kept


def use_fast_dropout(encoder: Encoder) -> None:
    """Let the encoder draw its dropout from bits, with the same probabilities."""
    transformer = encoder.transformer
    for module in list(transformer.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, name, Dropout(child.p))
    if transformer.config._attn_implementation == "sdpa":
        transformer.set_attn_implementation(OURS)


def _drawn(shape: Sequence[int], p: float) -> tuple[Tensor, float]:
    """1 for each number that is kept, else 0, int8; and the factor that keeps their expected sum."""
    seed, dropped = int(torch.randint(2**63 - 1, ())), round(p * 2**BITS)
    drawn = np.random.PCG64DXSM(seed).random_raw(-(-prod(shape) * BITS // 64)).view(np.int16)
    kept = drawn[: prod(shape)] >= dropped - 2 ** (BITS - 1)
    return torch.from_numpy(kept.view(np.int8)).view(*shape), 2**BITS / (2**BITS - dropped)


AttentionInterface.register(OURS, _attention)
AttentionMaskInterface.register(OURS, _mask)
