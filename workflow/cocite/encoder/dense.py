"""A linear map behind the pooling of an encoder: the module Dense of sentence-transformers.

Published encoders end with one to change the number of dimensions; a probe learns one of vectors that are ready
(`probing`). Its folder has the layout of that library, so that the library opens the encoder with it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from cocite.config.encoders import LearnedMap
from cocite.config.entries import as_json
from cocite.config.probes import described_loss
from cocite.core.atomic import read_object
from cocite.core.errors import InputError
from cocite.core.tables.files import write_json
from cocite.core.tables.probes import Trained, name_of_map
from cocite.encoder.weights import checked_sizes

FOLDER, CONFIG, WEIGHTS = "2_Map", "config.json", "model.safetensors"
SIZES = ("in_features", "out_features")
TYPE = "sentence_transformers.models.Dense"
ACTIVATIONS = {"Identity": nn.Identity, "Tanh": nn.Tanh}
BEHIND = {"module_input_name": "sentence_embedding", "module_output_name": "sentence_embedding"}
"""Settings of a module behind the pooling: it maps the vector of a document, not those of tokens."""


class Dense(nn.Module):
    """A linear map and what follows it, computed in float32 whatever the transformer computes in."""

    def __init__(self, linear: nn.Linear, activation: str = "Identity") -> None:
        super().__init__()
        self.linear = linear
        self.activation = activation
        """Its name in `ACTIVATIONS`."""

    @property
    def dimension(self) -> int:
        """Length of the vectors that it gives."""
        return self.linear.out_features

    def forward(self, vectors: Tensor) -> Tensor:
        """What it makes of vectors, documents × dimension."""
        with torch.autocast(vectors.device.type, enabled=False):
            mapped: Tensor = ACTIVATIONS[self.activation]()(self.linear(vectors))
        return mapped


def refuse_unless(path: Path, settings: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    """Raise if the settings in a file have other values than these, which are all that is known here."""
    for key, value in usual.items():
        if settings.get(key) not in (None, {}, value):
            raise InputError(f"{path}: {key} is {settings[key]!r}, and only {value!r} is known.")


def read_dense(folder: Path) -> Dense:
    """The map in a folder of its own.

    Raises `InputError` if that has none as safetensors, weights of other shapes, or settings that are not known.
    """
    config = read_object(folder / CONFIG)
    refuse_unless(folder / CONFIG, config, BEHIND | {"use_residual": False})
    named = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    activation = named.rpartition(".")[2]
    if activation not in ACTIVATIONS or named not in _places_of(activation):
        raise InputError(f"{folder}: its activation is {named}, and {' and '.join(ACTIVATIONS)} are known.")
    if not (folder / WEIGHTS).is_file():
        raise InputError(f"{folder}: holds no {WEIGHTS}; pickled weights are not loaded.")
    checked_sizes(folder / WEIGHTS)
    loaded = load_file(folder / WEIGHTS)
    weights = {name.removeprefix("linear."): weight.float() for name, weight in loaded.items()}
    if len(weights) < len(loaded):
        raise InputError(f"{folder / WEIGHTS}: holds a weight twice, with and without linear. before its name.")
    _check_shapes(weights, config, folder / WEIGHTS)
    return Dense(linear_of(weights["weight"], weights.get("bias")), activation)


def _places_of(activation: str) -> set[str]:
    """The names by which torch has an activation."""
    return {f"{place}.{activation}" for place in (ACTIVATIONS[activation].__module__, "torch.nn.modules", "torch.nn")}


def _check_shapes(weights: Mapping[str, Tensor], config: Mapping[str, Any], file: Path) -> None:
    """Raise unless the weights are those of the linear map that the settings describe."""
    shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
    if len(shapes.get("weight", ())) != 2:
        raise InputError(f"{file}: holds no linear.weight of two dimensions.")
    takes, gives = (config.get(key, size) for key, size in zip(SIZES, reversed(shapes["weight"]), strict=True))
    expected = {"weight": (gives, takes)} | ({"bias": (gives,)} if config.get("bias", True) else {})
    if shapes != expected:
        raise InputError(f"{file}: its weights are {shapes}; by {CONFIG} they must be {expected}.")


def save_dense(dense: Dense, folder: Path) -> None:
    """Write a map to a folder of its own."""
    linear = dense.linear
    sizes = dict(zip(SIZES, (linear.in_features, linear.out_features), strict=True)) | {"bias": linear.bias is not None}
    module = ACTIVATIONS[dense.activation].__module__
    write_json(folder / CONFIG, sizes | {"activation_function": f"{module}.{dense.activation}"})
    save_file({name: weight.contiguous() for name, weight in dense.state_dict().items()}, folder / WEIGHTS)


def dense_of_probe(maps: Path, asked: LearnedMap) -> Dense:
    """The map that a probe has learned by one training. Raises `InputError` where the file holds none of it."""
    name = name_of_map(Trained(described_loss(as_json(asked.loss)), asked.batch_size, asked.seed))
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
