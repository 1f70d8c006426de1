"""What a training runs on: GPUs where there are any, else the CPU; in which precision, and in how much memory."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numba
import torch

from cocite.core.errors import InputError
from cocite.core.gpus import take_gpus
from cocite.core.progress import report
from cocite.embeddings.engines.torch import Torch
from cocite.embeddings.engines.torch.planning import overhead_mb, partitions_within, vectors_mb

BYTES_ON_GPU = 40
"""Of a number of a vector of a batch, with all that a step makes of it."""
SHARE_OF_GPU = 0.9
"""Of what is free on a GPU, for the vectors."""


def available_devices(settings: Torch) -> list[torch.device]:
    """The GPUs that the settings ask for, as far as there are any, or the CPU."""
    take_gpus(settings.gpus)
    gpus = min(settings.gpus, torch.cuda.device_count())
    return [torch.device("cuda", number) for number in range(gpus)] or [torch.device("cpu")]


def plan_partitions(settings: Torch, papers: int, devices: Sequence[torch.device]) -> int:
    """The fewest partitions that the memory of the devices, or `memory_mb`, allows."""
    bound, overhead = settings.memory_mb, overhead_mb(papers, settings.values_of_batch)
    if devices[0].type == "cuda":
        free = min(torch.cuda.mem_get_info(device)[0] for device in devices)
        bound = min(bound or sys.maxsize, int(free / 1e6 * SHARE_OF_GPU))
        overhead = settings.values_of_batch * BYTES_ON_GPU / 1e6
    vectors = vectors_mb(papers, settings.dimension, settings.bytes_of_number)
    partitions = partitions_within(bound, vectors, overhead=overhead, papers=papers, devices=len(devices))
    report(f"{papers:,} papers in {partitions} {'partition' if partitions == 1 else 'partitions'}")
    return partitions


@contextmanager
def use_threads(threads: int) -> Iterator[None]:
    """Have torch and compiled code use so many cores, as far as there are as many."""
    before = torch.get_num_threads(), numba.get_num_threads()
    torch.set_num_threads(threads)
    numba.set_num_threads(min(threads, numba.get_num_threads()))
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        numba.set_num_threads(before[1])


@contextmanager
def explain_full_memory() -> Iterator[None]:
    """Raise `InputError` where a device has no memory left, with the settings that help."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise InputError(
            f"the device is out of memory ({str(error).splitlines()[0]}); lower memory_mb, so that the papers are "
            "trained in more partitions, or batch_size."
        ) from None
