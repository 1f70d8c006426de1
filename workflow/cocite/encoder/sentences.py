"""The sentence-weighted encoder (SciAspect, 2023): the names of the aspects ask, the sentences of a document answer.

Each sentence has a first token of its own, whose vector is the sentence's (see `tokens`). The encoder embeds the name
of each aspect as it embeds a sentence, a linear map makes a query of it, and the pooling `sentences` weighs the
sentences by it. The map is the identity at first, so that an encoder which was never trained weighs sentences by how
near they are to the names. It lies beside the pooling in the folder of the encoder.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from cocite.config.aspects import ASPECTS
from cocite.encoder import poolings
from cocite.encoder.tokens import Tokenizer, features_of, tokenise

WEIGHTS = "model.safetensors"


class Names(nn.Module):
    """The names of the aspects as what attention asks for."""

    def __init__(self, dimension: int, tokenizer: Tokenizer) -> None:
        super().__init__()
        self.map = nn.Linear(dimension, dimension)
        nn.init.eye_(self.map.weight)
        nn.init.zeros_(self.map.bias)
        names = tokenise(ASPECTS, tokenizer)
        for key, tensor in features_of(names, np.arange(len(names)), tokenizer.padding).items():
            self.register_buffer(key, tensor, persistent=False)
        self.first = tokenizer.sentence

    def forward(self, transformer: nn.Module) -> Tensor:
        """The query of each aspect, aspects × dimension."""
        tokens: Tensor = transformer(**dict(self.named_buffers())).last_hidden_state
        queries: Tensor = self.map(tokens[:, 0].to(self.map.weight.dtype))
        return queries

    def pool(self, transformer: nn.Module, features: Mapping[str, Any], tokens: Tensor) -> Tensor:
        """The vectors of documents, documents × dimension, from those of their tokens, float32, padded or packed."""
        is_first = features["input_ids"] == self.first
        if "cu_seq_lens_q" in features:
            tokens, is_first = (poolings.padded(some[0], features["cu_seq_lens_q"]) for some in (tokens, is_first))
        queries = self(transformer)
        with torch.autocast(tokens.device.type, enabled=False):
            return poolings.pool("sentences", tokens, is_first, queries.float())


def open_names(folder: Path, dimension: int, tokenizer: Tokenizer) -> Names:
    """The names as the encoder in a folder asks for them."""
    names = Names(dimension, tokenizer)
    if (folder / poolings.FOLDER / WEIGHTS).is_file():
        names.load_state_dict(load_file(folder / poolings.FOLDER / WEIGHTS))
    return names


def save_names(names: Names, folder: Path) -> None:
    """Write the map beside the pooling in the folder of an encoder."""
    save_file(
        {key: weight.contiguous() for key, weight in names.state_dict().items()}, folder / poolings.FOLDER / WEIGHTS
    )
