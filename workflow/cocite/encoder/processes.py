"""One training in several processes, as torchrun starts them: who does what, and what all must agree on.

Each function also works for one process alone, and then costs nothing.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, distributed


def connect() -> None:
    """Let the processes find each other, where there are several.

    What they agree on between steps goes from CPU to CPU, so that none of them waits for a GPU.
    """
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if count() > 1:
        distributed.init_process_group("cuda:nccl,cpu:gloo" if torch.cuda.is_available() else "gloo")


def count() -> int:
    """How many processes there are."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def number() -> int:
    """Which of them this is, from 0."""
    return int(os.environ.get("RANK", "0"))


def is_first() -> bool:
    """Whether this is the first process, which writes what is written once."""
    return number() == 0


@contextmanager
def first_goes_first() -> Iterator[None]:
    """Let the first process through before the others, which then find what it has made."""
    if not is_first():
        distributed.barrier()
    yield
    if is_first() and count() > 1:
        distributed.barrier()


def any_of(mine: bool) -> bool:
    """Whether `mine` is true in any process."""
    found = torch.tensor(float(mine))
    if count() > 1:
        distributed.all_reduce(found, distributed.ReduceOp.MAX)
    return bool(found)


def add_up(tensors: Sequence[Tensor]) -> None:
    """Replace each tensor by its sum over the processes."""
    if count() == 1 or not tensors:
        return
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    distributed.all_reduce(flat)
    for tensor, total in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(total.view_as(tensor))


def gathered(mine: Tensor, shares: Sequence[int]) -> Tensor:
    """The rows of all processes, one process after the other; `shares` says how many rows each has.

    Gradients reach the rows of this process. Where all processes compute the same loss, their gradients of a weight
    add up to that of the whole.
    """
    if count() == 1:
        return mine
    whole: Tensor = _Gathered.apply(mine, tuple(shares))
    return whole


def shared_out(rows: int, compute: Callable[[NDArray[np.int64]], NDArray[np.float32]]) -> NDArray[np.float32]:
    """What `compute` gives for rows 0, 1, …; each process computes every n-th row, from its own number on."""
    mine = compute(np.arange(number(), rows, count()))
    if count() == 1:
        return mine
    shares = [len(range(process, rows, count())) for process in range(count())]
    parts = gathered(torch.from_numpy(mine), shares).numpy()
    whole = np.empty_like(parts)
    whole[np.argsort(np.arange(rows) % count(), kind="stable")] = parts
    return whole


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, mine: Tensor, shares: tuple[int, ...]) -> Tensor:
        before = sum(shares[: number()])
        context.mine = slice(before, before + shares[number()])
        room = mine.new_zeros(max(shares), mine.shape[1])
        room[: len(mine)] = mine
        parts = [torch.empty_like(room) for _ in shares]
        distributed.all_gather(parts, room)
        return torch.cat([part[:share] for part, share in zip(parts, shares, strict=True)])

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient[context.mine], None
