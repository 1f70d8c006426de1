"""A training in one process of a machine or in several: how it is started, agrees, and stops before its last step.

Torch's elastic launcher starts several. If the time of its job is up, or upon a signal, a training saves its state and
ends with its own exit status, by which whoever started it knows to start it again.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import torch
import typer
from torch import Tensor, distributed

from cocite.config.models import TrainingSettings
from cocite.config.origins import read_origin
from cocite.config.settings import GivenAsJson
from cocite.core.gpus import take_gpus
from cocite.core.options import Output, PrecisionOption, Seed, State, Threads, WrittenSettings
from cocite.core.progress import report

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
"""Requests to stop: SIGTERM, which Slurm sends before it ends a job, SIGUSR1, which its --signal sends, and Ctrl-C."""
UNFINISHED_STATUS = 75
"""The exit status of a training to start again (EX_TEMPFAIL of sysexits.h)."""
SECONDS_TO_STOP = 120
"""Time that the processes have after a signal to end their step and to save, before they are killed."""
SECONDS_BETWEEN_LOOKS = 0.5
LAUNCHER = "TORCHELASTIC_RUN_ID"
"""The environment variable with `run_id`, the process id of the launcher."""
MARGIN, LARGEST_MARGIN = 0.1, 300.0


def train(
    sets: Annotated[
        Sequence[Path],
        typer.Argument(
            help="For each objective: the table training_examples to learn from, the folder of the tokens of its "
            "documents, the table validation_examples to validate on, and the folder of the tokens of its documents."
        ),
    ],
    encoder: Annotated[Path, typer.Option(help="Folder of the encoder to start from.")],
    settings: GivenAsJson[TrainingSettings],
    seed: Seed,
    training_seed: Annotated[int, typer.Option(help="Number of this training among its repetitions.")],
    threads: Threads,
    state: State,
    output: Output,
    curves: Annotated[Path, typer.Option(help="Table training_curves to write.")],
    written_settings: WrittenSettings,
    events: Annotated[Path, typer.Option(help="Folder of the curves in TensorBoard's format to write.")],
    time_limit: Annotated[
        float | None, typer.Option(help="Minutes until the job is ended; the training saves and stops before.")
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(help="What the model comes from, as JSON: that part of the configuration, for its card."),
    ] = None,
    manifest: Annotated[
        Path | None, typer.Option(help="What `cocite corpus list` wrote: the release, and whose it is, for the card.")
    ] = None,
    precision: PrecisionOption = "auto",
    processes: Annotated[
        int, typer.Option(help="Processes that share the training, each with a GPU of its own where there are any.")
    ] = 1,
    memory_mb: Annotated[
        int | None, typer.Option(help="Memory of the training, MB, by which auto chooses the size of mini-batches.")
    ] = None,
    teachers: Annotated[
        str, typer.Option(help="Table graph_embeddings of each graph embedding that teaches, by its name, as JSON.")
    ] = "{}",
) -> None:
    """Fine-tune an encoder on examples; a killed or stopped training goes on where it stood.

    It ends with status 75 where it has stopped before it was done: upon SIGTERM, SIGUSR1 or Ctrl-C, or for the time
    limit.
    """
    started = time.monotonic()
    if count() == 1:
        take_gpus(processes)
        if processes > 1:
            raise typer.Exit(start(processes, sys.argv[1:]))
    from cocite.encoder.examples import ExampleFiles
    from cocite.encoder.results import Outputs
    from cocite.encoder.trainer import Inputs, train_encoder

    files = [ExampleFiles(table=table, tokens=tokens) for table, tokens in zip(sets[::2], sets[1::2], strict=True)]
    tables = {name: Path(table) for name, table in json.loads(teachers).items()}
    about = read_origin(origin, manifest)
    try:
        train_encoder(
            Inputs(encoder=encoder, training=files[::2], validation=files[1::2], teachers=tables),
            Outputs(model=output, curves=curves, settings=written_settings, events=events, origin=about),
            settings,
            seed=seed,
            training_seed=training_seed,
            threads=threads,
            state=state,
            memory_mb=memory_mb,
            precision=precision,
            stopping=Stopping(seconds_left(time_limit), started),
        )
    except Unfinished as stopped:
        report(str(stopped))
        raise typer.Exit(UNFINISHED_STATUS) from None


def start(processes: int, arguments: Sequence[str]) -> int:
    """Run `cocite` with these arguments in several processes, and wait for them; return the status of one that failed.
    Signals are passed on to all. If one fails, the others are ended."""
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        nproc_per_node=processes,
        run_id=str(os.getpid()),
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
    """Let several processes find each other; what they agree on between steps does not wait for a GPU."""
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if count() == 1:
        return

    def end_with_launcher() -> None:
        # Otherwise processes would wait half an hour for each other, or train on with nobody to end them.
        while os.getppid() == int(os.environ[LAUNCHER]):
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os._exit(128 + signal.SIGKILL)

    threading.Thread(target=end_with_launcher, daemon=True).start()
    distributed.init_process_group("cuda:nccl,cpu:gloo" if torch.cuda.is_available() else "gloo")


def count() -> int:
    """Number of processes."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def number() -> int:
    """Number of this process, from 0."""
    return int(os.environ.get("RANK", "0"))


