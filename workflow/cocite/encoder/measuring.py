"""What a training measures of itself: how it does on the validation set, and whether memory runs out.

Losses of different kinds cannot be compared; the accuracy and the rank correlation can.
"""

import ctypes
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cocite.core.errors import InputError
from cocite.core.written_ids import distinct
from cocite.encoder import processes
from cocite.encoder.batch import BEFORE_THE_FIRST, Batch, batches_of_like_length, build_batch
from cocite.encoder.documents import Documents, Numbers, moved
from cocite.encoder.examples import Examples
from cocite.encoder.losses import cosines_of
from cocite.encoder.masking import Masking, masking_of, sums_by_document
from cocite.encoder.model import Encoder, computing, embed_batch
from cocite.encoder.objective import Learner, Objective

TRIPLETS_AT_ONCE = 4096
LACKS_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")
TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4
"""Settings of glibc's `mallopt`."""
KEEP_FREED = {TRIM_THRESHOLD: -1, MMAP_MAX: 0}
"""Freed memory is kept for later steps. Returning it took 8 to 16% of a training's time with MiniLM's size."""
RETURN_FREED = {TRIM_THRESHOLD: 2**17, MMAP_THRESHOLD: 2**20, MMAP_MAX: 2**16}
"""Freed memory goes back at once, for a third of a step's time: pieces of mini-batches would not fit later ones."""


def set_memory(settings: Mapping[int, int]) -> None:
    """Configure what glibc does with memory that is freed, if this is the C library."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        for name, value in settings.items():
            libc.mallopt(name, value)


@contextmanager
def explained_memory(batch: Batch) -> Iterator[None]:
    """Raise `InputError`, which names the settings to lower, if memory runs out while the block works on a batch."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        is_named = any(words in str(error) for words in LACKS_OF_MEMORY)
        if not is_named and not isinstance(error, (MemoryError, torch.OutOfMemoryError)):
            raise
        what = f"Memory ran out over a batch of {len(batch.documents)} documents"
        others = "which gives the same gradients and takes a third longer, or batch_size, or encoders.<name>.max_length"
        raise InputError(f"{what}. Set models.<name>.mini_batch_tokens lower, {others}.") from error


def measure(
    objective: Objective, examples: Examples, *, seed: int = 0, check: Callable[[], None] = lambda: None
) -> dict[str, float]:
    """The mean loss of an example's batch, and of losses that the objective names; the share of triplets with ‖q − p‖ <
    ‖q − n‖; Spearman's correlation between the cosine of a query with a document and whether that is a positive. If no
    example has negatives, the positives of others take their place. Spans follow from the seed. Batches have
    neighbouring examples in the order of their queries. All processes call `check`, which may raise, after each batch
    of documents."""
    encoder, settings = objective.learner.encoder, objective.settings
    masking = masking_of(encoder.tokenizer, settings.masked_share)
    predicted = None if masking is None else predict(objective.learner, examples, masking, seed=seed, check=check)
    documents = examples.documents.drawn(seed, BEFORE_THE_FIRST)
    vectors = _of_each(encoder, documents, encoder.dimension, partial(embed_batch, encoder, documents), check)
    order = np.argsort(examples.queries, kind="stable")
    losses = {"eval_loss": objective.loss_of}
    losses |= {f"eval_loss of {name}": partial(objective.loss_of, only=each) for name, each in objective.named.items()}
    totals = dict.fromkeys(losses, 0.0)
    right, near, far = [], [], [torch.empty(0)]
    for start in range(0, len(order), settings.batch_size):
        numbers = order[start : start + settings.batch_size]
        batch = build_batch(examples, numbers, seed=seed, comparisons=settings.comparisons)
        of_batch = vectors[batch.documents]
        with torch.no_grad():
            for name, loss in losses.items():
                value = loss(of_batch, batch, None if predicted is None else predicted[batch.documents])
                totals[name] += len(numbers) * value.item()
        right.append(_are_right(of_batch, batch.whole.triplets))
        near.append(cosines_of(of_batch, batch.whole.positives))
        far.append(cosines_of(of_batch, batch.whole.negatives))
    if len(examples.negatives.documents) == 0:
        for some in triplets_with_others(examples).split(TRIPLETS_AT_ONCE):
            right.append(_are_right(vectors, some))
            far.append(cosines_of(vectors, some[:, [0, 2]]))
    is_right = torch.cat(right)
    return {
        **{name: total / len(order) for name, total in totals.items()},
        "eval_accuracy": int(is_right.sum()) / max(1, len(is_right)),
        "eval_spearman": rank_correlation(torch.cat(near).numpy(), torch.cat(far).numpy()),
    }


