"""What a model of a resolved configuration is made from: the sets that it learns from, and the encoder under it."""

from collections.abc import Mapping
from typing import Any


def sets_of(model: Mapping[str, Any]) -> list[str]:
    """The sets of triplets or examples that a model learns from, in the order of its objectives."""
    return [model["triplets"]] if "triplets" in model else [each["triplets"] for each in model["objectives"]]


def encoder_under(name: str, models: Mapping[str, Mapping[str, Any]]) -> str:
    """The encoder that a model starts from, or that the model started from which it goes on from."""
    while "from" in models[name]:
        name = models[name]["from"]
    encoder: str = models[name]["encoder"]
    return encoder
