"""A training that is killed at any moment, or stops by itself, and is run again ends as if nothing had happened."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest
from tests.encoder.building import (
    CURVES,
    WEIGHTS,
    AfterSteps,
    assert_all_alike,
    assert_same_files,
    cut_at_random,
    run_killed,
    trained,
)
from tests.spoiling import SPOILS
from typer.testing import CliRunner

from cocite.cli import app
from cocite.core.atomic import read_json, remove_marks
from cocite.core.tables.files import read_table
from cocite.encoder import card, measuring, processes, schedule, trainer
from cocite.encoder.model import TOKENS_IN_BATCH
from cocite.encoder.processes import Stopping, Unfinished, seconds_left
from cocite.encoder.results import BEST, CHECKPOINT


@pytest.fixture(scope="module")
def killed(with_dropout, examples, tmp_path_factory):
    """Folder of trainings that were killed and run again, and how their processes ended."""
    folder = tmp_path_factory.mktemp("killed")
    run_killed(with_dropout, examples, folder)
    return folder


def test_every_training_was_killed_or_stopped_and_then_ran_through(killed):
    endings = read_json(killed / "endings.json")
    assert endings.pop("whole") == [0]
    assert endings.pop("sent-sigterm") == [75, 0]
    assert len(endings) == 12
    assert {moment: ends for moment, ends in endings.items() if ends != [-signal.SIGKILL, 0]} == {}


def test_weights_and_curves_are_bit_identical_wherever_it_was_killed(killed):
    assert_all_alike(killed)
    assert [path for path in killed.rglob("*") if path.name == "state"] == []


@pytest.mark.long
def test_weights_and_curves_are_bit_identical_after_twenty_random_cuts(with_dropout, inputs, tmp_path):
    cut_at_random(tmp_path, replace(inputs, encoder=with_dropout), 20)


@pytest.mark.long
def test_maps_of_aspects_are_bit_identical_after_twenty_random_cuts(aspects, with_dropout, tmp_path):
    terms = [{"loss": "supcon", "space": space, "weight": 0.5} for space in ("aspects", "encoder")]
    more = "model/aspects/background/2_Dense/model.safetensors"
    with_drawing = replace(aspects, encoder=with_dropout)
    cut_at_random(tmp_path, with_drawing, 20, more, objectives=terms, accumulation=2)


@pytest.mark.long
@pytest.mark.parametrize(("mixing", "cuts"), [("in-batch", 2), pytest.param("alternating", 20, marks=pytest.mark.long)])
def test_several_objectives_are_bit_identical_after_kills(mixing, cuts, several, with_dropout, tmp_path):
    objectives = [{"triplets": name, "loss": "mnrl"} for name in ("topics", "crops")]
    with_drawing = replace(several, encoder=with_dropout)
    cut_at_random(tmp_path, with_drawing, cuts, objectives=objectives, mixing=mixing)


def test_the_curves_have_every_step_and_validation_once(killed):
    curves = read_table(killed / "whole" / "curves.parquet", "training_curves").to_pylist()
    steps = {
        metric: [row["step"] for row in curves if row["metric"] == metric]
        for metric in ("training_loss", "validation_loss")
    }
    # 22 triplets in batches of 4 are 6 batches, 3 steps an epoch, 9 in all; quarters of 9 rounded up.
    assert steps == {"training_loss": list(range(1, 10)), "validation_loss": [3, 5, 7, 9]}


def test_a_resumed_training_keeps_the_size_of_its_mini_batches(inputs, tmp_path, monkeypatch):
    chosen = []

    def choose(memory_mb, *_, **__):
        chosen.append(memory_mb)
        return (40, 800) if memory_mb == 800 else (None, 800)

    monkeypatch.setattr(trainer, "mini_batch_tokens", choose)
    whole = trained(tmp_path / "whole", inputs, loss="mnrl", memory_mb=800)
    with pytest.raises(Unfinished):
        trained(tmp_path / "stopped", inputs, AfterSteps(2), loss="mnrl", memory_mb=800)
    resumed = trained(tmp_path / "stopped", inputs, loss="mnrl", memory_mb=900)
    assert_same_files(resumed, whole, (WEIGHTS, CURVES, "settings.json"))
    assert read_json(whole / "settings.json")["settings"]["mini_batch_tokens"] == 40
    with pytest.raises(Unfinished):
        trained(tmp_path / "other", inputs, AfterSteps(2), loss="mnrl", memory_mb=800)
    trained(tmp_path / "other", inputs, loss="mnrl", memory_mb=900, batch_size=8)
    assert read_json(tmp_path / "other/settings.json")["settings"]["mini_batch_tokens"] == "all"
    assert chosen == [800, 800, 800, 900]


def test_dropout_was_at_work(killed, inputs, tmp_path):
    settings = {"loss": "infonce", "epochs": 3, "accumulation": 2, "lr": 1e-3, "warmup": 0.2, "validations": 4}
    trained(tmp_path, inputs, training_seed=2, **settings)
    assert (tmp_path / "curves.parquet").read_bytes() != (killed / "whole" / "curves.parquet").read_bytes()


@pytest.fixture
def stopped(inputs, tmp_path, monkeypatch):
    """A function that trains and, unless `stop` is false, stops where the third validation would be."""

    def run(lr: float, *, stop: bool) -> str:
        measured, measure = [], trainer.measure

        def counted(*arguments, **keywords):
            measured.append(1)
            if stop and len(measured) == 3:
                raise KeyboardInterrupt
            return measure(*arguments, **keywords)

        with monkeypatch.context() as patch:
            patch.setattr(trainer, "measure", counted)
            trained(tmp_path, inputs, epochs=2, lr=lr)
        return (tmp_path / "curves.parquet").read_bytes()

    return run


def test_other_settings_start_afresh(stopped, capfd):
    expected = stopped(1e-3, stop=False)
    with pytest.raises(KeyboardInterrupt):
        stopped(5e-3, stop=True)
    capfd.readouterr()
    assert stopped(1e-3, stop=False) == expected
    assert "Going on" not in capfd.readouterr().err


def test_the_same_settings_go_on(stopped, capfd):
    with pytest.raises(KeyboardInterrupt):
        stopped(1e-3, stop=True)
    capfd.readouterr()
    stopped(1e-3, stop=False)
    assert "Going on after step 6 of 12." in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        *((CHECKPOINT, spoil) for spoil in ("changed", "cut", "mark gone")),
        *((BEST, spoil) for spoil in ("changed", "gone", "gone with its mark")),
        ("fingerprint.json", "cut"),
    ],
)
def test_a_spoilt_checkpoint_is_named_and_the_training_starts_afresh(stopped, tmp_path, capfd, name, spoil):
    expected = stopped(1e-3, stop=False), (tmp_path / "model/model.safetensors").read_bytes()
    with pytest.raises(KeyboardInterrupt):
        stopped(1e-3, stop=True)
    path = tmp_path / "state" / name
    if spoil in SPOILS:
        SPOILS[spoil](path)
    else:
        remove_marks(path)
        if spoil == "gone with its mark":
            path.unlink()
    capfd.readouterr()
    assert (stopped(1e-3, stop=False), (tmp_path / "model/model.safetensors").read_bytes()) == expected
    said = capfd.readouterr().err
    assert f"{path}: " in said
    assert "Going on" not in said


def test_a_checkpoint_of_another_version_of_a_library_is_not_gone_on_from(stopped, capfd, monkeypatch):
    expected = stopped(1e-3, stop=False)
    with monkeypatch.context() as patch:
        patch.setattr(trainer, "library_versions", lambda: {**card.library_versions(), "torch": "2.0.0"})
        with pytest.raises(KeyboardInterrupt):
            stopped(1e-3, stop=True)
    capfd.readouterr()
    assert stopped(1e-3, stop=False) == expected
    said = capfd.readouterr().err
    assert "versions changed since the training that was killed; starting afresh" in said
    assert "Going on" not in said


@pytest.mark.parametrize("library", ["torch", "transformers", "tokenizers", "numpy"])
def test_the_versions_that_a_training_depends_on_are_those_installed(library):
    assert card.library_versions()[library] == metadata.version(library)


@pytest.fixture
def train(inputs):
    return lambda folder, stopping=None, **settings: trained(
        folder, inputs, stopping, **{"epochs": 2, "loss": "supcon", **settings}
    )


def stopped_again_and_again(train, folder, steps, **settings):
    """Start a training until it is done; return what it said when it stopped."""
    said = []
    while True:
        try:
            train(folder, AfterSteps(steps), **settings)
        except Unfinished as error:
            said.append(str(error))
        else:
            return said


def test_a_training_that_stops_every_five_steps_ends_with_the_weights_and_curves_of_a_whole_one(train, tmp_path):
    train(tmp_path / "whole")
    said = stopped_again_and_again(train, tmp_path / "stopped", steps=5)
    # 22 triplets in batches of 4 are 6 steps an epoch, 12 in two: stops after 5 and 10.
    assert [line.split(":")[0] for line in said] == ["Stopped after step 5 of 12", "Stopped after step 10 of 12"]
    assert_same_files(tmp_path / "stopped", tmp_path / "whole", (WEIGHTS, CURVES, "model/README.md"))


def test_logs_further_apart_than_the_stops_lose_no_loss(train, tmp_path, monkeypatch):
    monkeypatch.setattr(schedule, "LOGS", 3)  # 12 steps: a log every 4
    train(tmp_path / "whole", validations=1)
    assert len(stopped_again_and_again(train, tmp_path / "stopped", steps=3, validations=1)) == 3
    assert_same_files(tmp_path / "stopped", tmp_path / "whole", [CURVES])


@pytest.fixture
def now(monkeypatch):
    """The time on the clock, which a test sets."""
    time_now = [0.0]
    monkeypatch.setattr(processes.time, "monotonic", lambda: time_now[0])
    return time_now


def test_there_is_a_reason_to_stop_when_the_time_less_a_tenth_is_up(now):
    clock = Stopping(100.0, started=0.0)
    for second in range(1, 89):  # pauses of one second between steps
        now[0] = float(second)
        assert clock.reason() is None
    now[0] = 89.5
    assert clock.reason() == "the time of its job is nearly up"


def test_a_long_pause_such_as_a_validation_must_fit_into_what_is_left(now):
    clock = Stopping(100.0, started=0.0)
    now[0] = 30.0
    assert clock.reason() is None
    now[0] = 61.0  # a second pause of 31 s would end at 92, after the 90 that there are
    assert clock.reason() == "the time of its job is nearly up"
    assert Stopping(86_400.0, started=0.0).deadline == 86_400.0 - 300.0


def test_slurm_may_end_a_job_sooner_than_the_rule_says(monkeypatch):
    monkeypatch.delenv("SLURM_JOB_END_TIME", raising=False)
    assert seconds_left(None) is None
    assert seconds_left(2) == 120.0
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(time.time()) + 60))
    assert seconds_left(2) == pytest.approx(60, abs=3)
    assert seconds_left(0.5) == 30.0


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_is_a_reason_to_stop_while_a_training_listens(sent):
    before = signal.getsignal(sent)
    listening = Stopping()
    with listening.listening():
        assert listening.reason() is None
        os.kill(os.getpid(), sent)
        assert listening.reason() == f"it was sent {sent.name}"
    assert signal.getsignal(sent) == before


def test_a_signal_ends_a_validation_before_its_next_batch_and_the_step_is_measured_later(train, tmp_path, monkeypatch):
    monkeypatch.setitem(TOKENS_IN_BATCH, "cpu", 16)  # batches of one document or two
    train(tmp_path / "whole", validations=2)
    embedded, embed_batch = [], measuring.embed_batch

    def embed_and_send(*arguments):
        embedded.append(1)
        if len(embedded) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return embed_batch(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(measuring, "embed_batch", embed_and_send)
        with pytest.raises(Unfinished, match="Stopped after step 6 of 12: it was sent SIGTERM"):
            train(tmp_path / "stopped", validations=2)
    assert len(embedded) == 2
    train(tmp_path / "stopped", validations=2)
    assert_same_files(tmp_path / "stopped", tmp_path / "whole")


def test_a_second_ctrl_c_interrupts_at_once():
    with Stopping().listening():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_the_command_ends_with_a_status_of_its_own(command_line, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise Unfinished("Stopped after step 3 of 9.")

    monkeypatch.setattr("cocite.cli.work_offline", lambda *_: None)
    monkeypatch.setattr(trainer, "train_encoder", stop)
    result = CliRunner().invoke(app, [*command_line(tmp_path), "--time-limit", "60"])
    assert result.exit_code == 75


@pytest.mark.long
def test_a_limit_that_stops_five_times_ends_with_the_weights_of_no_limit(command_line, tmp_path):
    def command(folder: Path, *more: str) -> int:
        program, six_steps = Path(sys.executable).with_name("cocite"), command_line(folder, lr=0.001, batch_size=4)
        return subprocess.run([program, *six_steps, *more], check=False).returncode

    assert command(tmp_path / "whole") == 0
    statuses = []
    while not statuses or statuses[-1] == 75:
        statuses.append(command(tmp_path / "limited", "--time-limit", "0.001"))
    assert statuses == [75] * 5 + [0]
    assert_same_files(tmp_path / "limited", tmp_path / "whole", [WEIGHTS])
