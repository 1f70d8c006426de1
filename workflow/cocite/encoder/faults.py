"""What ends a training early, told so that it can be mended: a loss that is no number, a lack of memory."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from cocite.encoder.batches import Batch
from cocite.encoder.examples import Examples
from cocite.ground.errors import InputError

NAMED = 10
"""Documents that an error names; it counts the others."""
LACKS_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")


@dataclass(frozen=True, kw_only=True)
class UnreadLoss:
    """The loss of a batch that is still on its device, and what it takes to name what has spoilt it."""

    value: torch.Tensor
    """The loss, a scalar."""
    step: int
    """The step that it belongs to."""
    batch: Batch
    finite: torch.Tensor
    """Whether the vector of each document is finite."""


def unread(loss: torch.Tensor, batch: Batch, vectors: torch.Tensor, step: int) -> UnreadLoss:
    """The loss of a batch, to be looked at later: that waits for the device."""
    bare = replace(batch, groups=())
    return UnreadLoss(value=loss.detach(), step=step, batch=bare, finite=torch.isfinite(vectors).all(dim=1))


def check_loss(value: float, loss: UnreadLoss, examples: Examples) -> None:
    """Raise `InputError` where the loss of a batch is not a number, with what caused it.

    Those are the documents without finite vectors; where all vectors are finite, the loss itself has overflowed, and
    the queries of the batch are named.
    """
    if math.isfinite(value):
        return
    ids = examples.ids[loss.batch.documents]
    faulty, queries = ids[~loss.finite.cpu().numpy()], ids[np.unique(loss.batch.positives[:, 0].cpu().numpy())]
    cause = (
        f"{len(faulty)} of the {len(ids)} documents of its batch have vectors that are not finite: {_listed(faulty)}"
        if len(faulty)
        else f"all vectors are finite; the queries of its batch are {_listed(queries)}"
    )
    raise InputError(
        f"The training loss is {value} at step {loss.step} ({cause}); a smaller lr or max_grad_norm may help."
    )


@contextmanager
def explained_memory(batch: Batch) -> Iterator[None]:
    """Name the settings to lower where memory runs out while the block works on a batch."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, (MemoryError, torch.OutOfMemoryError)) and not any(
            words in str(error) for words in LACKS_OF_MEMORY
        ):
            raise
        sizes = [_size(group) for group in batch.groups]
        documents, length = sum(rows for rows, _ in sizes), max(tokens for _, tokens in sizes)
        raise InputError(
            f"Memory ran out over a batch of {documents} documents of up to {length} tokens, {max(sizes)[0]} of them "
            "at once. Set models.<name>.at_once lower, which gives the same gradients and takes a third longer; or "
            "batch_size, or encoders.<name>.max_length."
        ) from error


def _size(group: dict[str, Any]) -> tuple[int, int]:
    """The documents of a group, and the tokens of its longest."""
    if "cu_seq_lens_q" in group:
        return len(group["cu_seq_lens_q"]) - 1, group["max_length_q"]
    rows, tokens = group["input_ids"].shape
    return rows, tokens


def _listed(ids: np.ndarray) -> str:
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return ", ".join(map(str, ids[:NAMED].tolist())) + more
