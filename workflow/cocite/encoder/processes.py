"""One training in several processes of a machine: how they are started, who does what, and what all must agree on.

Torch's elastic launcher starts them. All other functions also work for one process alone, and then cost nothing.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, distributed

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
"""What asks a training to stop: SIGTERM, which Slurm sends before it ends a job, SIGUSR1, which it sends where --signal
asks for it, and Ctrl-C."""
UNFINISHED_STATUS = 75
"""The exit status of what is to be started again (EX_TEMPFAIL of sysexits.h)."""
SECONDS_TO_STOP = 120
"""Time that the processes have after a signal to end their step and to save; those that take longer are killed."""
SECONDS_BETWEEN_LOOKS = 0.5
LAUNCHER = "TORCHELASTIC_RUN_ID"
"""The environment variable in which the launcher gives `run_id`, its process id, to the processes that it starts."""


def start(processes: int, arguments: Sequence[str]) -> int:
    """Run `cocite` with these arguments in so many processes, and wait for them; return their exit status.

    A signal that asks to stop is passed on to all of them. Where one fails, the others are ended, and its status is
    returned.
    """
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=str(os.getpid()),
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        logs_specs=DefaultLogsSpecs(log_dir=os.devnull),
        signals_to_handle=",".join(number.name for number in SIGNALS),
        shutdown_timeout=SECONDS_TO_STOP,
    )
    try:
        elastic_launch(config, sys.executable)("-c", "from cocite.cli import main; main()", *arguments)
    except SignalException:
        return UNFINISHED_STATUS
    except ChildFailedError as error:
        _, failure = error.get_first_failure()
        return 128 - failure.exitcode if failure.exitcode < 0 else failure.exitcode
    return 0


def connect() -> None:
    """Let the processes find each other, where there are several.

    What they agree on between steps goes from CPU to CPU, so that none of them waits for a GPU.
    """
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if count() > 1:
        threading.Thread(target=_end_with, args=(int(os.environ[LAUNCHER]),), daemon=True).start()
        distributed.init_process_group("cuda:nccl,cpu:gloo" if torch.cuda.is_available() else "gloo")


def _end_with(launcher: int) -> None:
    """End this process once its launcher has ended, even by SIGKILL.

    Otherwise processes whose launcher was killed before they met would wait for half an hour, and processes that have
    met would train on with nobody to end the others when one fails.
    """
    while os.getppid() == launcher:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    os._exit(128 + signal.SIGKILL)


def count() -> int:
    """How many processes there are."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def number() -> int:
    """Which of them this is, from 0."""
    return int(os.environ.get("RANK", "0"))


def is_first() -> bool:
    """Whether this is the first process, which writes what is written once."""
    return number() == 0


def wait() -> None:
    """Wait until all processes have come here."""
    if count() > 1:
        distributed.barrier()


def any_of(mine: bool) -> bool:
    """Whether `mine` is true in any process."""
    return bool(largest(int(mine)))


def largest(mine: int) -> int:
    """The largest `mine` of all processes."""
    found = torch.tensor(mine)
    if count() > 1:
        distributed.all_reduce(found, distributed.ReduceOp.MAX)
    return int(found)


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
