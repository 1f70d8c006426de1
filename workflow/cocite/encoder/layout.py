"""The layout of sentence-transformers: a list of modules, each with a folder and settings.

Vectors of another encoder come out if a module is missing, moved or set differently. So everything in that layout that
changes vectors is either read or refused: the modules behind the transformer, the pooling's treatment of prompts, and
lowercase. The pooling itself is a setting.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cocite.config.encoders import EncoderSettings
from cocite.core.atomic import read_json, read_object
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.encoder.dense import BEHIND, CONFIG, Dense, read_dense, refuse_unless
from cocite.encoder.poolings import pooling_of
from cocite.encoder.prompts import PROMPTS

MODULES = "modules.json"
LIBRARY = "sentence_transformers."
KINDS = ("Transformer", "Pooling", "Dense", "Normalize")
ORDER = re.compile(r"Transformer( Pooling)?( Dense)?( Normalize)*")
"""The modules that are known, in the only order in which they are."""
TRANSFORMER_SETTINGS = (
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
)
"""The names of the file of settings of the module Transformer; the first one that exists counts."""
USUAL = {
    "transformer_task": "feature-extraction",
    "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
    "module_output_name": "token_embeddings",
    "processing_kwargs": None,
    "query_expansion": None,
    "tokenizer_name_or_path": None,
}
"""Settings of the module Transformer that change vectors if they have any other value."""
ARGUMENTS = ("model_args", "model_kwargs", "tokenizer_args", "processor_kwargs", "config_args", "config_kwargs")
"""Its settings that are handed to transformers."""
WITHOUT_EFFECT = {"trust_remote_code", "attn_implementation", "torch_dtype", "dtype", "add_pooling_layer"}
"""Arguments of transformers that leave the vectors as they are, apart from rounding."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What the folder of an encoder consists of."""

    transformer: Path
    """The folder of the transformer."""
    pooling: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the pooling; empty if the folder has none."""
    prompts: Mapping[str, Any] = field(default_factory=dict)
    """Its own prompts by name."""
    dense: Dense | None = None
    """The linear map behind the pooling."""
    lowers: bool = False
    """Whether texts are in lowercase before they reach the tokenizer."""


def layout_of(source: Path) -> Layout:
    """The layout of an encoder's folder. Raises `InputError` if a module is unknown, out of order or set otherwise."""
    if not (source / MODULES).is_file():
        return Layout(transformer=source)
    modules = list(_modules_in(source))
    order = " ".join(kind for kind, _ in modules)
    if not ORDER.fullmatch(order):
        raise InputError(
            f"{source / MODULES}: lists {order or 'no module'}; it must be Transformer, and behind it at most one "
            "Pooling, one Dense and a Normalize, in this order."
        )
    folders = dict(modules)
    if "Normalize" in folders:
        refuse_unless(folders["Normalize"] / CONFIG, _settings_in(folders["Normalize"]), BEHIND)
        report("The encoder has a normalisation, which is left out unless the setting normalise asks for it.")
    return Layout(
        transformer=folders["Transformer"],
        pooling=_settings_in(folders["Pooling"]) if "Pooling" in folders else {},
        prompts=_prompts_in(source),
        dense=read_dense(folders["Dense"]) if "Dense" in folders else None,
        lowers=_lowers(folders["Transformer"]),
    )


def check_prompts(layout: Layout, settings: EncoderSettings, source: Path) -> None:
    """Raise if prompts are set and the encoder's own pooling leaves them out, which ours do not."""
    prompts = settings.prompts
    if prompts is not None and layout.pooling.get("include_prompt", True) is not True:
        raise InputError(
            f"{source}: its pooling leaves out the tokens of prompts (include_prompt is "
            f"{layout.pooling['include_prompt']!r}), and the poolings here include them. Remove prompts, or bring "
            "vectors (kind: brought)."
        )


def tell_replaced(layout: Layout, settings: EncoderSettings) -> None:
    """Report the folder's own pooling and prompts, if the settings replace them."""
    own = pooling_of(layout.pooling)
    if layout.pooling and own != settings.pooling:
        report(
            f"The encoder's own pooling is {own or 'none of ours'}; the setting pooling makes it {settings.pooling}."
        )
    if settings.prompts is None and any(layout.prompts.values()):
        report(f"The encoder has prompts that are left out, as the setting prompts is: {dict(layout.prompts)!r:.200}.")


def _modules_in(source: Path) -> Iterator[tuple[str, Path]]:
    """The kinds of the modules and their folders, in order."""
    path = source / MODULES
    modules = read_json(path)
    if not isinstance(modules, list):
        raise InputError(f"{path}: holds {type(modules).__name__}; it must be a list of modules.")
    for module in modules:
        kind, place = (module.get(key) if isinstance(module, dict) else None for key in ("type", "path"))
        if not isinstance(kind, str) or not isinstance(place, str):
            raise InputError(f"{path}: a module is {module!r:.80}; it must have a type and a path, both text.")
        name = kind.rpartition(".")[2]
        if not kind.startswith(LIBRARY):
            raise InputError(f"{path}: the module {kind} is code of its own, which is not run.")
        if name not in KINDS:
            raise InputError(f"{source}: has a module {name} behind its transformer, which would be lost.")
        if Path(place).is_absolute() or ".." in Path(place).parts:
            raise InputError(f"{path}: the module {name} is at {place}; it must be inside the folder.")
        yield name, source / place


def _settings_in(folder: Path) -> dict[str, Any]:
    """The settings in a module's folder; none if there is no such file."""
    return read_object(folder / CONFIG) if (folder / CONFIG).is_file() else {}


def _prompts_in(source: Path) -> dict[str, Any]:
    settings = read_object(source / PROMPTS) if (source / PROMPTS).is_file() else {}
    if cut := settings.get("truncate_dim"):
        report(
            f"The encoder's own vectors are cut to {cut} dimensions, and here only by the setting dimension of a model."
        )
    return settings.get("prompts") or {}


def _lowers(folder: Path) -> bool:
    """Whether the module Transformer puts texts into lowercase. Raises `InputError` if it does anything else."""
    path = next((folder / name for name in TRANSFORMER_SETTINGS if (folder / name).is_file()), None)
    if path is None:
        return False
    settings = read_object(path)
    refuse_unless(path, settings, USUAL)
    for key in ARGUMENTS:
        if further := sorted(set(settings.get(key) or {}) - WITHOUT_EFFECT):
            raise InputError(f"{path}: {key} has {further[0]}, which is not read here; remove it if it has no effect.")
    return bool(settings.get("do_lower_case"))
