"""Vectors of tokenised documents: what embeds a benchmark, and what validates a training."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cocite.encoder.model import Encoder
from cocite.encoder.tokens import Documents

TOKENS_AT_ONCE = {"cpu": 2048, "cuda": 65_536}
"""Tokens of a batch, padding included: on a CPU, few enough to stay in its caches; on a GPU, enough to fill it."""


def embed(encoder: Encoder, documents: Documents, *, rows: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
    """The vectors of documents, all or those of some rows, documents × dimension, in their order."""
    rows = np.arange(len(documents)) if rows is None else rows
    encoder.eval()
    vectors = np.empty((len(rows), encoder.dimension), dtype=np.float32)
    for some in batches_of_like_length(documents.lengths_of(rows), tokens_at_once(encoder)):
        vectors[some] = embed_batch(encoder, documents, rows[some])
    return vectors


def embed_batch(encoder: Encoder, documents: Documents, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """The vectors of some documents, computed at once, rows × dimension.

    On a GPU that has bfloat16 the transformer computes in it; elsewhere in float32.
    """
    with torch.inference_mode(), mixed_precision(encoder.device):
        features = features_of(documents, rows, encoder.tokenizer.padding)
        on_device = {name: tensor.to(encoder.device) for name, tensor in features.items()}
        vectors: NDArray[np.float32] = encoder(on_device).float().cpu().numpy()
    return vectors


def batches_of_like_length(lengths: NDArray[np.int64], tokens: int) -> Iterator[NDArray[np.int64]]:
    """Documents of these lengths in batches of at most so many tokens, or of one document, with little padding.

    The longest come first, so that a lack of memory shows at once.
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        end = start + max(1, tokens // max(1, int(lengths[order[start]])))
        yield order[start:end]
        start = end


def tokens_at_once(encoder: Encoder) -> int:
    """Tokens of a batch on the device that the encoder is on."""
    return TOKENS_AT_ONCE.get(encoder.device.type, TOKENS_AT_ONCE["cpu"])


def features_of(documents: Documents, rows: NDArray[np.int64], padding: int) -> dict[str, Any]:
    """What the transformer takes: token ids and attention mask of some documents."""
    ids, mask = documents.padded(rows, padding)
    return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}


def mixed_precision(device: torch.device) -> torch.autocast:
    """bfloat16 on a GPU that has it; none elsewhere."""
    enabled = device.type == "cuda" and torch.cuda.is_bf16_supported()
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=enabled)
