"""What becomes of memory that a training frees: settings of the C library."""

import ctypes
from collections.abc import Mapping

TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4
"""Settings of glibc's `mallopt`: from how many free bytes on a heap is cut, from how many on memory is mapped in place
of being taken from the heap, and how often."""
KEPT = {TRIM_THRESHOLD: -1, MMAP_MAX: 0}
"""Memory that is freed is kept for later steps. To give it back took 8 to 16% of a training's time with MiniLM's size,
since the same pages are zeroed again, and saved up to a tenth of the memory."""
RETURNED = {TRIM_THRESHOLD: 2**17, MMAP_THRESHOLD: 2**20, MMAP_MAX: 2**16}
"""Memory that is freed goes back to the system at once. Else the pieces of mini-batches are kept for later ones, which
they do not fit, and many mini-batches take much more than one. It takes a third of a step's time: it is for trainings
that are bounded in memory."""


def set_memory(settings: Mapping[int, int]) -> None:
    """Say what glibc, where it is there, does with memory that is freed."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        for name, value in settings.items():
            libc.mallopt(name, value)
