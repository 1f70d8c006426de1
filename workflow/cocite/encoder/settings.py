"""Settings of the encoder's steps, as the configuration's entries `encoders` and `models` hold them."""

from dataclasses import dataclass
from typing import Any

from cocite.errors import InputError
from cocite.settings import settings_as_dict

PUBLISHED_TEMPERATURES = {"infonce": 0.1, "cosent": 20.0, "angle": 20.0, "mnrl": 20.0, "supcon": 0.05}
LOSSES = ("triplet", *PUBLISHED_TEMPERATURES)
BLOCKS = {"infonce": 4}
"""Triplets of a query that a loss keeps together where the configuration does not say; others keep up to TOGETHER."""
TOGETHER = 8
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
    """triplet, infonce, cosent, angle, mnrl or supcon."""
    margin: float = 1.0
    """Margin of the triplet loss."""
    temperature: float | None = None
    """τ of the other losses; None stands for the published one."""
    sampled_negatives: bool = True
    """Whether mnrl takes the negatives of the triplets, beside the positives of other queries."""
    block: int | None = None
    """Triplets of a query that stay together in a batch; None stands for the published 4 in infonce, 8 in others."""
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
        for name, known in (("loss", LOSSES), ("trainable", TRAINABLE)):
            if getattr(self, name) not in known:
                raise InputError(f"Setting {name} is {getattr(self, name)!r}; known are {', '.join(known)}.")

    def resolved_temperature(self) -> float | None:
        """The temperature, or the published one of the loss; None for the triplet loss, which has none."""
        if self.loss == "triplet":
            return None
        return PUBLISHED_TEMPERATURES[self.loss] if self.temperature is None else self.temperature

    def resolved_block(self) -> int:
        """How many triplets of a query stay together."""
        return BLOCKS.get(self.loss, TOGETHER) if self.block is None else self.block

    def resolved(self) -> dict[str, Any]:
        """All settings, with the published values in place of what was left out."""
        published = {"temperature": self.resolved_temperature(), "block": self.resolved_block()}
        return {**settings_as_dict(self), **published}
