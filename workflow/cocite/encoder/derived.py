"""Encoders made of trained ones without another training: the mean of their weights, and another pooling.

Trainings from the same encoder that differ in their seed end with similar weights, so that the mean of their weights is
an encoder as well (Wortsman et al., 2022, "Model soups"), which embeds as fast as each of them.
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

    All else is from the first. Spaces of aspects and adapters are averaged too. Memory holds the weights once, and one
    tensor of each encoder. Raises `InputError` for fewer than two encoders, and for encoders that are not alike.
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
    """The mean of each tensor over some files, and the metadata of the first."""
    with ExitStack() as stack:
        opened = []
        for file in files:
            if not file.is_file():
                raise InputError(f"{file} is not there, and other encoders have it; only like encoders have a mean.")
            with readable(file.parent):
                opened.append(stack.enter_context(safe_open(file, framework="pt")))
        names = list(opened[0].keys())
        for file, each in zip(files, opened, strict=True):
            if different := set(names).symmetric_difference(each.keys()):
                raise InputError(f"{file}: differs from {files[0]} in {min(different)}, which one of them lacks.")
        return {name: _mean_of(name, opened, files) for name in names}, opened[0].metadata() or {}


def _mean_of(name: str, opened: Sequence[Any], files: Sequence[Path]) -> Tensor:
    """The mean of one tensor, in the data type of the first file; whole numbers must be equal."""
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
    """Write an encoder with another pooling and without spaces of aspects; all other files are links.

    Raises `InputError` if one of the two poolings is by sentence, which needs other weights and tokens.
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
    """Make a hard link, or a copy if the disk has none."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
