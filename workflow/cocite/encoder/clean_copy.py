"""What is read of a published encoder's folder, and a clean copy of its transformer, which transformers opens.

What changes vectors is read or refused. Files of the folder itself can make transformers load another base beside an
adapter, read pickles that an index names, and fetch kernels, code and vocabularies from a hub. The copy has the
weights, the vocabulary and those settings that the architecture itself declares, and nothing else.
"""

import json
import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from torch import nn
from transformers import CONFIG_MAPPING, PreTrainedConfig

from cocite.config.encoders import USUAL_POOLING, EncoderSettings, Prompts
from cocite.config.entries import as_json
from cocite.config.models import SIMPLE_POOLINGS
from cocite.core.atomic import read_json, read_object, write_json
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.encoder.layers import BEHIND, CONFIG, WEIGHTS, checked_names, read_dense, refuse_unless
from cocite.encoder.model import WITH_DECODER
from cocite.encoder.poolings import POOLINGS, WITH_PROMPT, pooling_of
from cocite.encoder.tokens import PROMPTS

MODULES = "modules.json"
LIBRARY = "sentence_transformers"
KINDS = ("Transformer", "Pooling", "Dense", "Normalize")
ORDER = re.compile(r"Transformer( Pooling)?( Dense)*( Normalize)*")
"""The modules that are known, in the only order in which they are."""
TRANSFORMER_SETTINGS = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
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
INDEX = "model.safetensors.index.json"
ADAPTER = "adapter_config.json"
FURTHER_KEYS = {
    "tokenizer_class",
    # Whether tokens see those behind them, and the window of ModernBERT by another name.
    "is_causal", "sliding_window",
    # Rotary positions and the layers of ModernBERT, UltraBERT and Gemma as older releases wrote them.
    "rope_theta", "rope_scaling", "partial_rotary_factor", "global_rope_theta", "local_rope_theta",
    "rope_local_base_freq", "global_attn_every_n_layers", "attention_windows", "sliding_window_pattern",
    # Settings of DeBERTa that its code reads and its configuration does not declare.
    "attention_head_size", "conv_act", "conv_groups", "conv_kernel_size", "embedding_size", "norm_rel_ebd",
    "pooler_hidden_size", "position_buckets", "share_att_key", "talking_head",
}  # fmt: skip
"""Settings that are taken although no configuration of transformers declares them."""
OTHER_WEIGHTS = {
    "quantization_config": "its weights are quantised",
    "compression_config": "its weights are quantised",
    "per_layer_config": "its layers differ in their settings",
    "transformers_weights": "its weights are in a file of another name",
    "configuration_files": "some releases of transformers read its settings from another file",
}
"""Settings that make another model of the weights, and what they mean."""
VOCABULARY = (
    "tokenizer.json", "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt", "bpe.codes",
    "sentencepiece.bpe.model", "spiece.model", "spm.model", "tokenizer.model",
)  # fmt: skip
TOKENIZER_SETTINGS = ("tokenizer_config.json", "special_tokens_map.json")
TOKENIZER_KEYS = {
    "add_bos_token", "add_eos_token", "add_prefix_space", "added_tokens_decoder", "additional_special_tokens",
    "clean_text", "do_basic_tokenize", "do_lower_case", "errors", "extra_special_tokens", "keep_accents",
    "legacy_behaviour", "model_max_length", "never_split", "remove_space", "sp_model_kwargs", "split_by_punct",
    "src_lang", "strip_accents", "tokenize_chinese_chars", "tokenizer_class", "trim_offsets", "truncation_side",
    "unk_id", "wordpieces_prefix",
}  # fmt: skip
"""Settings of a tokenizer that are taken, beside the tokens that it names (`cls_token` and the like)."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What the folder of an encoder consists of."""

    transformer: Path
    """The folder of the transformer."""
    pooling: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the pooling; empty if the folder has none."""
    prompts: Prompts = Prompts()
    dense: nn.Sequential | None = None
    normalises: bool = False
    lowers: bool = False
    """Whether texts are in lowercase before they reach the tokenizer."""


def layout_of(source: Path) -> Layout:
    """The layout of an encoder's folder. Raises `InputError` if a module is unknown, out of order or set otherwise."""
    if not (source / MODULES).is_file():
        return Layout(transformer=source)
    modules = []
    for module in read_json(source / MODULES):
        library, _, name = module["type"].rpartition(".")
        if not library.startswith(LIBRARY):
            raise InputError(f"{source / MODULES}: the module {module['type']} is code of its own, which is not run.")
        if name not in KINDS:
            raise InputError(f"{source}: has a module {name} behind its transformer, which would be lost.")
        if Path(module["path"]).is_absolute() or ".." in Path(module["path"]).parts:
            raise InputError(f"{source / MODULES}: the module {name} is at {module['path']}, outside of the folder.")
        modules.append((name, source / module["path"]))
    order = " ".join(kind for kind, _ in modules)
    if not ORDER.fullmatch(order):
        allowed = "it must be Transformer, then at most one Pooling, Dense layers and a Normalize, in this order"
        raise InputError(f"{source / MODULES}: lists {order or 'no module'}; {allowed}.")
    folders, maps = dict(modules), [read_dense(folder) for kind, folder in modules if kind == "Dense"]
    if "Normalize" in folders:
        refuse_unless(folders["Normalize"] / CONFIG, _settings_in(folders["Normalize"]), BEHIND)
    return Layout(
        transformer=folders["Transformer"],
        pooling=_settings_in(folders["Pooling"]) if "Pooling" in folders else {},
        prompts=_prompts_in(source),
        dense=nn.Sequential(*maps) if maps else None,
        normalises="Normalize" in folders,
        lowers=_lowers(folders["Transformer"]),
    )


