"""Operations a second of a product of large matrices: what the products of a training are measured against.

A process of its own, so that its memory and threads are not those of what is measured.
"""

import time
from collections.abc import Callable

import torch

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
SIZE = 8192 if ON_GPU else 2048
PRODUCTS, ROUNDS = 10, 5


def product_peak(precision: str) -> float:
    """Operations a second, the best of `ROUNDS`."""
    some, others = torch.randn(2, SIZE, SIZE, device=DEVICE).to(getattr(torch, precision))
    return 2 * SIZE**3 * PRODUCTS / _shortest(lambda: [some @ others for _ in range(PRODUCTS)])


def copy_peak(size: int = 2**30) -> float:
    """Bytes a second that a copy reads and writes on the device, the best of `ROUNDS`."""
    some, others = torch.zeros(2, size, dtype=torch.uint8, device=DEVICE)
    return 2 * size / _shortest(lambda: others.copy_(some))


def now() -> float:
    if ON_GPU:
        torch.cuda.synchronize()
    return time.perf_counter()


def _shortest(call: Callable[[], object]) -> float:
    """Seconds of the quickest of several calls, after one that warms up."""
    call()
    seconds = []
    for _ in range(ROUNDS):
        start = now()
        call()
        seconds.append(now() - start)
    return min(seconds)
