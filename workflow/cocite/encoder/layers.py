"""What follows the transformer of an encoder and has weights: a linear map, and the names of aspects.

A map is the module Dense of sentence-transformers. The names belong to the pooling `sentences` (SciAspect, 2023): each
is embedded like a sentence, a map makes a query of it, and attention by the query weighs a document's sentences.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from cocite.config.encoders import LearnedMap
from cocite.config.graphs import ASPECTS
from cocite.config.probes import described_loss
from cocite.core.atomic import read_object, write_json
from cocite.core.errors import InputError
from cocite.core.tables.places import Trained, name_of_map
from cocite.encoder import poolings
from cocite.encoder.tokens import Tokenizer, tokenise

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
INDEX_BUFFER = "_ids"
"""The end of the names of buffers that older releases saved among the weights: `position_ids`, `token_type_ids`."""
CONFIG, WEIGHTS = "config.json", "model.safetensors"
DENSE = "sentence_transformers.models.Dense"
IDENTITY, TANH = "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Tanh"
ACTIVATIONS = {IDENTITY: nn.Identity, TANH: nn.Tanh}
BEHIND = {"module_input_name": "sentence_embedding", "module_output_name": "sentence_embedding"}
"""Settings of a module behind the pooling: it maps the vector of a document, not those of tokens."""


def checked_names(file: Path) -> list[str]:
    """The names of a file's tensors. Raises `InputError` unless the weights are finite floating-point numbers."""
    try:
        with safe_open(file, framework="pt") as opened:
            names = list(opened.keys())
            for name in names:
                weight = opened.get_tensor(name)
                if name.endswith(INDEX_BUFFER):
                    continue
                if weight.dtype not in FLOATS:
                    what = f"{name} is {str(weight.dtype).removeprefix('torch.')}"
                    raise InputError(f"{file}: {what}; weights must be float64, float32, float16 or bfloat16.")
                if not weight.float().isfinite().all():
                    raise InputError(f"{file}: {name} has numbers that are not finite in float32.")
    except SafetensorError as error:
        raise InputError(f"{file}: cannot be read as safetensors: {error}.") from error
    return names


class Dense(nn.Module):
    """A linear map and an activation of `ACTIVATIONS`, computed in float32 whatever the transformer computes in."""

    def __init__(self, linear: nn.Linear, activation: str = IDENTITY) -> None:
        super().__init__()
        self.linear, self.activation = linear, activation

    def forward(self, vectors: Tensor) -> Tensor:
        """What it makes of vectors, documents × dimension."""
        with torch.autocast(vectors.device.type, enabled=False):
            return ACTIVATIONS[self.activation]()(self.linear(vectors))


def refuse_unless(path: Path, settings: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    """Raise if the settings in a file have other values than these, which are all that is known here."""
    for key, value in usual.items():
        if settings.get(key) not in (None, {}, value):
            raise InputError(f"{path}: {key} is {settings[key]!r}, and only {value!r} is known.")


def read_dense(folder: Path) -> Dense:
    """The map in a folder. Raises `InputError` for unknown settings and pickled weights."""
    config = read_object(folder / CONFIG)
    refuse_unless(folder / CONFIG, config, BEHIND | {"use_residual": False})
    activation = config.get("activation_function", TANH)
    if activation not in ACTIVATIONS:
        raise InputError(f"{folder}: its activation is {activation}, and {' and '.join(ACTIVATIONS)} are known.")
    if not (folder / WEIGHTS).is_file():
        raise InputError(f"{folder}: holds no {WEIGHTS}; pickled weights are not loaded.")
    checked_names(folder / WEIGHTS)
    linear = nn.Linear(config["in_features"], config["out_features"], bias=config.get("bias", True))
    weights = load_file(folder / WEIGHTS)
    linear.load_state_dict({name.removeprefix("linear."): weight for name, weight in weights.items()})
    return Dense(linear, activation)


def save_dense(dense: Any, folder: Path) -> None:
    """Write a map to a folder of its own."""
    linear = dense.linear
    sizes = {"in_features": linear.in_features, "out_features": linear.out_features, "bias": linear.bias is not None}
    write_json(folder / CONFIG, sizes | {"activation_function": dense.activation})
    save_file(dense.state_dict(), folder / WEIGHTS)


def dense_of_probe(maps: Path, asked: LearnedMap) -> Dense:
    """The map that a probe has learned by one training. Raises `InputError` where the file holds none of it."""
    name = name_of_map(Trained(described_loss(asked.loss), asked.batch_size, asked.training_seed))
    with safe_open(maps, framework="pt") as file:
        names = list(file.keys())
        if name not in names:
            raise InputError(f"{maps}: holds no map {name}; it has {', '.join(sorted(names))}.")
        weight: Tensor = file.get_tensor(name)
    return Dense(linear_of(weight, None))


def linear_of(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """A layer with these weights."""
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    linear.load_state_dict({"weight": weight} | ({} if bias is None else {"bias": bias}))
    return linear


class AspectNames(nn.Module):
    """The names of the aspects as what attention asks for."""

    def __init__(self, dimension: int, tokenizer: Tokenizer) -> None:
        super().__init__()
        self.map = nn.Linear(dimension, dimension)
        nn.init.eye_(self.map.weight)
        nn.init.zeros_(self.map.bias)
        features = tokenise(ASPECTS, tokenizer).padded(np.arange(len(ASPECTS)), tokenizer.padding)
        for key, tensor in features.items():
            self.register_buffer(key, tensor, persistent=False)
        self.first = tokenizer.sentence

    def forward(self, transformer: nn.Module) -> Tensor:
        """The query of each aspect, aspects × dimension."""
        tokens: Tensor = transformer(**dict(self.named_buffers())).last_hidden_state
        return self.map(tokens[:, 0].to(self.map.weight.dtype))

    def pool(self, transformer: nn.Module, features: Mapping[str, Any], tokens: Tensor) -> Tensor:
        """The vectors of documents, documents × dimension, from those of their tokens, float32, padded or packed."""
        is_first = features["input_ids"] == self.first
        if "cu_seq_lens_q" in features:
            tokens, is_first = (poolings.padded(some[0], features["cu_seq_lens_q"]) for some in (tokens, is_first))
        queries = self(transformer)
        with torch.autocast(tokens.device.type, enabled=False):
            return poolings.attended_sentences(tokens, is_first, queries.float())


def open_names(folder: Path, dimension: int, tokenizer: Tokenizer) -> AspectNames:
    """The names as the encoder in a folder asks for them."""
    names = AspectNames(dimension, tokenizer)
    if (folder / poolings.FOLDER / WEIGHTS).is_file():
        names.load_state_dict(load_file(folder / poolings.FOLDER / WEIGHTS))
    return names
