"""Which weights learn: all, bias terms (BitFit, Ben Zaken et al., 2022), low-rank additions (LoRA, Hu et al., 2022),
which are merged in the end, or an adapter, such as SPECTER2 has for each format of tasks (Singh et al., 2023).

An adapter maps the output of each layer to fewer dimensions and back, and adds it before the layer's last normalisation
(Pfeiffer et al., 2021, "AdapterFusion"). It is in `adapters/<name>` of a folder, as the library adapters has it.
"""

import re
import shutil
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import relu

from cocite.config.encoders import BiasTerms, Bottlenecks, LowRank
from cocite.config.models import TrainingSettings
from cocite.core.atomic import read_object, write_json
from cocite.core.errors import InputError
from cocite.encoder.layers import checked_names
from cocite.encoder.model import ADAPTERS, Encoder, drawing, open_transformer, readable

WEIGHTS, CONFIG = "adapter.safetensors", "adapter_config.json"
LAST_NORM = re.compile(r"layer\.\d+\.output\.LayerNorm$")
"""The last normalisation of a layer in BERT and those that have its layers: RoBERTa, ELECTRA, MPNet, DeBERTa."""
WEIGHT = re.compile(r"^.*layer\.(\d+)\.output\.adapters\..+\.adapter_(down|up)(?:\.0)?\.(weight|bias)$")
BOTTLENECK: dict[str, Any] = {
    "output_adapter": True, "mh_adapter": False, "original_ln_before": True, "original_ln_after": True,
    "residual_before_ln": True, "adapter_residual_before_ln": False, "ln_before": False, "ln_after": False,
    "non_linearity": "relu", "is_parallel": False, "phm_layer": False, "use_gating": False, "inv_adapter": None,
    "leave_out": [], "scaling": 1.0,
}  # fmt: skip
"""How the library adapters describes these bottlenecks, apart from their reduction."""


