"""Vectors of tokenised documents: what embeds a benchmark, and what validates a training."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cocite.encoder.texts import Documents

TOKENS_AT_ONCE = {"cpu": 2048, "cuda": 65_536}
"""Tokens of a batch, padding included: on a CPU, few enough to stay in its caches; on a GPU, enough to fill it."""


def embed(model: Any, documents: Documents, *, rows: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
    """The pooled vectors of documents, all or those of some rows, documents × dimension, in their order."""
    rows = np.arange(len(documents)) if rows is None else rows
    vectors = np.empty((len(rows), model.get_embedding_dimension()), dtype=np.float32)
    for some in batches_of_like_length(documents.lengths_of(rows), tokens_at_once(model)):
        vectors[some] = embed_batch(model, documents, rows[some])
    return vectors


def embed_batch(model: Any, documents: Documents, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """The pooled vectors of some documents, computed at once, rows × dimension.

    On a GPU the transformer computes in bfloat16, or in float16 where it has no bfloat16; on a CPU in float32.
    """
    model.eval()
    with torch.inference_mode(), mixed_precision(model.device):
        features = features_of(documents, rows, model.tokenizer.pad_token_id, model.device)
        vectors: NDArray[np.float32] = model(features)["sentence_embedding"].float().cpu().numpy()
    return vectors


def batches_of_like_length(lengths: NDArray[np.int64], tokens: int) -> Iterator[NDArray[np.int64]]:
    """Documents of these lengths in batches of at most so many tokens, or of one document, with little padding.

    The longest come first, so that a lack of memory shows at once.
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        end = start + max(1, tokens // int(lengths[order[start]]))
        yield order[start:end]
        start = end


def tokens_at_once(model: Any) -> int:
    """Tokens of a batch on the device that the model is on."""
    return TOKENS_AT_ONCE.get(model.device.type, TOKENS_AT_ONCE["cpu"])


def features_of(documents: Documents, rows: Any, padding: int, device: Any) -> dict[str, torch.Tensor]:
    """What the model takes: token ids and attention mask of some documents."""
    ids, mask = documents.padded(rows, padding)
    return {
        "input_ids": torch.from_numpy(ids).to(device),
        "attention_mask": torch.from_numpy(mask).to(device),
    }


def mixed_precision(device: torch.device) -> torch.autocast:
    """Mixed precision on a GPU; none on a CPU."""
    on_gpu = device.type == "cuda"
    dtype = torch.bfloat16 if not on_gpu or torch.cuda.is_bf16_supported() else torch.float16
    return torch.autocast(device.type, dtype=dtype, enabled=on_gpu)
