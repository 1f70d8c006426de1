"""Two processes that share a training, without a GPU."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from safetensors.numpy import load_file
from tests.examples import curve_in, written_pairs

from cocite.encoder.results import CHECKPOINT, EVENTS

SETTINGS = {"epochs": 2, "lr": 0.001, "warmup": 0.0, "validations": 2, "batch_size": 8}
LONG = {"epochs": 60, "lr": 0.001, "validations": 3, "batch_size": 4}
"""22 triplets in batches of 4 are 6 steps an epoch, 360 in all."""


@pytest.fixture
def start(command_line):
    """A function that starts the command with so many processes."""

    def started(folder, processes, **how):
        command = [Path(sys.executable).with_name("cocite"), *command_line(folder, **how), "--processes"]
        return subprocess.Popen([*command, str(processes)])

    return started


def test_two_processes_in_bounded_memory_learn_what_one_learns(start, encoder, tmp_path):
    assert start(tmp_path / "two", 2, **SETTINGS, mini_batch_tokens=40).wait() == 0
    assert start(tmp_path / "one", 1, **SETTINGS).wait() == 0
    folders = [encoder, tmp_path / "one/model", tmp_path / "two/model"]
    before, whole, learned = (load_file(folder / "model.safetensors") for folder in folders)
    for name, weights in whole.items():
        # Adam makes whole steps of gradients that are rounding alone, as those of biases that change no difference of
        # two vectors; so biases are left out, and weights must have moved together as a whole.
        if name.endswith("weight"):
            moved, apart = np.linalg.norm(weights - before[name]), np.linalg.norm(learned[name] - weights)
            assert apart <= 0.02 * moved, name
    for name in ("training_loss", "validation_loss", "validation_accuracy"):
        one, two = (list(curve_in(tmp_path / folder, name).values()) for folder in ("one", "two"))
        assert two == pytest.approx(one, rel=1e-3)


OBJECTIVES = [{"triplets": name, "loss": "mnrl"} for name in ("topics", "crops")]
MASKED = [{"loss": "triplet"}, {"loss": {"kind": "mlm", "share": 0.3}, "weight": 0.5}]


@pytest.mark.long
@pytest.mark.parametrize(
    ("sets", "settings", "curves"),
    [
        ("inputs", {"projection": 8}, ["validation_loss"]),
        ("several", {"objectives": OBJECTIVES}, ["training_loss", "validation_loss", "validation_loss of crops"]),
        ("inputs", {"objectives": MASKED}, ["training_loss", "validation_loss", "validation_loss of mlm"]),
    ],
    ids=["a projection", "several objectives", "masks"],
)
def test_two_processes_have_the_curves_of_one(start, tmp_path, request, sets, settings, curves):
    inputs = request.getfixturevalue(sets)
    for number, folder in enumerate(("one", "two"), 1):
        assert start(tmp_path / folder, number, inputs=inputs, **SETTINGS, **settings).wait() == 0
    for name in curves:
        one, two = (list(curve_in(tmp_path / folder, name).values()) for folder in ("one", "two"))
        assert two == pytest.approx(one, rel=1e-3)


def test_a_last_batch_of_fewer_documents_than_processes_has_the_curves_of_one(start, inputs, tmp_path):
    """The last of four batches is a pair, whose two documents the third process has none of."""
    pairs = [written_pairs(tmp_path / "pairs", inputs.training[0], inputs.encoder)]
    how = {"objectives": [{"loss": "mnrl"}, {"loss": {"kind": "mlm", "share": 0.3}}], "batch_size": 7}
    for number, folder in ((1, "one"), (3, "three")):
        training = start(tmp_path / folder, number, inputs=replace(inputs, training=pairs), **SETTINGS | how)
        assert training.wait() == 0
    for name in ("training_loss", "validation_loss", "validation_loss of mlm"):
        one, three = (list(curve_in(tmp_path / folder, name).values()) for folder in ("one", "three"))
        assert three == pytest.approx(one, rel=1e-3)


def wait_for_steps(training, state, since):
    """Wait until a training that was started at this time takes steps, having written its curves so far."""
    while not any(path.stat().st_mtime >= since for path in (state / EVENTS).glob("events*")):
        assert training.poll() is None
        time.sleep(0.02)


def ranks_of(training):
    """The processes that the command has started."""
    return list(map(int, Path(f"/proc/{training.pid}/task/{training.pid}/children").read_text().split()))


@pytest.mark.long
def test_processes_whose_launcher_is_killed_before_they_meet_end_too(start, tmp_path):
    training = start(tmp_path, 2, **SETTINGS)
    while len(ranks := ranks_of(training)) < 2:
        assert training.poll() is None
        time.sleep(0.02)
    processes = [psutil.Process(rank) for rank in ranks]
    training.kill()
    training.wait()
    _, alive = psutil.wait_procs(processes, timeout=300)
    for process in alive:
        process.kill()
    assert not alive


@pytest.mark.long
@pytest.mark.parametrize(
    "signals",
    [(signal.SIGTERM, signal.SIGKILL), (signal.SIGUSR1, signal.SIGINT, signal.SIGTERM, signal.SIGKILL)],
)
def test_a_signal_stops_both_processes_and_after_it_and_a_kill_they_end_with_the_weights_of_a_whole_training(
    start, with_dropout, tmp_path, signals
):
    assert start(tmp_path / "whole", 2, encoder=with_dropout, **LONG).wait() == 0
    state = tmp_path / "stopped/state"
    for number in signals:
        since = time.time()
        training = start(tmp_path / "stopped", 2, encoder=with_dropout, **LONG)
        wait_for_steps(training, state, since)
        ranks = ranks_of(training)
        assert len(ranks) == 2
        os.kill(ranks[1] if number == signal.SIGKILL else training.pid, number)
        assert training.wait() == (128 + number if number == signal.SIGKILL else 75)
        assert not [rank for rank in ranks if Path(f"/proc/{rank}").exists()]
        assert (state / CHECKPOINT).exists()
    assert start(tmp_path / "stopped", 2, encoder=with_dropout, **LONG).wait() == 0
    for file in ("model/model.safetensors", "curves.parquet"):
        assert (tmp_path / "stopped" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
    assert not state.exists()
