"""Masked language modelling (Devlin et al., 2019): which tokens are masked, and the head that predicts them.

Masks depend only on the seed, the epoch and the paper, like spans. The head is that of the transformer's own class; it
learns with the encoder and is dropped in the end. One that was pre-trained is in the encoder's folder.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint as recomputed

from cocite.core.errors import InputError
from cocite.core.randomness import fractions, priorities
from cocite.encoder.documents import Documents, Numbers, count_within, documents_in
from cocite.encoder.examples import WHOLE
from cocite.encoder.tokens import Tokenizer

if TYPE_CHECKING:
    from transformers.modeling_outputs import BaseModelOutput

HEAD = "mlm_head.safetensors"
LOGITS_AT_ONCE = 2**25
"""Logits in memory together, 134 MB in each of several tensors: those of 1,100 tokens with BERT's vocabulary."""
MASKED, REPLACED = 0.8, 0.1
"""Shares of the tokens to predict that become the mask, and that become a random token; the others stay."""


@dataclass(frozen=True, kw_only=True)
class Masked:
    """Documents that go through the encoder together, and the tokens that are predicted."""

    features: dict[str, Any]
    places: Tensor
    """Where the tokens are, counted through all rows of the features."""
    tokens: Tensor
    of: Tensor
    """The document of each, by its number among those that this process embeds."""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """Documents with their masks."""

    documents: Documents
    tokens: NDArray[np.int32]
    """The tokens before, one document after the other."""
    is_chosen: NDArray[np.bool_]
    """Which of them are predicted."""

    def of(self, rows: Numbers, features: dict[str, Any], numbers: Numbers) -> Masked:
        """Those of some documents, with their features, and the number of each document."""
        width, lengths = features["input_ids"].shape[1], self.documents.lengths[rows]
        is_packed = "cu_seq_lens_q" in features
        starts = np.cumsum(lengths) - lengths if is_packed else np.arange(len(rows)) * width
        owner, within = np.repeat(np.arange(len(rows)), lengths), count_within(lengths)
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
    """Share of the tokens that are predicted."""
    mask: int
    """Token id of the mask."""
    special: NDArray[np.int32]
    """Token ids that are never predicted."""
    vocabulary: int
    """Tokens of the vocabulary."""

    def drawn(self, documents: Documents, seed: int, epochs: Numbers, papers: Numbers) -> Drawn:
        """Documents with masks that depend on the seed and, of each document, on its epoch, paper and role."""
        tokens = documents.joined(range(len(documents)))
        spans, lengths = documents.spans, documents.lengths
        roles = np.full(len(lengths), WHOLE) if spans is None else np.where(spans.shortest > 0, spans.roles, WHOLE)
        columns = [*(np.repeat(column, lengths) for column in (epochs, papers, roles)), count_within(lengths)]

        def draw(what: str) -> NDArray[np.float64]:
            return fractions(priorities(seed, what, *columns))

        is_chosen = (draw("tokens to predict") < self.share) & ~np.isin(tokens, self.special)
        fate = draw("masks")
        random = (draw("random tokens") * self.vocabulary).astype(np.int32)
        seen = np.where(is_chosen & (fate < MASKED), np.int32(self.mask), tokens)
        seen = np.where(is_chosen & (fate >= MASKED) & (fate < MASKED + REPLACED), random, seen)
        return Drawn(documents=documents_in(seen, lengths), tokens=tokens, is_chosen=is_chosen)


def sums_by_document(losses: Sequence[Tensor], masked: Sequence[Masked], documents: int) -> Tensor:
    """The sum of the losses of each document's masked tokens, and their number, documents × 2, float32."""
    of_tokens = torch.cat(list(losses))
    rows = torch.cat([some.of for some in masked]) if masked else of_tokens.new_zeros(0, dtype=torch.int64)
    columns = torch.stack([of_tokens, torch.ones_like(of_tokens)], dim=1)
    return of_tokens.new_zeros(documents, 2).index_add(0, rows, columns)