def is_first() -> bool:
    """Whether this is the process that writes files."""
    return number() == 0


def wait() -> None:
    """Wait for all processes."""
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


def add_up_gradients(weights: Sequence[Tensor]) -> None:
    """Replace the gradient of each weight by its sum over the processes; one that a process lacks counts as 0."""
    if count() == 1:
        return
    is_used = torch.tensor([weight.grad is not None for weight in weights], dtype=torch.uint8)
    distributed.all_reduce(is_used, distributed.ReduceOp.MAX)
    for weight, is_used_by_any in zip(weights, is_used.tolist(), strict=True):
        if is_used_by_any and weight.grad is None:
            weight.grad = torch.zeros_like(weight)
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    distributed.all_reduce(flat)
    for gradient, total in zip(gradients, flat.split([each.numel() for each in gradients]), strict=True):
        gradient.copy_(total.view_as(gradient))


def gathered(mine: Tensor, shares: Sequence[int]) -> Tensor:
    """The rows of all processes, one process after the other, of each as many as its share. Gradients reach the rows of
    this process: if all compute the same loss, their gradients add up to that of the whole."""
    return mine if count() == 1 else _Gathered.apply(mine, tuple(shares))


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


def seconds_left(minutes: float | None) -> float | None:
    """The seconds that a job has: `minutes`, or the time until Slurm ends it, if that is less."""
    limits = [] if minutes is None else [60 * minutes]
    if "SLURM_JOB_END_TIME" in os.environ:
        limits.append(float(os.environ["SLURM_JOB_END_TIME"]) - time.time())
    return min(limits, default=None)


class Unfinished(Exception):  # noqa: N818 - not an error: the training is saved, and goes on when it is started again
    """A training has stopped before it was done; the message says where."""


class Stopping:
    """When to stop: `seconds` after `started` (of `time.monotonic`) less a margin, or upon a signal. The margin is a
    tenth of the time, at most five minutes, plus the longest pause between two steps so far."""

    def __init__(self, seconds: float | None = None, started: float | None = None) -> None:
        started = time.monotonic() if started is None else started
        self.deadline = None if seconds is None else started + seconds - min(LARGEST_MARGIN, MARGIN * seconds)
        self.longest_pause = 0.0
        self.asked_at = time.monotonic()
        self.signal: signal.Signals | None = None

    def reason(self) -> str | None:
        """Why to stop now, the same for all processes; None to go on. It is called after each step."""
        now = time.monotonic()
        self.longest_pause = max(self.longest_pause, now - self.asked_at)
        self.asked_at = now
        late = self.deadline is not None and now + self.longest_pause > self.deadline
        return self.asked() or ("the time of its job is nearly up" if any_of(late) else None)

    def asked(self) -> str | None:
        """Which signal has asked to stop, the same for all processes, which call it together; None for none."""
        if not any_of(self.signal is not None):
            return None
        return "it was asked to" if self.signal is None else f"it was sent {self.signal.name}"

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take signals as requests to stop in the block; a second Ctrl-C interrupts at once."""
        before = {number: signal.signal(number, self._asked) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self.signal is not None:
            raise KeyboardInterrupt
        self.signal = signal.Signals(number)