def with_folders_own(settings: EncoderSettings, layout: Layout, source: Path) -> EncoderSettings:
    """The settings, completed by the folder's, which are reported. Raises `InputError` if no pooling is known."""
    own: dict[str, Any] = {"pooling": USUAL_POOLING, "normalise": layout.normalises, "prompts": layout.prompts}
    if layout.pooling:
        named = [f"{key}: {value}" for key, value in layout.pooling.items() if key.startswith("pooling") and value]
        own["pooling"] = pooling_of(layout.pooling) or ", ".join(named)
    taken = {key: value for key, value in own.items() if getattr(settings, key) is None}
    if taken.get("pooling", USUAL_POOLING) not in SIMPLE_POOLINGS:
        known = f"name one as encoders.<name>.pooling: {', '.join(POOLINGS)}"
        raise InputError(f"{source}: its pooling ({own['pooling']}) is not taken by itself; {known}.")
    if (source / MODULES).is_file():
        further = {"Dense": layout.dense is not None, "include_prompt": pools_prompts(layout, settings)}
        _tell("Taken from the folder of the encoder", taken | further)
        _tell("The settings replace what the folder has", {key: own[key] for key in own.keys() - taken.keys()})
    return settings.model_copy(update=taken)


def pools_prompts(layout: Layout, settings: EncoderSettings) -> bool:
    """Whether tokens of prompts are pooled; sentences are whatever the folder says, as their first tokens count."""
    return bool(layout.pooling.get(WITH_PROMPT, True)) or settings.pooling == "sentences"


def _tell(what: str, settings: Mapping[str, Any]) -> None:
    said = (f"{key} {json.dumps(as_json(value), ensure_ascii=False)}" for key, value in sorted(settings.items()))
    if settings:
        report(f"{what}: {', '.join(said)}.")


def _settings_in(folder: Path) -> dict[str, Any]:
    return read_object(folder / CONFIG) if (folder / CONFIG).is_file() else {}


def _prompts_in(source: Path) -> Prompts:
    """The prompts before queries and before documents, by the names that sentence-transformers looks for."""
    settings = read_object(source / PROMPTS) if (source / PROMPTS).is_file() else {}
    if cut := settings.get("truncate_dim"):
        report(f"The encoder's own vectors are cut to {cut} dimensions; here only the setting dimension cuts them.")
    prompts = settings.get("prompts") or {}
    default = prompts.get(settings.get("default_prompt_name"))

    def prompt(*names: str) -> str | None:
        return next((prompts[name] for name in names if prompts.get(name) is not None), default) or None

    return Prompts(query=prompt("query"), document=prompt("document", "passage", "corpus"))


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


def copy_clean(source: Path, folder: Path) -> None:
    """Fill an empty folder with what is needed of a transformer's folder, large files as links. Raises `InputError`
    unless the weights are finite floating-point numbers in safetensors of a plain transformer."""
    if (source / ADAPTER).is_file():
        why = "an adapter lies beside the weights, and without it they are another model"
        remedy = "Merge it into the weights first (merge_and_unload of the library peft), or remove it"
        raise InputError(f"{source / ADAPTER}: {why}. {remedy}.")
    settings = read_object(source / CONFIG)
    _link_weights(source, folder)
    write_json(folder / CONFIG, _architecture(settings, source / CONFIG))
    for path in filter(Path.is_file, (source / name for name in VOCABULARY)):
        _link(path, folder)
    for path in filter(Path.is_file, (source / name for name in TOKENIZER_SETTINGS)):
        write_json(folder / path.name, _of_tokenizer(path))


