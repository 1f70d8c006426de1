"""The GPUs of this machine, their assignment to jobs, and the number format that a device computes in.

A job locks a file for each GPU that it uses; the kernel releases the lock when the job ends. In a job of Slurm, all
visible GPUs belong to the job.
"""

import fcntl
import os
import tempfile
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cocite.core.progress import report

if TYPE_CHECKING:
    import torch

Precision = Literal["auto", "float32", "bfloat16"]
DEVICES = Path("/dev")
VISIBLE = "CUDA_VISIBLE_DEVICES"
_HELD: list[int] = []


def gpus() -> list[str]:
    """The GPUs that programs can see here, as CUDA names them; it stops at a negative number."""
    chosen = os.environ.get(VISIBLE)
    if chosen is None:
        return [str(number) for number, _ in enumerate(DEVICES.glob("nvidia[0-9]*"))]
    return [*takewhile(lambda name: not name.startswith("-"), filter(None, chosen.split(",")))]


def take_gpus(wanted: int) -> None:
    """Let this process and its children see only GPUs that no other job has taken, or all where too few are free."""
    visible = gpus()
    if not visible or "SLURM_JOB_ID" in os.environ:
        return
    free = [name for name in visible if len(_HELD) < wanted and _take_gpu(name)]
    if len(free) == wanted:
        os.environ[VISIBLE] = ",".join(free)
    else:
        report(f"{len(free)} of {wanted} GPUs are free; they are shared with other jobs.")


def _take_gpu(name: str) -> bool:
    """Take a GPU for as long as this process lives; false where another job has it."""
    folder = Path(tempfile.gettempdir(), f"cocite-gpus-{os.getuid()}")
    folder.mkdir(exist_ok=True)
    descriptor = os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return False
    _HELD.append(descriptor)
    return True


def computes_in(precision: Precision, device: "torch.device") -> "torch.dtype":
    """The type of a precision: auto is bfloat16 if the device has hardware support for it."""
    import torch

    if device.type == "cuda":
        has_units = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        has_units = any(map(torch.cpu.get_capabilities().get, ("amx_bf16", "avx512_bf16")))
    if precision == "bfloat16" and not has_units:
        what = "This GPU" if device.type == "cuda" else "This CPU"
        report(f"{what} has no instructions for bfloat16; float32 may be many times faster. Set `precision: auto`.")
    return torch.bfloat16 if precision == "bfloat16" or (precision == "auto" and has_units) else torch.float32