class Bottleneck(nn.Module):
    """Maps the tokens to fewer dimensions and back."""

    def __init__(self, wide: int, narrow: int) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(wide, narrow), nn.Linear(narrow, wide)
        for linear in (self.down, self.up):  # as BERT is drawn
            nn.init.normal_(linear.weight, std=0.02)
            nn.init.zeros_(linear.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        """What is to be added to the tokens, of their shape."""
        return self.up(relu(self.down(tokens)))


class Adapter(nn.ModuleList):
    """A bottleneck for each layer."""

    def __init__(self, name: str, reduction: float, bottlenecks: Iterable[Bottleneck]) -> None:
        super().__init__(bottlenecks)
        self.name, self.reduction = name, reduction


def new_adapter(encoder: Encoder, name: str, reduction: float) -> Adapter:
    """An adapter drawn from torch's generator. Raises `InputError` if the encoder has no layers like those of BERT."""
    kind, wide = encoder.transformer.config.model_type, encoder.transformer.config.hidden_size
    if not (layers := _last_norms(encoder)):
        raise InputError(f"Adapters need an encoder with layers like those of BERT, and this one is a {kind}.")
    return Adapter(name, reduction, (Bottleneck(wide, max(1, int(wide // reduction))) for _ in layers))


def switch_on(encoder: Encoder, adapter: Adapter | None) -> None:
    """Switch on an adapter, or none, in place of the one before."""
    for hook in encoder.hooks:
        hook.remove()
    encoder.adapter, encoder.hooks = adapter, []
    if adapter is None:
        return
    adapter.to(next(encoder.transformer.parameters()))

    def through(bottleneck: nn.Module, norm: nn.Module, inputs: tuple[Tensor], normed: Tensor) -> Tensor:
        return norm.forward(bottleneck(normed) + inputs[0])  # norm(…) would call this hook again

    for norm, bottleneck in zip(_last_norms(encoder), adapter, strict=True):
        encoder.hooks.append(norm.register_forward_hook(partial(through, bottleneck)))


def _last_norms(encoder: Encoder) -> list[Any]:
    return [module for name, module in encoder.transformer.named_modules() if LAST_NORM.search(name)]


def adapters_in(folder: Path) -> list[str]:
    """The names of the adapters in the folder of an encoder."""
    return sorted(path.parent.name for path in (folder / ADAPTERS).glob(f"*/{CONFIG}"))


def read_adapter(encoder: Encoder, folder: Path, name: str) -> Adapter:
    """An adapter from the folder of an encoder. Raises `InputError` if it is missing or does not fit."""
    if name not in adapters_in(folder):
        raise InputError(f"{folder}: has no adapter {name}; it has {', '.join(adapters_in(folder)) or 'none'}.")
    place = folder / ADAPTERS / name
    if not isinstance(config := read_object(place / CONFIG).get("config"), dict):
        raise InputError(f"{place / CONFIG}: has no config of bottlenecks; adapters of the library adapters have one.")
    for key, value in BOTTLENECK.items():
        if config.get(key, value) != value:
            raise InputError(f"{place / CONFIG}: {key} is {config[key]!r}, and adapters work with {value!r} only.")
    if not (place / WEIGHTS).is_file():
        raise InputError(f"{place}: holds no {WEIGHTS}; pickled weights are not loaded. Convert them first.")
    with readable(place):
        checked_names(place / WEIGHTS)
        adapter = new_adapter(encoder, name, config["reduction_factor"])
        weights = load_file(place / WEIGHTS)
        adapter.load_state_dict({WEIGHT.sub(r"\1.\2.\3", name): weight for name, weight in weights.items()})
    return adapter


def save_adapters(encoder: Encoder, source: Path, folder: Path) -> None:
    """Write the adapter that is switched on, and the other ones of the folder `source`. Nothing is written if none is:
    the encoder itself has learned then, and the adapters of `source` no longer fit it."""
    if encoder.adapter is None:
        return
    adapter, sizes = encoder.adapter, encoder.transformer.config
    if (source / ADAPTERS).is_dir():
        shutil.copytree(source / ADAPTERS, folder / ADAPTERS)
    place = folder / ADAPTERS / adapter.name
    place.mkdir(parents=True, exist_ok=True)
    weights, prefix = {}, f"{encoder.transformer.base_model_prefix}.encoder.layer"  # names as in the library
    for key, weight in adapter.state_dict().items():
        layer, linear, kind = key.split(".")
        inner = "adapter_down.0" if linear == "down" else "adapter_up"
        weights[f"{prefix}.{layer}.output.adapters.{adapter.name}.{inner}.{kind}"] = weight.contiguous()
    save_file(weights, place / WEIGHTS)
    described = {"name": adapter.name, "hidden_size": sizes.hidden_size, "model_type": sizes.model_type}
    write_json(place / CONFIG, {"config": BOTTLENECK | {"reduction_factor": adapter.reduction}, **described})


def choose_weights(encoder: Encoder, settings: TrainingSettings, seed: int) -> None:
    """Let only those weights learn that the settings name, and no pooler; new ones are drawn from the seed. Raises
    `InputError` if there are none, or a setting names layers that the encoder lacks."""
    if isinstance(settings.trainable, BiasTerms):
        for name, weight in encoder.named_parameters():
            weight.requires_grad_(name.endswith("bias"))
    elif isinstance(settings.trainable, LowRank):
        from peft import LoraConfig, get_peft_model
        from peft.tuners.lora import LoraLayer

        modules = list(settings.trainable.modules or ())
        layers = [name for name, module in encoder.transformer.named_modules() if isinstance(module, nn.Linear)]
        if missing := [each for each in modules if not any(f".{name}".endswith(f".{each}") for name in layers)]:
            known = ", ".join(sorted({name.rpartition(".")[2] for name in layers}))
            raise InputError(f"Setting trainable.modules has {', '.join(missing)}; the linear layers are {known}.")
        rank, alpha = settings.trainable.rank, settings.trainable.alpha
        additions = LoraConfig(r=rank, lora_alpha=alpha, target_modules=modules or "all-linear")
        with drawing(seed, "lora"):
            encoder.transformer = get_peft_model(encoder.transformer, additions)
        for layer in encoder.transformer.modules():
            if isinstance(layer, LoraLayer):  # a copy of its input in float32, which autocast would round again
                layer.cast_input_dtype_enabled = False
        encoder.mixes = True
        if encoder.dense is not None:
            encoder.dense.requires_grad_(False)
    elif isinstance(settings.trainable, Bottlenecks):
        if encoder.adapter is None:
            with drawing(seed, "adapter"):
                switch_on(encoder, new_adapter(encoder, settings.trainable.name, settings.trainable.reduction))
        encoder.requires_grad_(False)
        encoder.adapter.requires_grad_(True)
    for name, weight in encoder.named_parameters():
        if "pooler." in name:
            weight.requires_grad_(False)
    if not learned_weights(encoder):
        raise InputError(f"Setting trainable is {settings.trainable.kind}, but the encoder has no such weights.")


def learned_weights(module: nn.Module) -> dict[str, nn.Parameter]:
    """The weights of a module that learn, by name."""
    return {name: weight for name, weight in module.named_parameters() if weight.requires_grad}


def merge_lora(encoder: Encoder, settings: TrainingSettings, source: Path) -> None:
    """Add low-rank additions, if any, to the weights that they were trained with. These are opened again from `source`
    in float32: in memory they may be in bfloat16, which would lose most of an addition."""
    if not isinstance(settings.trainable, LowRank):
        return
    from peft.tuners.lora import LoraLayer

    modules = encoder.transformer.get_base_model().named_modules()
    additions: dict[str, Any] = {name: module for name, module in modules if isinstance(module, LoraLayer)}
    for layer in additions.values():
        del layer.base_layer  # makes room
    encoder.transformer = None
    encoder.transformer = open_transformer(source)
    with torch.no_grad():
        for name, layer in additions.items():
            weight = encoder.transformer.get_submodule(name).weight
            weight += layer.get_delta_weight("default").to(weight)
