"""Train in processes that are killed with SIGKILL at chosen moments, and then run again; called by test_resume.

    python -m tests.encoder.killed_training ENCODER EXAMPLES FOLDER CUTS SETTINGS

One process imports the libraries and forks each training, so that many moments take little time. FOLDER/<moment>/ holds
what the training left that was killed there and run again; FOLDER/whole/ what one left that ran through. With CUTS that
are not 0, the moments are so many batches drawn at random. SETTINGS is JSON, and where it is empty, those below hold.
EXAMPLES is a folder of training and validation examples, or several of them, joined as in PATH, for as many objectives.
"""

import json
import os
import random
import shutil
import signal
import sys
from functools import partial
from pathlib import Path

from tests.encoder.building import trained
from tests.examples import files_in
from torch.utils.tensorboard import SummaryWriter  # noqa: F401 (imported once for all trainings)

from cocite.encoder import results, trainer
from cocite.encoder.model import open_encoder
from cocite.encoder.objective import Objective
from cocite.encoder.processes import UNFINISHED_STATUS, Unfinished

SETTINGS = {"loss": "infonce", "epochs": 3, "accumulation": 2, "lr": 1e-3, "warmup": 0.2, "validations": 4}
BATCHES = 18
"""22 triplets in batches of 4 are 6 batches an epoch."""


def send(number):
    os.kill(os.getpid(), number)


def before(owner, name, *, call=1, act=lambda *_, **__: send(signal.SIGKILL)):
    """Die, or do something else with its arguments, before the n-th call of owner.name."""
    original, calls = getattr(owner, name), []

    def counted(*arguments, **keywords):
        calls.append(1)
        if len(calls) == call:
            act(*arguments, **keywords)
        return original(*arguments, **keywords)

    setattr(owner, name, counted)


def halfway_through_a_file(*, call):
    """Write half of the n-th file of weights and die."""
    save = results.save_file

    def save_half(content, path, metadata):
        save(content, path, metadata)
        os.truncate(path, Path(path).stat().st_size // 2)
        send(signal.SIGKILL)

    before(results, "save_file", call=call, act=save_half)


def within_the_removal_of(name):
    """Remove one file of a folder whose name starts so, and die."""
    original = shutil.rmtree

    def rmtree(folder, *arguments, **keywords):
        files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        if Path(folder).name.startswith(name) and files:
            files[0].unlink()
            send(signal.SIGKILL)
        original(folder, *arguments, **keywords)

    shutil.rmtree = rmtree


def saving_after_each_step_until(*, batch):
    trainer.SECONDS_BETWEEN_CHECKPOINTS = 0.0
    before(Objective, "__call__", call=batch)


def random_cuts(count):
    """Moments that are batches of the training drawn at random, half of them with a checkpoint after each step."""
    drawn = random.Random(count)
    ways = (saving_after_each_step_until, lambda *, batch: before(Objective, "__call__", call=batch))
    return {f"cut-{n}": partial(ways[n % 2], batch=drawn.randint(1, BATCHES)) for n in range(count)}


MOMENTS = {
    "first-batch": lambda: before(Objective, "__call__"),
    "before-the-first-step": lambda: before(trainer, "open_state"),
    "between-two-batches-of-a-step": lambda: before(Objective, "__call__", call=10),
    "sent-sigterm": lambda: before(Objective, "__call__", call=9, act=lambda *_: send(signal.SIGTERM)),
    "between-checkpoints-by-the-clock": lambda: saving_after_each_step_until(batch=11),
    "at-an-epoch's-end": lambda: saving_after_each_step_until(batch=7),
    "while-validating": lambda: before(trainer, "measure", call=3),
    "while-saving-a-checkpoint": lambda: halfway_through_a_file(call=6),
    "before-a-checkpoint-is-in-place": lambda: before(Path, "replace", call=9),
    "while-the-best-weights-are-written": lambda: before(trainer, "save_weights", call=3),
    "before-the-results": lambda: before(trainer, "write_results"),
    "before-the-state-is-removed": lambda: before(trainer, "remove_state"),
    "while-the-state-is-removed": lambda: within_the_removal_of("state"),
}


def fork(prepare, folder):
    """Run a training in a process of its own; return how it ended: its status, or minus the signal."""
    child = os.fork()
    if child == 0:
        prepare()
        try:
            trained(folder, trainer.Inputs(encoder=encoder, **sets), training_seed=2, **settings)
        except Unfinished:
            os._exit(UNFINISHED_STATUS)
        sys.stdout.flush()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    encoder, folder, cuts = Path(sys.argv[1]), Path(sys.argv[3]), int(sys.argv[4])
    folders = [Path(part) for part in sys.argv[2].split(os.pathsep)]
    sets = {name: [files_in(at / name) for at in folders] for name in ("training", "validation")}
    settings = json.loads(sys.argv[5]) or SETTINGS
    open_encoder(encoder)  # imports what each training would import for itself
    endings = {"whole": [fork(lambda: None, folder / "whole")]}
    for moment, prepare in (random_cuts(cuts) if cuts else MOMENTS).items():
        endings[moment] = [fork(prepare, folder / moment), fork(lambda: None, folder / moment)]
    (folder / "endings.json").write_text(json.dumps(endings))