def masking_of(tokenizer: Tokenizer, share: float | None) -> Masking | None:
    """How tokens are masked; None if no share of them is. Raises `InputError` if the vocabulary has no mask."""
    if share is None:
        return None
    if tokenizer.mask is None:
        raise InputError("The loss mlm needs an encoder whose vocabulary has a token for masks; this one has none.")
    vocabulary = tokenizer.backend.get_vocab_size(with_added_tokens=True)
    added = tokenizer.backend.get_added_tokens_decoder()
    special = np.array(sorted(id for id, token in added.items() if token.special), np.int32)
    return Masking(share=share, mask=tokenizer.mask, special=special, vocabulary=vocabulary)


class _Given(nn.Module):
    """In place of a transformer, with hidden states that are computed already."""

    hidden: Tensor

    def forward(self, *_: Any, **__: Any) -> "BaseModelOutput":
        from transformers.modeling_outputs import BaseModelOutput

        output = BaseModelOutput(last_hidden_state=self.hidden)
        output.global_attentions = None  # which Longformer's class reads
        return output


class PredictionHead(nn.Module):
    """Hidden states of tokens in, the logits of all tokens of the vocabulary out."""

    def __init__(self, model: Any, embeddings: nn.Parameter) -> None:
        """Keep the head of a model for masked language modelling; tie it to the embeddings of a transformer."""
        super().__init__()
        self.given = _Given()
        setattr(model, model.base_model_prefix, self.given)
        if getattr(model.config, "tie_word_embeddings", True):
            model.get_output_embeddings().weight = embeddings
        self.model = model

    def forward(self, hidden: Tensor) -> Tensor:
        """The logits of some tokens, tokens × vocabulary."""
        self.given.hidden = hidden[None]
        return self.model().logits[0]

    def losses(self, hidden: Tensor, tokens: Tensor) -> Tensor:
        """The cross entropy of each of some tokens, float32; many are computed in blocks, and again for gradients."""

        def losses_of(hidden: Tensor, tokens: Tensor) -> Tensor:
            return cross_entropy(self(hidden).float(), tokens, reduction="none")

        rows = max(1, LOGITS_AT_ONCE // self.model.config.vocab_size)
        if len(tokens) <= rows:
            return losses_of(hidden, tokens)
        blocks = zip(hidden.split(rows), tokens.split(rows), strict=True)
        return torch.cat([recomputed(losses_of, *block, use_reentrant=False) for block in blocks])

    def own(self, embeddings: nn.Parameter) -> dict[str, Tensor]:
        """Its weights but the word embeddings, by name."""
        return {name: weight.detach() for name, weight in self.named_parameters() if weight is not embeddings}


def new_head(transformer: Any) -> PredictionHead:
    """A head with new weights, drawn from torch's generator. Raises `InputError` if transformers has none."""
    from transformers import AutoModelForMaskedLM

    config = transformer.config
    try:
        model = AutoModelForMaskedLM.from_config(config, dtype=torch.float32)
    except ValueError as error:
        needed = "an encoder of a kind that transformers has masked language models of"
        raise InputError(f"The loss mlm needs {needed}, and {config.model_type} is none.") from error
    return PredictionHead(model, transformer.get_input_embeddings().weight)


def open_head(folder: Path, transformer: Any) -> PredictionHead:
    """The head in an encoder's folder, or a new one if it has none. Raises `InputError` if it does not fit."""
    head = new_head(transformer)
    if not (folder / HEAD).is_file():
        return head
    own = head.own(transformer.get_input_embeddings().weight)
    try:
        saved = load_file(folder / HEAD)
        with torch.no_grad():
            for name, weight in own.items():
                weight.copy_(saved[name])
    except (SafetensorError, KeyError, RuntimeError) as error:
        raise InputError(f"{folder / HEAD}: is no head of this encoder: {error}") from error
    return head


def read_head(source: Path, transformer: Any) -> dict[str, Tensor]:
    """The weights of the head in the folder `source`, by name; none if it has no head."""
    from transformers import AutoModelForMaskedLM

    how = {"use_safetensors": True, "local_files_only": True, "ignore_mismatched_sizes": True}
    model, loading = AutoModelForMaskedLM.from_pretrained(source, dtype=torch.float32, output_loading_info=True, **how)
    prefix = f"{model.base_model_prefix}."
    if loading["mismatched_keys"] or not all(name.startswith(prefix) for name in loading["missing_keys"]):
        return {}
    embeddings = transformer.get_input_embeddings().weight
    return PredictionHead(model, embeddings).own(embeddings)
