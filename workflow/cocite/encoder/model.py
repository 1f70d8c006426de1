"""An encoder, and its folder, which sentence-transformers and transformers open as it is.

An encoder is a transformer and a pooling of its token vectors, nothing after it: the losses and the benchmarks see the
vectors as they are. Weights are safetensors, and no code of a model is run. The folder is in the layout that every
release of sentence-transformers reads; ours is opened without that library, whose import takes longer than embedding
a small benchmark.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import AutoModel
from transformers.utils import logging

from cocite.encoder.tokens import Tokenizer, open_tokenizer
from cocite.ground.errors import InputError
from cocite.tables.files import read_json, write_json, write_text

Features = Mapping[str, Any]
"""What the transformer takes of some documents: token ids with an attention mask, or packed as `packing` has it."""

POOLING_FOLDER = "1_Pooling"
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": POOLING_FOLDER, "type": "sentence_transformers.models.Pooling"},
]
POOLINGS = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens", "max": "pooling_mode_max_tokens"}
"""The poolings, and what sentence-transformers calls them."""
WEIGHTS, CARD = "model.safetensors", "README.md"

logging.set_verbosity_error()
logging.disable_progress_bar()


class Encoder(nn.Module):
    """A transformer and a pooling: tokens of documents in, one vector for each out."""

    def __init__(self, transformer: Any, pooling: str, tokenizer: Tokenizer) -> None:
        super().__init__()
        self.transformer = transformer
        self.pooling = pooling
        self.tokenizer = tokenizer

    @property
    def dimension(self) -> int:
        """Length of its vectors."""
        return int(self.transformer.config.hidden_size)

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        device: torch.device = next(self.parameters()).device
        return device

    def forward(self, features: Features) -> Tensor:
        """The vectors of some documents, documents × dimension."""
        tokens: Tensor = self.transformer(**features).last_hidden_state
        if "cu_seq_lens_q" in features:
            return _pool_packed(tokens[0], features["cu_seq_lens_q"], self.pooling)
        return _pool(tokens, features["attention_mask"], self.pooling)


def open_encoder(folder: Path) -> Encoder:
    """The encoder in a folder, in float32, on the GPU if there is one.

    Raises `InputError` if the folder is not that of an encoder, or holds no weights or no vocabulary.
    """
    if not (folder / "modules.json").is_file():
        raise InputError(f"{folder}: is not the folder of an encoder; it has no modules.json.")
    pooling = _read_pooling(folder)
    with readable(folder):
        transformer = AutoModel.from_pretrained(folder, use_safetensors=True, dtype=torch.float32)
    encoder = Encoder(transformer, pooling, open_tokenizer(folder))
    return encoder.to("cuda" if torch.cuda.is_available() else "cpu")


def save_encoder(transformer: Any, folder: Path, *, pooling: str, max_length: int, card: str) -> None:
    """Write a transformer, how its tokens are pooled, and a model card; a tokenizer is to be saved beside them."""
    transformer.save_pretrained(folder)
    write_json(folder / "modules.json", MODULES)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_length, "do_lower_case": False})
    sizes = {"word_embedding_dimension": transformer.config.hidden_size}
    write_json(folder / POOLING_FOLDER / "config.json", sizes | {key: how == pooling for how, key in POOLINGS.items()})
    write_text(folder / CARD, card)


def save_trained(encoder: Encoder, source: Path, folder: Path, card: str) -> None:
    """Write an encoder that was trained from the one in the folder `source`, with its tokenizer."""
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(".*", CARD, "*.safetensors"))
    pooling, length = encoder.pooling, encoder.tokenizer.max_length
    save_encoder(encoder.transformer, folder, pooling=pooling, max_length=length, card=card)


@contextmanager
def readable(folder: Path) -> Iterator[None]:
    """Name the folder where the libraries cannot make a model of what is in it."""
    try:
        yield
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"{folder}: cannot be opened as an encoder: {reason}") from error


def _read_pooling(folder: Path) -> str:
    told = read_json(folder / POOLING_FOLDER / "config.json")
    found = [how for how, key in POOLINGS.items() if told.get(key) or told.get("pooling_mode") == how]
    if len(found) != 1:
        raise InputError(f"{folder / POOLING_FOLDER}: names no pooling of ours; there are {', '.join(POOLINGS)}.")
    return found[0]


def _pool(tokens: Tensor, mask: Tensor, how: str) -> Tensor:
    """The vector of each document, from those of its tokens, documents × tokens × dimension."""
    if how == "cls":
        return tokens[:, 0]
    is_token = mask.unsqueeze(-1).expand(tokens.shape)
    if how == "max":
        return tokens.masked_fill(is_token == 0, -torch.inf).amax(dim=1)
    weights = is_token.to(tokens.dtype)
    return (tokens * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1e-9)


def _pool_packed(tokens: Tensor, starts: Tensor, how: str) -> Tensor:
    """The same, from the tokens of all documents one after the other, tokens × dimension."""
    if how == "cls":
        return tokens[starts[:-1]]
    return torch.segment_reduce(tokens.float(), how, lengths=starts.diff(), unsafe=True)
