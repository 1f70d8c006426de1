"""Vectors of tokenised documents: what embeds a benchmark, and what validates a training."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cocite.encoder.texts import Documents

BATCH = 64


def embed(model: Any, documents: Documents, *, batch_size: int = BATCH) -> NDArray[np.float32]:
    """The pooled vectors of documents, documents × dimension, in their order.

    Batches hold documents of like length, the longest first, so that little is padding and a lack of memory shows at
    once. On a GPU the transformer computes in bfloat16, or in float16 where it has no bfloat16; on a CPU in float32.
    """
    vectors = np.empty((len(documents), model.get_embedding_dimension()), dtype=np.float32)
    order = np.argsort(-documents.lengths, kind="stable")
    model.eval()
    with torch.inference_mode(), mixed_precision(model.device):
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            features = features_of(documents, rows, model.tokenizer.pad_token_id, model.device)
            vectors[rows] = model(features)["sentence_embedding"].float().cpu().numpy()
    return vectors


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
