"""The head that predicts masked tokens from the hidden states of a transformer.

It is that of the transformer's own class for masked language modelling. Its output layer is tied to the word embeddings
where the class ties them. The head is no part of an encoder: it learns beside it and is dropped in the end. The one
that an encoder was pre-trained with lies in the encoder's folder, in a file of its own, if its source had one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint as recomputed
from transformers import AutoModelForMaskedLM
from transformers.modeling_outputs import BaseModelOutput

from cocite.core.errors import InputError

HEAD = "mlm_head.safetensors"
LOGITS_AT_ONCE = 2**25
"""Logits in memory together, 134 MB in each of several tensors: those of 1,100 tokens with BERT's vocabulary."""


class _Given(nn.Module):
    """Stands for a transformer whose hidden states are there already."""

    hidden: Tensor

    def forward(self, *_: Any, **__: Any) -> BaseModelOutput:
        return BaseModelOutput(last_hidden_state=self.hidden)


class PredictionHead(nn.Module):
    """Hidden states of tokens in, the logits of all tokens of the vocabulary out."""

    def __init__(self, model: Any, embeddings: nn.Parameter) -> None:
        """Of a model for masked language modelling, keep the head; tie it to the embeddings of a transformer."""
        super().__init__()
        self.given = _Given()
        setattr(model, model.base_model_prefix, self.given)
        if getattr(model.config, "tie_word_embeddings", True):
            model.get_output_embeddings().weight = embeddings
        self.model = model

    def forward(self, hidden: Tensor) -> Tensor:
        """The logits of some tokens, tokens × vocabulary."""
        self.given.hidden = hidden[None]
        logits: Tensor = self.model().logits[0]
        return logits

    def losses(self, hidden: Tensor, tokens: Tensor) -> Tensor:
        """The cross entropy of each of some tokens, float32.

        Many tokens are predicted in blocks, which are computed again when their gradients are due.
        """
        rows = max(1, LOGITS_AT_ONCE // self.model.config.vocab_size)
        if len(tokens) <= rows:
            return self._losses(hidden, tokens)
        blocks = zip(hidden.split(rows), tokens.split(rows), strict=True)
        return torch.cat([recomputed(self._losses, *block, use_reentrant=False) for block in blocks])

    def _losses(self, hidden: Tensor, tokens: Tensor) -> Tensor:
        return cross_entropy(self(hidden).float(), tokens, reduction="none")

    def own(self, embeddings: nn.Parameter) -> dict[str, Tensor]:
        """Its weights but the word embeddings, by name."""
        return {name: weight.detach() for name, weight in self.named_parameters() if weight is not embeddings}


def new_head(transformer: Any) -> PredictionHead:
    """A head with new weights, drawn from torch's generator. Raises `InputError` where transformers knows none."""
    config = transformer.config
    try:
        model = AutoModelForMaskedLM.from_config(config)
    except ValueError as error:
        raise InputError(
            f"The loss mlm needs an encoder of a kind that transformers has masked language models of, and "
            f"{config.model_type} is none."
        ) from error
    return PredictionHead(model, transformer.get_input_embeddings().weight)


def open_head(folder: Path, transformer: Any) -> PredictionHead:
    """The head in an encoder's folder, or a new one where it has none. Raises `InputError` where it does not fit."""
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
    """The weights of the head that is among those in the folder `source`, by name; none if it is not."""
    told = {"output_loading_info": True, "ignore_mismatched_sizes": True}
    model, loading = AutoModelForMaskedLM.from_pretrained(
        source, use_safetensors=True, dtype=torch.float32, local_files_only=True, **told
    )
    prefix = f"{model.base_model_prefix}."
    if loading["mismatched_keys"] or any(not name.startswith(prefix) for name in loading["missing_keys"]):
        return {}
    embeddings = transformer.get_input_embeddings().weight
    return PredictionHead(model, embeddings).own(embeddings)


def save_head(head: Mapping[str, Tensor], folder: Path) -> None:
    """Write the weights of a head to an encoder's folder."""
    save_file({name: weight.contiguous() for name, weight in head.items()}, folder / HEAD)
