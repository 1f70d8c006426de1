"""The numbers that products of matrices are computed in."""

from typing import Literal

import torch

Precision = Literal["auto", "float32", "bfloat16"]

CPU_UNITS = ("amx_bf16", "avx512_bf16")
"""What a CPU that multiplies bfloat16 faster than float32 has, one of them, in torch's words."""


def computes_in(precision: Precision, device: torch.device) -> torch.dtype:
    """The numbers that a precision stands for: auto is bfloat16 where the device has units for products in it."""
    if precision != "auto":
        return torch.bfloat16 if precision == "bfloat16" else torch.float32
    if device.type == "cuda":
        has_units = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        capabilities = torch.cpu.get_capabilities()
        has_units = any(capabilities.get(unit) for unit in CPU_UNITS)
    return torch.bfloat16 if has_units else torch.float32
