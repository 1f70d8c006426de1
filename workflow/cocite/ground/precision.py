"""The numbers that products of matrices are computed in."""

from collections.abc import Sequence
from typing import Literal

import torch

Precision = Literal["auto", "float32", "bfloat16"]

MATRIX_UNITS = ("amx_bf16",)
"""What a CPU that has units for whole products in bfloat16 has, in torch's words."""


def computes_in(precision: Precision, device: torch.device, *, cpu_units: Sequence[str] = MATRIX_UNITS) -> torch.dtype:
    """The numbers that a precision stands for: auto is bfloat16 where the device has units for products in it.

    `cpu_units` are those that count on a CPU; one of them is enough.
    """
    if precision != "auto":
        return torch.bfloat16 if precision == "bfloat16" else torch.float32
    if device.type == "cuda":
        has_units = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        capabilities = torch.cpu.get_capabilities()
        has_units = any(capabilities.get(unit) for unit in cpu_units)
    return torch.bfloat16 if has_units else torch.float32
