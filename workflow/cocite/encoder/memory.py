"""What becomes of memory that a training frees: settings of the C library."""

import ctypes
from collections.abc import Mapping

TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4
"""Settings of glibc's `mallopt`."""
KEPT = {TRIM_THRESHOLD: -1, MMAP_MAX: 0}
"""Freed memory is kept for later steps. Returning it took 8 to 16% of a training's time with MiniLM's size."""
RETURNED = {TRIM_THRESHOLD: 2**17, MMAP_THRESHOLD: 2**20, MMAP_MAX: 2**16}
"""Freed memory goes back to the system at once, for a third of a step's time: for trainings that are bounded in memory,
where the pieces of mini-batches would not fit later ones."""


def set_memory(settings: Mapping[int, int]) -> None:
    """Configure glibc, if it is there."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        for name, value in settings.items():
            libc.mallopt(name, value)
