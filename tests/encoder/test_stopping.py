"""A training that stops by itself saves, says so, and ends as one that was never stopped."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cocite.cli import app
from cocite.encoder import stopping, training
from cocite.encoder.settings import TrainingSettings
from cocite.encoder.stopping import Stopping, Unfinished, seconds_left
from cocite.encoder.training import Inputs, train_encoder


class StopAfter(Stopping):
    """Says to stop after so many steps of a process."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.left = steps

    def reason(self) -> str | None:
        self.left -= 1
        return None if self.left else "a test"


@pytest.fixture
def train(encoder, triplets, outputs_in):
    inputs = Inputs(encoder=encoder, training=triplets / "training.parquet", validation=triplets / "validation.parquet")

    def run(folder: Path, stopping: Stopping | None = None, **settings) -> None:
        given = TrainingSettings(**{"epochs": 2, "batch_size": 4, "lr": 3e-3, "loss": "supcon", **settings})
        where = {"state": folder / "state", "stopping": stopping}
        train_encoder(inputs, outputs_in(folder), given, seed=1, training_seed=1, threads=1, **where)

    return run


def stopped_again_and_again(train, folder, steps, **settings):
    """Start a training until it is done; return what it said when it stopped."""
    said = []
    while True:
        try:
            train(folder, StopAfter(steps), **settings)
        except Unfinished as error:
            said.append(str(error))
        else:
            return said


def test_a_training_that_stops_every_five_steps_ends_with_the_weights_and_curves_of_a_whole_one(train, tmp_path):
    train(tmp_path / "whole")
    said = stopped_again_and_again(train, tmp_path / "stopped", steps=5)
    # 22 triplets in batches of 4 are 6 steps an epoch, 12 in two: stops after 5 and 10.
    assert [line.split(":")[0] for line in said] == ["Stopped after step 5 of 12", "Stopped after step 10 of 12"]
    for file in ("model/model.safetensors", "curves.parquet", "model/README.md"):
        assert (tmp_path / "stopped" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_logs_further_apart_than_the_stops_lose_no_loss(train, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "LOGS", 3)  # 12 steps: a log every 4
    train(tmp_path / "whole", evaluations=1)
    assert len(stopped_again_and_again(train, tmp_path / "stopped", steps=3, evaluations=1)) == 3
    assert (tmp_path / "stopped/curves.parquet").read_bytes() == (tmp_path / "whole/curves.parquet").read_bytes()


def test_there_is_a_reason_to_stop_when_the_time_less_a_tenth_is_up(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(stopping.time, "monotonic", lambda: now[0])
    clock = Stopping(100.0, started=1000.0)
    now[0] = 1001.0  # a pause of one second between steps
    assert clock.reason() is None
    for second in range(1002, 1089):
        now[0] = float(second)
        assert clock.reason() is None
    now[0] = 1089.5
    assert clock.reason() == "the time of its job is nearly up"


def test_a_long_pause_such_as_a_validation_must_fit_into_what_is_left(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(stopping.time, "monotonic", lambda: now[0])
    clock = Stopping(100.0, started=0.0)
    now[0] = 30.0
    assert clock.reason() is None
    now[0] = 61.0  # a second pause of 31 s would end at 92, after the 90 that there are
    assert clock.reason() == "the time of its job is nearly up"


def test_a_day_leaves_five_minutes():
    assert Stopping(86_400.0, started=0.0).deadline == 86_400.0 - 300.0


def test_slurm_may_end_a_job_sooner_than_the_rule_says(monkeypatch):
    monkeypatch.delenv("SLURM_JOB_END_TIME", raising=False)
    assert seconds_left(None) is None
    assert seconds_left(2) == 120.0
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(time.time()) + 60))
    assert seconds_left(2) == pytest.approx(60, abs=3)
    assert seconds_left(0.5) == 30.0


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_is_a_reason_to_stop_while_a_training_listens(sent):
    before = signal.getsignal(sent)
    listening = Stopping()
    with listening.listening():
        assert listening.reason() is None
        os.kill(os.getpid(), sent)
        assert listening.reason() == f"it was sent {sent.name}"
    assert signal.getsignal(sent) == before


OPTIONS = [
    "--encoder",
    "e",
    "--training",
    "t",
    "--validation",
    "v",
    "--settings",
    "{}",
    "--seed",
    "1",
    "--threads",
    "1",
]
OPTIONS += ["--training-seed", "1", "--state", "s", "--output", "o", "--curves", "c", "--written-settings", "w"]


def test_the_command_ends_with_a_status_of_its_own(monkeypatch):
    def stop(*_, **__):
        raise Unfinished("Stopped after step 3 of 9.")

    monkeypatch.setattr("cocite.encoder.environment.work_offline", lambda *_: None)
    monkeypatch.setattr(training, "train_encoder", stop)
    result = CliRunner().invoke(app, ["encoder", "train", *OPTIONS, "--events", "b", "--time-limit", "60"])
    assert result.exit_code == 75


SIX_STEPS = '{"lr": 0.001, "batch_size": 4}'


@pytest.mark.long
def test_a_limit_that_stops_five_times_ends_with_the_weights_of_no_limit(encoder, triplets, tmp_path):
    def command(folder: Path, *more: str) -> int:
        written = {"--output": "model", "--curves": "curves.parquet", "--written-settings": "settings.json"}
        written |= {"--state": "state", "--events": "tensorboard"}
        given = {"--encoder": encoder, "--training": triplets / "training.parquet", "--seed": 1, "--threads": 1}
        given |= {"--validation": triplets / "validation.parquet", "--training-seed": 1, "--settings": SIX_STEPS}
        options = {**given, **{option: folder / name for option, name in written.items()}}
        words = [str(word) for option in options.items() for word in option]
        program = [str(Path(sys.executable).with_name("cocite")), "encoder", "train", *words, *more]
        return subprocess.run(program, check=False).returncode

    assert command(tmp_path / "whole") == 0
    statuses = []
    while not statuses or statuses[-1] == 75:
        statuses.append(command(tmp_path / "limited", "--time-limit", "0.001"))
    assert statuses == [75] * 5 + [0]
    weights = [(tmp_path / name / "model/model.safetensors").read_bytes() for name in ("whole", "limited")]
    assert weights[0] == weights[1]
