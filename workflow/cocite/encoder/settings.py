"""Settings of the encoder's steps, as the configuration's entries `encoders` and `models` hold them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cocite.choices import check_choice, choices
from cocite.errors import InputError
from cocite.settings import parse_settings, settings_as_dict

LOSSES = choices(Path(__file__).parent / "losses")
TOGETHER = 8
"""Triplets of a query that stay together where neither the configuration nor the loss says how many."""
POOLINGS = ("cls", "mean", "max")
TRAINABLE = ("all", "bias", "lora")


@dataclass(frozen=True, kw_only=True)
class ArchitectureSettings:
    """Sizes of a BERT that is built untrained."""

    layers: int = 2
    """Transformer layers."""
    hidden: int = 128
    """Width of a layer; a multiple of heads. The feed-forward layer is four times as wide."""
    heads: int = 2
    """Attention heads."""
    vocabulary: int = 4000
    """Largest number of WordPiece tokens."""

    def __post_init__(self) -> None:
        """Raise `InputError` if the heads do not divide the width."""
        if self.hidden % self.heads:
            raise InputError(f"build.hidden ({self.hidden}) must be a multiple of build.heads ({self.heads}).")


@dataclass(frozen=True, kw_only=True)
class EncoderSettings:
    """One encoder before fine-tuning: exactly one of model, package and build says where it comes from."""

    model: str | None = None
    """Hugging Face id, or a local folder in the layout of Hugging Face or sentence-transformers."""
    revision: str | None = None
    """Commit of the Hugging Face model."""
    package: str | None = None
    """Installed Python package with a function get_model_path()."""
    build: dict[str, Any] | None = None
    """Sizes of an untrained BERT: `ArchitectureSettings`."""
    pooling: str = "mean"
    """cls: the first token's vector; mean: the mean over all tokens; max: the largest value of each dimension."""
    max_length: int = 512
    """Tokens of a text; what is longer is cut."""

    def __post_init__(self) -> None:
        """Raise `InputError` for an unknown pooling."""
        if self.pooling not in POOLINGS:
            raise InputError(f"Setting pooling is {self.pooling!r}; known are {', '.join(POOLINGS)}.")


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How an encoder is fine-tuned on triplets."""

    loss: str = "triplet"
    """Name of a module of `losses`."""
    of_loss: Mapping[str, Any] = field(default_factory=dict)
    """What the loss is told, such as its margin or temperature; what is left out is as its module says."""
    block: int | None = None
    """Triplets of a query that stay together in a batch; None stands for what the loss says, or 8."""
    epochs: int = 1
    """Passes over the triplets."""
    batch_size: int = 32
    """Triplets in a batch."""
    at_once: int | None = None
    """Documents of a batch in memory at once, the others being recomputed; None stands for all."""
    accumulation: int = 1
    """Batches whose gradients make one step."""
    trainable: str = "all"
    """all weights; bias: the bias terms only (BitFit); lora: low-rank additions to the linear layers."""
    lora_rank: int = 8
    """Rank of the additions."""
    lora_alpha: int = 16
    """The additions are scaled by this over their rank."""
    lr: float = 2e-5
    """Largest learning rate of AdamW."""
    warmup: float = 0.05
    """Share of the steps in which the learning rate rises; it falls linearly to zero after."""
    max_grad_norm: float = 1.0
    """Gradients are clipped to this norm."""
    evaluations: int = 4
    """Times that the validation set is measured, at even intervals."""
    patience: int | None = None
    """Measurements in a row without a smaller loss that end the training; None trains to the end."""

    def __post_init__(self) -> None:
        """Raise `InputError` for an unknown loss or kind of training."""
        check_choice(self.loss, LOSSES, "Setting loss")
        check_choice(self.trainable, TRAINABLE, "Setting trainable")
        for name in self.of_loss:
            check_choice(name, LOSSES[self.loss].keys, f"A setting of the loss {self.loss}")

    def told_to_loss(self) -> dict[str, Any]:
        """What the loss is told, with the published values in place of what was left out."""
        return {**LOSSES[self.loss].defaults, **self.of_loss}

    def resolved_block(self) -> int:
        """How many triplets of a query stay together."""
        return LOSSES[self.loss].constants.get("TOGETHER", TOGETHER) if self.block is None else self.block

    def resolved(self) -> dict[str, Any]:
        """All settings, with the published values in place of what was left out."""
        told = {name: value for name, value in settings_as_dict(self).items() if name != "of_loss"}
        return {**told, **self.told_to_loss(), "block": self.resolved_block()}


def training_settings(text: str) -> TrainingSettings:
    """Settings from JSON, in which what the loss is told stands beside all else. Raises `InputError`."""
    return parse_settings(TrainingSettings, text, others="of_loss")
