"""Settings of the encoder's steps, as the configuration's entries `encoders` and `models` hold them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from cocite.config.choices import check_choice, choices
from cocite.config.settings import parse_settings, settings_as_dict
from cocite.ground.errors import InputError

LOSSES = choices(Path(__file__).parent / "losses")
TOGETHER = 8
"""Triplets of a query that stay together where neither the configuration nor the loss says how many."""


@dataclass(frozen=True, kw_only=True)
class ArchitectureSettings:
    """Sizes of a BERT that is built untrained."""

    layers: PositiveInt = 2
    """Transformer layers."""
    hidden: Annotated[int, Field(ge=8)] = 128
    """Width of a layer; a multiple of heads. The feed-forward layer is four times as wide."""
    heads: PositiveInt = 2
    """Attention heads."""
    vocabulary: Annotated[int, Field(ge=200)] = 4000
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
    pooling: Literal["cls", "mean", "max"] = "mean"
    """cls: the first token's vector; mean: the mean over all tokens; max: the largest value of each dimension."""
    max_length: Annotated[int, Field(ge=8)] = 512
    """Tokens of a text; what is longer is cut."""


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How an encoder is fine-tuned on triplets."""

    loss: str = "triplet"
    """Name of a module of `losses`."""
    of_loss: Mapping[str, Any] = field(default_factory=dict)
    """What the loss is told, such as its margin or temperature; what is left out is as its module says."""
    block: PositiveInt | None = None
    """Triplets of a query that stay together in a batch; None stands for what the loss says, or 8."""
    epochs: PositiveInt = 1
    """Passes over the triplets."""
    batch_size: PositiveInt = 32
    """Triplets in a batch."""
    at_once: PositiveInt | None = None
    """Documents of a batch in memory at once, the others being recomputed; None stands for all."""
    accumulation: PositiveInt = 1
    """Batches whose gradients make one step."""
    trainable: Literal["all", "bias", "lora"] = "all"
    """all weights; bias: the bias terms only (BitFit); lora: low-rank additions to the linear layers."""
    lora_rank: PositiveInt = 8
    """Rank of the additions."""
    lora_alpha: PositiveInt = 16
    """The additions are scaled by this over their rank."""
    lr: PositiveFloat = 2e-5
    """Largest learning rate of AdamW."""
    warmup: Annotated[float, Field(ge=0, le=1)] = 0.05
    """Share of the steps in which the learning rate rises; it falls linearly to zero after."""
    max_grad_norm: PositiveFloat = 1.0
    """Gradients are clipped to this norm."""
    evaluations: PositiveInt = 4
    """Times that the validation set is measured, at even intervals."""
    patience: PositiveInt | None = None
    """Measurements in a row without a smaller loss that end the training; None trains to the end."""

    def __post_init__(self) -> None:
        """Raise `InputError` for an unknown loss, or for what it cannot be told."""
        check_choice(self.loss, LOSSES, "--settings: loss")
        LOSSES[self.loss].check(self.of_loss, f"A setting of the loss {self.loss}")

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
