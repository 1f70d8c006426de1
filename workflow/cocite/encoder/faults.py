"""What ends a training early, told so that it can be mended: a loss that is no number, a lack of memory."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from cocite.encoder.triplets import Triplets
from cocite.errors import InputError

NAMED = 10
"""Documents that an error names; it counts the others."""
LACKS_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")


def check_loss(loss: float, batch: dict[str, Any], vectors: torch.Tensor, triplets: Triplets, step: int) -> None:
    """Raise `InputError` where the loss of a batch is not a number, with the documents that caused it.

    Those are the ones without finite vectors; where all vectors are finite, the loss itself has overflowed, and the
    queries of the batch are named.
    """
    if math.isfinite(loss):
        return
    ids = triplets.ids[batch["documents"].cpu().numpy()]
    faulty = ids[~torch.isfinite(vectors).all(dim=1).cpu().numpy()]
    cause = (
        f"{len(faulty)} of the {len(ids)} documents of its batch have vectors that are not finite: {_listed(faulty)}"
        if len(faulty)
        else f"all vectors are finite; the queries of its batch are {_listed(ids[_queries(batch)])}"
    )
    raise InputError(f"The training loss is {loss} at step {step} ({cause}); a smaller lr or max_grad_norm may help.")


@contextmanager
def told_of_memory(batch: dict[str, Any]) -> Iterator[None]:
    """Name the settings to lower where memory runs out while the block works on a batch."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, (MemoryError, torch.OutOfMemoryError)) and not any(
            words in str(error) for words in LACKS_OF_MEMORY
        ):
            raise
        groups = [tuple(group["input_ids"].shape) for group in batch["groups"]]
        documents, length = sum(rows for rows, _ in groups), max(tokens for _, tokens in groups)
        raise InputError(
            f"Memory ran out over a batch of {documents} documents of up to {length} tokens, {max(groups)[0]} of them "
            "at once. Set models.<name>.at_once lower, which gives the same gradients and takes a third longer; or "
            "batch_size, or encoders.<name>.max_length."
        ) from error


def _queries(batch: dict[str, Any]) -> Any:
    return np.unique(batch["rows"][:, 0].cpu().numpy())


def _listed(ids: np.ndarray) -> str:
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return ", ".join(map(str, ids[:NAMED].tolist())) + more
