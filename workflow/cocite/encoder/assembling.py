"""Make the folder of an encoder from that of a transformer which exists, with our pooling and length."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel, AutoTokenizer

from cocite.encoder.model import readable, save_encoder
from cocite.encoder.settings import EncoderSettings
from cocite.ground.errors import InputError


def assemble(source: Path, folder: Path, settings: EncoderSettings, card: str) -> None:
    """Write the folder of an encoder from the folder of a transformer in the layout of Hugging Face.

    Raises `InputError` if that lacks weights or a vocabulary, or if its transformer reads fewer tokens than asked for.
    """
    if not any(source.glob("*.safetensors")):
        raise InputError(
            f"{source}: holds no safetensors; pickled weights are not loaded. Convert them, or pin the commit of a "
            "conversion."
        )
    with readable(source):
        transformer, loading = AutoModel.from_pretrained(
            source, use_safetensors=True, dtype=torch.float32, output_loading_info=True
        )
        tokenizer = AutoTokenizer.from_pretrained(source)
    _check_weights(loading, source)
    _check_vocabulary(tokenizer, source)
    _check_length(transformer, tokenizer, settings.max_length)
    tokenizer.model_max_length = settings.max_length
    tokenizer.save_pretrained(folder)
    save_encoder(transformer, folder, pooling=settings.pooling, max_length=settings.max_length, card=card)


def _check_weights(loading: dict[str, Any], source: Path) -> None:
    """Raise where the weights are not those of the whole transformer: transformers then makes up what is missing.

    A pooler may be missing: it lies behind the token vectors that are pooled here.
    """
    missing = sorted(name for name in loading["missing_keys"] if not name.startswith("pooler."))
    if missing:
        raise InputError(f"{source}: its safetensors lack {len(missing)} weights of the transformer, as {missing[0]}.")


def _check_vocabulary(tokenizer: Any, folder: Path) -> None:
    """Raise where there is none: transformers then makes up an empty one, and every word is unknown."""
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise InputError(f"{folder}: holds no vocabulary; a tokenizer.json or vocab.txt is needed beside the weights.")
    if not tokenizer.is_fast:
        raise InputError(f"{folder}: its tokenizer has no tokenizer.json, and cannot be turned into one.")


def _check_length(transformer: Any, tokenizer: Any, length: int) -> None:
    positions = getattr(transformer.config, "max_position_embeddings", length)
    limit = min(positions, tokenizer.model_max_length)
    if length > limit:
        raise InputError(f"Setting max_length is {length}; the encoder reads at most {limit} tokens.")