def _link_weights(source: Path, folder: Path) -> None:
    """Link the files of weights. Raises `InputError` unless they are safetensors in the folder itself."""
    if (source / WEIGHTS).is_file():
        checked_names(source / WEIGHTS)
        _link(source / WEIGHTS, folder)
        return
    if not (source / INDEX).is_file():
        remedy = f"Convert them to {WEIGHTS}, or pin the commit of a conversion"
        raise InputError(f"{source}: holds no safetensors; pickled weights are not loaded. {remedy}.")
    places: dict[str, str] = {}
    for name in sorted(set(read_object(source / INDEX)["weight_map"].values())):
        if Path(name).name != name or not name.endswith(".safetensors") or not (source / name).is_file():
            raise InputError(f"{source / INDEX}: names {name!r}; weights must be safetensors in the same folder.")
        places |= dict.fromkeys(checked_names(source / name), name)
        _link(source / name, folder)
    write_json(folder / INDEX, {"metadata": {}, "weight_map": places})


def _architecture(settings: dict[str, Any], path: Path) -> dict[str, Any]:
    """The settings that the architecture declares. Raises `InputError` if it is not that of an encoder of texts."""
    for key, meaning in OTHER_WEIGHTS.items():
        if settings.get(key) is not None:
            raise InputError(f"{path}: {meaning} ({key}); take the encoder with plain weights in {WEIGHTS}.")
    kind = settings.get("model_type")
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        own = "code of its own (auto_map), which is not run" if "auto_map" in settings else "not known to transformers"
        remedy = "take an encoder whose architecture transformers has, or bring vectors (kind: brought)"
        raise InputError(f"{path}: its architecture {kind} is {own}; {remedy}.")
    declared = CONFIG_MAPPING[kind]
    of_all, of_kind = ({each.name for each in fields(config)} for config in (PreTrainedConfig, declared))
    own_keys = of_kind - of_all
    taken = {key: settings[key] for key in settings if key in own_keys | set(declared.attribute_map) | FURTHER_KEYS}
    shape = "several models" if declared.sub_configs else ""
    if not shape:
        config = declared(**taken)
        if config.is_encoder_decoder and declared.model_type not in WITH_DECODER:
            shape = "an encoder with a decoder"
        elif getattr(config, "is_decoder", False):
            shape = "a decoder (is_decoder)"
    if shape:
        raise InputError(f"{path}: its architecture {kind} is {shape}; a single encoder of texts is needed.")
    # The library may make a setting of some that are left out, as it does with those of older releases.
    without_effect = of_all | {"num_labels"}
    every = {key: settings[key] for key in settings if key not in without_effect and not key.startswith("_")}
    whole, part = (declared(**deepcopy(each)).to_dict() for each in (every, taken))
    changed = [key for key, value in whole.items() if key in own_keys and (key, value) not in part.items()]
    if changed:
        remedy = "open the settings with AutoConfig of transformers, and save them"
        raise InputError(f"{path}: {min(changed)} follows from settings that are not read here; {remedy}.")
    _tell_left_out(settings.keys() - taken.keys() - {"model_type"}, path.name)
    return taken | {"model_type": kind}


def _tell_left_out(keys: Iterable[str], file: str) -> None:
    if left_out := sorted(keys):
        report(f"Settings of {file} that are left out: {', '.join(left_out)}.")


def _of_tokenizer(path: Path) -> dict[str, Any]:
    settings = read_object(path)
    if settings.get("split_special_tokens"):
        raise InputError(f"{path}: its special tokens are split in texts (split_special_tokens), here they are not.")
    if settings.get("fast_tokenizer_files"):
        other = "some releases of transformers read another tokenizer (fast_tokenizer_files)"
        raise InputError(f"{path}: {other}; keep only tokenizer.json.")
    taken = {key: settings[key] for key in settings if key in TOKENIZER_KEYS or key.endswith("_token")}
    if type(taken.get("model_max_length")) is not int:
        taken.pop("model_max_length", None)
    _tell_left_out(settings.keys() - taken.keys(), path.name)
    return taken


def _link(file: Path, folder: Path) -> None:
    (folder / file.name).symlink_to(file.absolute())
