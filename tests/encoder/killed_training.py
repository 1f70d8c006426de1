"""Train in processes that are killed with SIGKILL at chosen moments, and then run again; called by test_resume.

    python -m tests.encoder.killed_training ENCODER EXAMPLES FOLDER [CUTS [SETTINGS]]

One process imports the libraries and forks each training, so that many moments take little time. FOLDER/<moment>/ holds
what the training left that was killed there and run again; FOLDER/whole/ what one left that ran through. With CUTS, the
moments are so many batches drawn at random instead. SETTINGS are those of another training, as JSON. EXAMPLES is a
folder of training and validation examples, or several of them, joined as in PATH, for as many objectives.
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


def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def before(owner, name, *, call=1):
    """Make the n-th call of owner.name the process's last moment."""
    original, calls = getattr(owner, name), []

    def counted(*arguments, **keywords):
        calls.append(1)
        if len(calls) == call:
            die()
        return original(*arguments, **keywords)

    setattr(owner, name, counted)


def halfway_through_a_file(*, call):
    """Write half of the n-th file of weights and die."""
    original, calls = results.save_file, []

    def save(content, path, metadata):
        original(content, path, metadata)
        calls.append(1)
        if len(calls) == call:
            os.truncate(path, Path(path).stat().st_size // 2)
            die()

    results.save_file = save


def within_the_removal_of(name):
    """Remove one file of a folder whose name starts so, and die."""
    original = shutil.rmtree

    def rmtree(folder, *arguments, **keywords):
        files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        if Path(folder).name.startswith(name) and files:
            files[0].unlink()
            die()
        original(folder, *arguments, **keywords)

    shutil.rmtree = rmtree


def saving_after_each_step():
    trainer.SECONDS_BETWEEN_CHECKPOINTS = 0.0


def saving_after_each_step_until(*, batch):
    saving_after_each_step()
    before(Objective, "__call__", call=batch)


def sent_sigterm(*, batch):
    """Send the signal that Slurm sends, within the n-th batch."""
    original, calls = Objective.__call__, []

    def call(*arguments):
        calls.append(1)
        if len(calls) == batch:
            os.kill(os.getpid(), signal.SIGTERM)
        return original(*arguments)

    Objective.__call__ = call


def random_cuts(count):
    """Moments that are batches of the training drawn at random, half of them with a checkpoint after each step."""
    drawn = random.Random(count)
    ways = (saving_after_each_step_until, lambda *, batch: before(Objective, "__call__", call=batch))
    return {f"cut-{n}": partial(ways[n % 2], batch=drawn.randint(1, BATCHES)) for n in range(count)}


MOMENTS = {
    "first-batch": lambda: before(Objective, "__call__"),
    "before-the-first-step": lambda: before(trainer, "open_state"),
    "between-two-batches-of-a-step": lambda: before(Objective, "__call__", call=10),
    "sent-sigterm": lambda: sent_sigterm(batch=9),
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


def train(encoder, examples, folder):
    folders = [Path(part) for part in str(examples).split(os.pathsep)]
    sets = {name: [files_in(at / name) for at in folders] for name in ("training", "validation")}
    settings = json.loads(sys.argv[5]) if len(sys.argv) > 5 else SETTINGS
    trained(folder, trainer.Inputs(encoder=encoder, **sets), training_seed=2, **settings)


def fork(prepare, *arguments):
    """Run a training in a process of its own; return how it ended: its status, or minus the signal."""
    child = os.fork()
    if child == 0:
        prepare()
        try:
            train(*arguments)
        except Unfinished:
            os._exit(UNFINISHED_STATUS)
        sys.stdout.flush()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    encoder, examples, folder = map(Path, sys.argv[1:4])
    open_encoder(encoder)  # imports what each training would import for itself
    moments = random_cuts(int(sys.argv[4])) if len(sys.argv) > 4 else MOMENTS
    endings = {"whole": [fork(lambda: None, encoder, examples, folder / "whole")]}
    for moment, prepare in moments.items():
        arguments = (encoder, examples, folder / moment)
        endings[moment] = [fork(prepare, *arguments), fork(lambda: None, *arguments)]
    (folder / "endings.json").write_text(json.dumps(endings))
