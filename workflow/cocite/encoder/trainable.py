"""Which weights learn: all, the bias terms (BitFit), low-rank additions to the linear layers (LoRA), or an adapter.

Sources: BitFit, Ben Zaken et al. (2022); LoRA, Hu et al. (2022). Only what learns is saved while a training runs; the
rest is in the encoder that it starts from. At the end low-rank additions are merged into the weights, so that the
folder of an encoder looks the same whichever way it was trained; an adapter stays beside the weights, which are then
those that it started from.
"""

import torch

from cocite.config.models import BiasTerms, Bottlenecks, LowRank, TrainingSettings
from cocite.core.errors import InputError
from cocite.core.randomness import derive_seed
from cocite.encoder.adapters import new_adapter, switch_on
from cocite.encoder.model import Encoder


def choose_weights(encoder: Encoder, settings: TrainingSettings, seed: int) -> None:
    """Let the weights learn that the settings name, and no others; what is new is drawn from the seed.

    A pooler comes after the token vectors that are pooled here, and never learns. Raises `InputError` where the encoder
    has none of the weights.
    """
    if isinstance(settings.trainable, BiasTerms):
        for name, weight in encoder.named_parameters():
            weight.requires_grad_(name.endswith("bias"))
    elif isinstance(settings.trainable, LowRank):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "lora"))
            from peft import LoraConfig, get_peft_model

            rank, alpha = settings.trainable.rank, settings.trainable.alpha
            additions = LoraConfig(r=rank, lora_alpha=alpha, target_modules="all-linear")
            encoder.transformer = get_peft_model(encoder.transformer, additions)
        if encoder.dense is not None:
            encoder.dense.requires_grad_(False)
    elif isinstance(settings.trainable, Bottlenecks):
        if encoder.adapter is None:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(derive_seed(seed, "adapter"))
                switch_on(encoder, new_adapter(encoder, settings.trainable.name, settings.trainable.reduction))
        encoder.requires_grad_(False)
        encoder.adapter.requires_grad_(True)
    for name, weight in encoder.named_parameters():
        if "pooler." in name:
            weight.requires_grad_(False)
    if not learned_weights(encoder):
        raise InputError(f"Setting trainable is {settings.trainable.kind}, but the encoder has no such weights.")


def learned_weights(module: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """The weights of a module that learn, by name."""
    return {name: weight for name, weight in module.named_parameters() if weight.requires_grad}


def merge_lora(encoder: Encoder, settings: TrainingSettings) -> None:
    """Add low-rank additions to the weights that they belong to; leave encoders without them as they are."""
    if isinstance(settings.trainable, LowRank):
        encoder.transformer = encoder.transformer.merge_and_unload()
