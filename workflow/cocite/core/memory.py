"""The memory of this machine."""

from pathlib import Path

import psutil

LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where Linux states the memory limit of a container, bytes."""


def total_memory() -> int:
    """Memory of this machine, or of its container or session, MB."""
    limits = [int(text) for path in LIMITS if path.is_file() and (text := path.read_text().strip()).isdigit()]
    return min([psutil.virtual_memory().total, *limits]) // 10**6
