"""The mean of the weights of several trainings of a model, as one encoder (Wortsman et al., 2022, "Model soups").

Trainings that started from the same encoder and differ in their seed end near each other, so that the mean of their
weights is an encoder as well. It embeds as fast as each of them, where the mean of their vectors would take all.
"""

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

from cocite.core.atomic import atomic_path
from cocite.core.errors import InputError
from cocite.core.options import Output
from cocite.encoder.card import add_remark
from cocite.encoder.model import CARD, readable

WEIGHTS = "*.safetensors"
REMARK = """
The weights are the mean of those of {trainings} trainings, which differ in their seed alone. What is said below of a
training is said of the first of them.
"""


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
    files = sorted(path.relative_to(first) for path in first.rglob(WEIGHTS) if not path.is_symlink())
    if not files:
        raise InputError(f"{first}: holds no weights in safetensors.")
    with atomic_path(output) as folder:
        shutil.copytree(first, folder, symlinks=True, ignore=shutil.ignore_patterns(".*"))
        for file in files:
            weights, metadata = _mean([model / file for model in models])
            save_file(weights, folder / file, metadata=metadata)
        add_remark(folder / CARD, REMARK.format(trainings=len(models)))


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
