"""Weights in a file of safetensors: floating-point numbers, each of them finite."""

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from cocite.core.errors import InputError

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
INDEX_BUFFER = "_ids"
"""The end of the names of buffers that older releases saved among the weights: `position_ids`, `token_type_ids`."""


def checked_sizes(file: Path) -> dict[str, int]:
    """How many numbers each tensor of a file has.

    Raises `InputError` if a weight is no floating-point number, as in quantised encoders, or is not finite in float32.
    """
    try:
        with safe_open(file, framework="pt") as opened:
            return {name: _checked_size(file, name, opened.get_tensor(name)) for name in opened.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise InputError(f"{file}: cannot be read as safetensors: {error}.") from error


def _checked_size(file: Path, name: str, weight: Tensor) -> int:
    if not name.endswith(INDEX_BUFFER):
        if weight.dtype not in FLOATS:
            kind = str(weight.dtype).removeprefix("torch.")
            raise InputError(f"{file}: {name} is {kind}; weights must be float64, float32, float16 or bfloat16.")
        if not weight.float().isfinite().all():
            raise InputError(f"{file}: {name} has numbers that are not finite in float32.")
    return weight.numel()