def _are_right(vectors: Tensor, triplets: Tensor) -> Tensor:
    query, positive, negative = vectors[triplets].unbind(dim=1)
    return (query - positive).norm(dim=1) < (query - negative).norm(dim=1)


def triplets_with_others(examples: Examples) -> Tensor:
    """Triplets of documents, if no example has negatives. With the pairs in the order of their queries, the negative is
    the positive of the pair half of all pairs further on, but never the query's paper or one of its positives."""
    papers = distinct(examples.ids)
    query, positive = examples.queries[examples.positives.owners], examples.positives.documents
    order = np.argsort(query, kind="stable")
    query, positive = query[order], positive[order]
    other = np.roll(positive, -max(1, len(positive) // 2))
    of_query, of_positive, of_other = (np.searchsorted(papers, examples.ids[some]) for some in (query, positive, other))
    is_known = np.isin(of_query * len(papers) + of_other, of_query * len(papers) + of_positive) | (of_query == of_other)
    return torch.from_numpy(np.stack([query, positive, other], axis=1)[~is_known])


def predict(
    learner: Learner, examples: Examples, masking: Masking, *, seed: int, check: Callable[[], None] = lambda: None
) -> Tensor:
    """The losses of masked tokens summed for each document, and their numbers, documents × 2; masks by the seed."""
    encoder = learner.encoder
    documents = examples.documents.drawn(seed, BEFORE_THE_FIRST)

    def losses_of(rows: Numbers) -> NDArray[np.float32]:
        epochs, places = np.full(len(rows), BEFORE_THE_FIRST), np.arange(len(rows))
        drawn = masking.drawn(documents.chosen(rows), seed, epochs, examples.ids[rows])
        features = drawn.documents.padded(places, encoder.tokenizer.padding)
        some = moved(drawn.of(places, features, places), encoder.device)
        with torch.inference_mode(), computing(encoder):
            losses = learner.losses_of_tokens(some.features, some.places, some.tokens)
            return sums_by_document([losses], [some], len(rows)).cpu().numpy()

    return _of_each(encoder, documents, 2, losses_of, check)


def _of_each(
    encoder: Encoder, documents: Documents, wide: int, work: Callable[[Numbers], Any], check: Callable[[], None]
) -> Tensor:
    """The results of `work` for all documents, documents × `wide`; each process works on every n-th document."""
    encoder.eval()
    process_of = np.arange(len(documents)) % processes.count()
    mine = np.flatnonzero(process_of == processes.number())
    rows = np.empty((len(mine), wide), dtype=np.float32)
    batches = list(batches_of_like_length(documents.lengths[mine], encoder.tokens_in_batch))
    for number in range(processes.largest(len(batches))):
        for some in batches[number : number + 1]:  # none where another process has more batches
            rows[some] = work(mine[some])
        check()
    parts = processes.gathered(torch.from_numpy(rows), np.bincount(process_of, minlength=processes.count()).tolist())
    whole = torch.empty_like(parts)
    whole[np.argsort(process_of, kind="stable")] = parts
    return whole


def rank_correlation(near: np.ndarray, far: np.ndarray) -> float:
    """Spearman's ρ between the similarities of pairs and whether they are positives (`near`) or negatives (`far`); 0 if
    there are no negatives, or all are equal. With as many negatives as positives, it is between about −√¾ and √¾."""
    similarities = np.concatenate([near, far])
    if len(far) == 0 or similarities.min() == similarities.max():
        return 0.0
    # Pearson's correlation of the ranks, which equal values share; importing SciPy's takes longer than a validation.
    _, place, counts = np.unique(similarities, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return float(np.corrcoef(ranks, np.repeat([1, 0], [len(near), len(far)]))[0, 1])
