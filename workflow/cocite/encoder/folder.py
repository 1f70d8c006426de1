"""The folder of an encoder: what sentence-transformers and transformers alike open, with one way to pool.

An encoder is a transformer and a pooling, nothing after it: the losses and the benchmarks see the vectors as they are.
Weights are safetensors, and no code of a model is run.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cocite.encoder.settings import EncoderSettings
from cocite.errors import InputError
from cocite.files import write_text

VERSIONED = ("torch", "transformers", "tokenizers", "sentence-transformers", "numpy")


def work_offline(threads: int | None = None) -> None:
    """Set what the libraries read when they are first imported: no network, no other frameworks, so many threads.

    The settings of the tokenizers and of cuBLAS, which is only deterministic with a workspace of fixed size, are read
    from the environment alone.
    """
    os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1", USE_TF="0", USE_FLAX="0")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    if "WORLD_SIZE" not in os.environ:
        # With several GPUs in sight one process would split each batch among them, and the losses see less of it.
        os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    if threads is not None:
        os.environ.update(OMP_NUM_THREADS=str(threads), RAYON_NUM_THREADS=str(threads))
        os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"


def open_encoder(folder: Path) -> Any:
    """The encoder in a folder, as a `SentenceTransformer` in float32.

    Raises `InputError` if the folder is not that of an encoder, or holds no weights or no vocabulary.
    """
    import torch
    from sentence_transformers import SentenceTransformer

    be_quiet()
    if not (folder / "modules.json").is_file():
        raise InputError(f"{folder}: is not the folder of an encoder; it has no modules.json.")
    with _readable(folder):
        encoder = SentenceTransformer(str(folder), model_kwargs={"use_safetensors": True, "dtype": torch.float32})
    _check_vocabulary(encoder.tokenizer, folder)
    return encoder


def assemble(source: Path, settings: EncoderSettings) -> Any:
    """A `SentenceTransformer` of the transformer in `source` and our pooling.

    Raises `InputError` if the folder lacks weights or a vocabulary, or if its transformer reads fewer tokens than asked
    for.
    """
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    be_quiet()
    if not any(source.glob("*.safetensors")):
        raise InputError(
            f"{source}: holds no safetensors; pickled weights are not loaded. Convert them, or pin the commit of a "
            "conversion."
        )
    with _readable(source):
        _check_weights(source)
        transformer = Transformer(
            str(source),
            model_kwargs={"use_safetensors": True, "dtype": torch.float32},
            max_seq_length=settings.max_length,
        )
    _check_vocabulary(transformer.tokenizer, source)
    _check_length(transformer, settings.max_length)
    pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode=settings.pooling)
    return SentenceTransformer(modules=[transformer, pooling], device="cpu")


def save_encoder(model: Any, folder: Path, card: str) -> None:
    """Save a `SentenceTransformer` into a folder, with a model card of ours instead of the library's."""
    model.save_pretrained(str(folder), create_model_card=False, safe_serialization=True)
    write_text(folder / "README.md", card)


def library_versions() -> dict[str, str]:
    """The versions of the libraries that a result depends on."""
    from importlib.metadata import version

    return {name: version(name) for name in VERSIONED}


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    """Name the folder where the libraries cannot make a model of what is in it."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"{folder}: cannot be opened as an encoder: {reason}") from error


def _check_weights(source: Path) -> None:
    """Raise where the weights are not those of the whole transformer: transformers then makes up what is missing.

    A pooler may be missing: it lies behind the token vectors that are pooled here.
    """
    from transformers import AutoModel

    loading = AutoModel.from_pretrained(str(source), use_safetensors=True, output_loading_info=True)[1]
    missing = sorted(name for name in loading["missing_keys"] if not name.startswith("pooler."))
    if missing:
        raise InputError(f"{source}: its safetensors lack {len(missing)} weights of the transformer, as {missing[0]}.")


def _check_vocabulary(tokenizer: Any, folder: Path) -> None:
    """Raise where there is none: transformers then makes up an empty one, and every word is unknown."""
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise InputError(f"{folder}: holds no vocabulary; a tokenizer.json or vocab.txt is needed beside the weights.")


def _check_length(transformer: Any, length: int) -> None:
    positions = getattr(transformer.model.config, "max_position_embeddings", length)
    limit = min(positions, transformer.tokenizer.model_max_length)
    if length > limit:
        raise InputError(f"Setting max_length is {length}; the encoder reads at most {limit} tokens.")


def be_quiet() -> None:
    """Leave the log to our own lines: no bar for each file of weights, no advice."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
