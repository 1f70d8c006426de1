"""Encoders that are made of trained ones without another training: the mean of their weights, and another pooling.

Trainings that started from the same encoder and differ in their seed end near each other, so that the mean of their
weights is an encoder as well (Wortsman et al., 2022, "Model soups"). It embeds as fast as each of them, where the mean
of their vectors would take all. With another pooling of its tokens, one training is scored with several.
"""

import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from cocite.config.aspects import SPACES
from cocite.core.atomic import atomic_path, read_json, write_json
from cocite.core.errors import InputError
from cocite.core.options import Output
from cocite.encoder import poolings
from cocite.encoder.card import add_remark
from cocite.encoder.model import CARD, readable
from cocite.encoder.spaces import spaces_in

OF_MEAN = """
The weights are the mean of those of {trainings} trainings, which differ in their seed alone. What is said below of a
training is said of the first of them.
"""
OF_POOLING = """
The pooling is {pooling}, and was {trained} in the training that the card describes. The weights are the same.
"""
WITHOUT_SPACES = "The spaces of aspects are left out: their maps are for vectors of the other pooling.\n"


def average_models(
    models: Annotated[Sequence[Path], typer.Argument(help="Folders of the encoders.")], output: Output
) -> None:
    """Write an encoder whose weights are the means of those of trained encoders.

    All else is as the first has it. Spaces of aspects and adapters are averaged along. Memory holds the weights once,
    and one tensor of each encoder. Raises `InputError` where the encoders are fewer than two, or not made alike.
    """
    if len(models) < 2:
        raise InputError("One encoder has no mean; name at least two.")
    first = models[0]
    files = sorted(path.relative_to(first) for path in first.rglob("*.safetensors") if not path.is_symlink())
    if not files:
        raise InputError(f"{first}: holds no weights in safetensors.")
    with atomic_path(output) as folder:
        shutil.copytree(first, folder, symlinks=True, ignore=shutil.ignore_patterns(".*"))
        for file in files:
            weights, metadata = _mean([model / file for model in models])
            save_file(weights, folder / file, metadata=metadata)
        add_remark(folder / CARD, OF_MEAN.format(trainings=len(models)))


def _mean(files: Sequence[Path]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The mean of each tensor over some files, and what the first file says about itself."""
    with ExitStack() as stack:
        opened = []
        for file in files:
            if not file.is_file():
                raise InputError(
                    f"{file} is not there, and the other encoders have it; only like encoders have a mean."
                )
            with readable(file.parent):
                opened.append(stack.enter_context(safe_open(file, framework="pt")))
        names = list(opened[0].keys())
        for file, each in zip(files, opened, strict=True):
            if different := set(names).symmetric_difference(each.keys()):
                raise InputError(f"{file}: differs from {files[0]} in {min(different)}, which one of them lacks.")
        return {name: _mean_of(name, opened, files) for name in names}, opened[0].metadata() or {}


def _mean_of(name: str, opened: Sequence[Any], files: Sequence[Path]) -> Tensor:
    """The mean of one tensor, in the numbers that the first file has it in; what is no fraction has to be equal."""
    given: Tensor = opened[0].get_tensor(name)
    total = given.to(torch.float64)
    for file, each in zip(files[1:], opened[1:], strict=True):
        other: Tensor = each.get_tensor(name)
        if other.shape != given.shape:
            shapes = " and ".join(" × ".join(map(str, tensor.shape)) for tensor in (given, other))
            raise InputError(f"{file}: {name} has another shape than in {files[0]} ({shapes}).")
        if not given.is_floating_point() and not torch.equal(given, other):
            raise InputError(f"{file}: {name} has other whole numbers than in {files[0]}, which have no mean.")
        total += other
    return (total / len(files)).to(given.dtype)


def repool(
    model: Annotated[Path, typer.Argument(help="Folder of the encoder.")],
    pooling: Annotated[str, typer.Option(help="Name of the pooling.")],
    output: Output,
) -> None:
    """Write an encoder with another pooling and without spaces of aspects, and all else of an encoder as links.

    Raises `InputError` if one of the two poolings is by sentence, which takes other weights and tokens.
    """
    trained = poolings.pooling_in(model)
    if any(map(poolings.is_by_sentence, (pooling, trained))):
        raise InputError(f"{model}: a pooling by sentence is no alternative to another one.")
    changed = Path(poolings.FOLDER, "config.json")
    own = read_json(model / changed)
    kept = {key: value for key, value in own.items() if not key.startswith("pooling_mode")}
    with atomic_path(output) as folder:
        left_out = shutil.ignore_patterns(".*", SPACES)
        shutil.copytree(model, folder, symlinks=True, ignore=left_out, copy_function=_link)
        write_json(folder / changed, kept | poolings.flags_of(pooling))
        if (folder / CARD).is_file():
            remark = OF_POOLING.format(pooling=pooling, trained=trained) + (WITHOUT_SPACES if spaces_in(model) else "")
            add_remark(folder / CARD, remark)


def _link(source: str, target: str) -> None:
    """Another name of a file, or a copy of it where the disk has no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
