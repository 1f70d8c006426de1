"""The machine that a job runs on: processor, cores, memory and GPUs."""

import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

PROCESSORS = Path("/proc/cpuinfo")


def describe_machine() -> dict[str, Any]:
    """Name of the processor, number of its cores, memory in MB, and the names of the GPUs."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_mb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6),
        "gpus": _gpus(),
    }


def _processor() -> str:
    """The model of the processor; of those that Linux gives no name, the architecture."""
    lines = PROCESSORS.read_text(encoding="utf-8").splitlines() if PROCESSORS.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _gpus() -> list[str]:
    """The GPUs that NVIDIA's driver lists; none without the driver."""
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (subprocess.SubprocessError, OSError):
        return []
    return [name.strip() for name in listed.stdout.splitlines() if name.strip()]
