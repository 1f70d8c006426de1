"""Documents with masked tokens, which a masked language model predicts.

Which tokens are masked follows from the seed, the epoch and the paper alone, as spans do. As published (Devlin et al.,
2019), of the tokens that are to be predicted 80% are replaced by the mask, 10% by a token drawn from the vocabulary,
and 10% stay. Special tokens are never among them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cocite.core.errors import InputError
from cocite.core.randomness import fractions, priorities
from cocite.encoder.documents import Documents, documents_in
from cocite.encoder.tokens import Tokenizer, moved, moved_features

Numbers = NDArray[np.int64]

MASKED, REPLACED = 0.8, 0.1
"""Shares of the tokens to predict that become the mask, and that become a random token."""


@dataclass(frozen=True, kw_only=True)
class Masked:
    """Documents that go through the encoder together, and what is to be predicted of them."""

    features: dict[str, Any]
    """What the transformer takes."""
    places: Tensor
    """Where the tokens stand that are to be predicted, in all rows of the features one after the other."""
    tokens: Tensor
    """What they are."""
    of: Tensor
    """The document of each: its number among those that this process embeds."""

    def to(self, device: torch.device) -> "Masked":
        """A copy on a device."""
        tensors = {name: moved(getattr(self, name), device) for name in ("places", "tokens", "of")}
        return Masked(features=moved_features(self.features, device), **tensors)


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """Documents with their masks."""

    documents: Documents
    """With the tokens as the transformer sees them."""
    tokens: NDArray[np.int32]
    """The tokens as they were, one document after the other."""
    is_chosen: NDArray[np.bool_]
    """Which of them are to be predicted."""

    def of(self, rows: Numbers, features: dict[str, Any], numbers: Numbers) -> Masked:
        """Those of some documents, with their features, and the number of each document."""
        width = features["input_ids"].shape[1]
        lengths = self.documents.lengths[rows]
        is_packed = "cu_seq_lens_q" in features
        starts = np.cumsum(lengths) - lengths if is_packed else np.arange(len(rows)) * width
        owner = np.repeat(np.arange(len(rows)), lengths)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        flat = self.documents.starts[rows][owner] + within
        chosen = np.flatnonzero(self.is_chosen[flat])
        return Masked(
            features=features,
            places=torch.from_numpy(starts[owner[chosen]] + within[chosen]),
            tokens=torch.from_numpy(self.tokens[flat[chosen]].astype(np.int64)),
            of=torch.from_numpy(numbers[owner[chosen]]),
        )


@dataclass(frozen=True, kw_only=True)
class Masking:
    """How tokens are masked."""

    share: float
    """Share of the tokens that are to be predicted."""
    mask: int
    """Token id of the mask."""
    special: NDArray[np.int32]
    """Token ids that are never to be predicted."""
    vocabulary: int
    """Tokens of the vocabulary."""

    def drawn(self, documents: Documents, seed: int, *columns: Numbers) -> Drawn:
        """Documents with masks that follow from the seed and from what the columns say of each document."""
        tokens = np.concatenate([np.empty(0, np.int32), *(documents[row] for row in range(len(documents)))])
        lengths = documents.lengths
        within = np.arange(len(tokens)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        of_token = [np.repeat(column, lengths) for column in columns]

        def draw(what: str) -> NDArray[np.float64]:
            return fractions(priorities(seed, what, *of_token, within))

        is_chosen = (draw("tokens to predict") < self.share) & ~np.isin(tokens, self.special)
        fate = draw("masks")
        random = (draw("random tokens") * self.vocabulary).astype(np.int32)
        seen = np.where(is_chosen & (fate < MASKED), np.int32(self.mask), tokens)
        seen = np.where(is_chosen & (fate >= MASKED) & (fate < MASKED + REPLACED), random, seen)
        return Drawn(documents=documents_in(seen, lengths), tokens=tokens, is_chosen=is_chosen)


def masking_of(tokenizer: Tokenizer, share: float | None) -> Masking | None:
    """How tokens are masked; None where no share of them is. Raises `InputError` where there is no mask."""
    if share is None:
        return None
    if tokenizer.mask is None:
        raise InputError(
            "The loss mlm needs an encoder whose vocabulary has a token for masks, as those of BERT and RoBERTa have; "
            "this one has none."
        )
    vocabulary = tokenizer.backend.get_vocab_size(with_added_tokens=True)
    return Masking(
        share=share, mask=tokenizer.mask, special=np.array(tokenizer.special, np.int32), vocabulary=vocabulary
    )
