"""A training that is killed at any moment, or stops by itself, and is run again ends as if nothing had happened."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import numpy as np
import psutil
import pytest
from safetensors.numpy import load_file
from tests.encoder.building import (
    CURVES,
    AfterSteps,
    assert_goes_on,
    assert_same_results,
    killed_and_run_again,
    trained,
)
from tests.examples import HYBRID, curve_in, written_pairs
from tests.spoiling import SPOILS
from typer.testing import CliRunner

from cocite.cli import app
from cocite.core.atomic import read_json, remove_marks
from cocite.encoder import card, measuring, processes, schedule, trainer
from cocite.encoder.model import TOKENS_IN_BATCH
from cocite.encoder.processes import Stopping, Unfinished, seconds_left
from cocite.encoder.results import BEST, CHECKPOINT, EVENTS


def by_name(request, sets):
    """The inputs of trainings of that name, whose encoder draws random numbers."""
    inputs = request.getfixturevalue(sets)
    return inputs if sets in ("pairs", "split") else replace(inputs, encoder=request.getfixturevalue("with_dropout"))


OBJECTIVES = [{"triplets": name, "loss": "mnrl"} for name in ("topics", "crops")]
MASKED = [{"loss": "triplet"}, {"loss": {"kind": "mlm", "share": 0.3}, "weight": 0.5}]
SPACES = [{"loss": "supcon", "space": space, "weight": 0.5} for space in ("aspects", "encoder")]


def test_trainings_that_are_killed_or_stopped_at_any_moment_and_run_again_end_as_a_whole_one(inputs, request, tmp_path):
    endings = killed_and_run_again(tmp_path, by_name(request, "inputs"))
    assert endings.pop("whole") == [0]
    assert endings.pop("sent-sigterm") == [75, 0]
    assert len(endings) == 12
    assert {moment: ends for moment, ends in endings.items() if ends != [-signal.SIGKILL, 0]} == {}
    assert [path for path in tmp_path.rglob("*") if path.name == "state"] == []
    curves = {metric: [*curve_in(tmp_path / "whole", metric)] for metric in ("training_loss", "validation_loss")}
    # 22 triplets in batches of 4 are 6 batches, 3 steps an epoch, 9 in all; quarters of 9 rounded up.
    assert curves == {"training_loss": list(range(1, 10)), "validation_loss": [3, 5, 7, 9]}
    # Dropout was at work.
    settings = read_json(tmp_path / "whole/settings.json")["settings"]
    without = trained(tmp_path / "without", inputs, training_seed=2, **settings)
    assert (without / CURVES).read_bytes() != (tmp_path / "whole" / CURVES).read_bytes()


@pytest.mark.long
@pytest.mark.parametrize(
    ("sets", "cuts", "settings"),
    [
        ("inputs", 20, {}),
        ("aspects", 20, {"objectives": SPACES, "accumulation": 2}),
        ("several", 2, {"objectives": OBJECTIVES, "mixing": "in-batch"}),
        ("several", 20, {"objectives": OBJECTIVES, "mixing": "alternating"}),
        ("split", 20, {"objectives": SPACES, "accumulation": 2}),
        ("pairs", 20, {"loss": "mnrl"}),
    ],
)
def test_weights_curves_and_maps_are_bit_identical_after_random_cuts(sets, cuts, settings, request, tmp_path):
    given = {"epochs": 3, "lr": 1e-3, **settings} if settings else {}
    endings = killed_and_run_again(tmp_path, by_name(request, sets), cuts, **given)
    assert sum(ends == [-signal.SIGKILL, 0] for ends in endings.values()) == cuts


@pytest.mark.parametrize(
    ("sets", "steps", "settings"),
    [
        ("inputs", [7], {"epochs": 2, "trainable": "lora"}),
        ("inputs", [7], {"epochs": 2, "trainable": "bias"}),
        ("inputs", [7], {"epochs": 2, "loss": "mnrl", "projection": 8}),
        ("inputs", [3, 5], {"epochs": 3, "mini_batch_tokens": 60, "objectives": MASKED}),
        ("aspects", [3], {"epochs": 3, "objectives": HYBRID}),
        ("split", [1], {"epochs": 2, "objectives": SPACES, "batch_size": 6, "lr": 1e-3, "warmup": 0.0}),
        ("pairs", [1, 5], {"epochs": 4, "loss": "mnrl", "lr": 0.05, "batch_size": 8, "matryoshka": (4,)}),
    ],
)
def test_a_stopped_training_of_each_kind_ends_as_a_whole_one(sets, steps, settings, request, tmp_path):
    assert_goes_on(tmp_path, by_name(request, sets), *steps, **settings)


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
    assert_same_results(resumed, whole)
    assert read_json(whole / "settings.json")["settings"]["mini_batch_tokens"] == 40
    with pytest.raises(Unfinished):
        trained(tmp_path / "other", inputs, AfterSteps(2), loss="mnrl", memory_mb=800)
    trained(tmp_path / "other", inputs, loss="mnrl", memory_mb=900, batch_size=8)
    assert read_json(tmp_path / "other/settings.json")["settings"]["mini_batch_tokens"] == "all"
    assert chosen == [800, 800, 800, 900]


@pytest.fixture
def said_after_a_kill(train, tmp_path, monkeypatch, capfd):
    """A function that trains, dies where the third validation would be, changes something, and trains again.

    It asserts that the end is that of a whole training, and returns what is said. Settings and functions of the trainer
    may be others in the training that dies.
    """

    def run(change=lambda: None, lr=1e-3, **functions):
        measured, measure = [], trainer.measure

        def counted(*arguments, **keywords):
            measured.append(1)
            if len(measured) == 3:
                raise KeyboardInterrupt
            return measure(*arguments, **keywords)

        whole = train(lr=1e-3)
        with monkeypatch.context() as patch:
            for name, function in {"measure": counted, **functions}.items():
                patch.setattr(trainer, name, function)
            with pytest.raises(KeyboardInterrupt):
                train(folder=tmp_path, lr=lr)
        change()
        capfd.readouterr()
        assert_same_results(train(folder=tmp_path, lr=1e-3), whole)
        return capfd.readouterr().err

    return run


@pytest.mark.parametrize(("lr", "goes_on"), [(1e-3, True), (5e-3, False)])
def test_the_same_settings_go_on_and_others_start_afresh(said_after_a_kill, lr, goes_on):
    said = said_after_a_kill(lr=lr)
    assert said.count("Going on") == said.count("Going on after step 6 of 12.") == goes_on


def remove_with_mark(path):
    remove_marks(path)
    path.unlink()


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        *((CHECKPOINT, spoil) for spoil in (SPOILS["changed"], SPOILS["cut"], remove_marks)),
        *((BEST, spoil) for spoil in (SPOILS["changed"], SPOILS["gone"], remove_with_mark)),
        ("fingerprint.json", SPOILS["cut"]),
    ],
)
def test_a_spoilt_checkpoint_is_named_and_the_training_starts_afresh(said_after_a_kill, tmp_path, name, spoil):
    said = said_after_a_kill(lambda: spoil(tmp_path / "state" / name))
    assert f"{tmp_path / 'state' / name}: " in said
    assert "Going on" not in said


def test_a_checkpoint_of_another_version_of_a_library_is_not_gone_on_from(said_after_a_kill):
    versions = card.library_versions()
    for library in ("torch", "transformers", "tokenizers", "numpy"):
        assert versions[library] == metadata.version(library)
    said = said_after_a_kill(library_versions=lambda: {**versions, "torch": "2.0.0"})
    assert "versions changed since the training that was killed; starting afresh" in said
    assert "Going on" not in said


def stopped_again_and_again(train, folder, steps, **settings):
    """Start a training until it is done; return what it said when it stopped."""
    said = []
    while True:
        try:
            train(folder=folder, stopping=AfterSteps(steps), **settings)
        except Unfinished as error:
            said.append(str(error))
        else:
            return said


def test_a_training_that_stops_every_five_steps_ends_with_the_weights_and_curves_of_a_whole_one(train, tmp_path):
    whole = train()
    said = stopped_again_and_again(train, tmp_path / "stopped", steps=5)
    # 22 triplets in batches of 4 are 6 steps an epoch, 12 in two: stops after 5 and 10.
    assert [line.split(":")[0] for line in said] == ["Stopped after step 5 of 12", "Stopped after step 10 of 12"]
    assert_same_results(tmp_path / "stopped", whole)


def test_logs_further_apart_than_the_stops_lose_no_loss(train, tmp_path, monkeypatch):
    monkeypatch.setattr(schedule, "LOGS", 3)  # 12 steps: a log every 4
    whole = train(validations=1)
    assert len(stopped_again_and_again(train, tmp_path / "stopped", steps=3, validations=1)) == 3
    assert_same_results(tmp_path / "stopped", whole)


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
    whole = train(validations=2)
    embedded, embed_batch = [], measuring.embed_batch

    def embed_and_send(*arguments):
        embedded.append(1)
        if len(embedded) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return embed_batch(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(measuring, "embed_batch", embed_and_send)
        with pytest.raises(Unfinished, match="Stopped after step 6 of 12: it was sent SIGTERM"):
            train(folder=tmp_path, validations=2)
    assert len(embedded) == 2
    assert_same_results(train(folder=tmp_path, validations=2), whole)


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
    assert_same_results(tmp_path / "limited", tmp_path / "whole")


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


def assert_close_curves(folder, names):
    for name in names:
        one, more = (list(curve_in(folder / number, name).values()) for number in ("one", "more"))
        assert more == pytest.approx(one, rel=1e-3)


def test_two_processes_in_bounded_memory_learn_what_one_learns(start, encoder, tmp_path):
    assert start(tmp_path / "more", 2, **SETTINGS, mini_batch_tokens=40).wait() == 0
    assert start(tmp_path / "one", 1, **SETTINGS).wait() == 0
    folders = [encoder, tmp_path / "one/model", tmp_path / "more/model"]
    before, whole, learned = (load_file(folder / "model.safetensors") for folder in folders)
    for name, weights in whole.items():
        # Adam makes whole steps of gradients that are rounding alone, as those of biases that change no difference of
        # two vectors; so biases are left out, and weights must have moved together as a whole.
        if name.endswith("weight"):
            moved, apart = np.linalg.norm(weights - before[name]), np.linalg.norm(learned[name] - weights)
            assert apart <= 0.02 * moved, name
    assert_close_curves(tmp_path, ("training_loss", "validation_loss", "validation_accuracy"))


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
    for number, folder in enumerate(("one", "more"), 1):
        assert start(tmp_path / folder, number, inputs=inputs, **SETTINGS, **settings).wait() == 0
    assert_close_curves(tmp_path, curves)


def test_a_last_batch_of_fewer_documents_than_processes_has_the_curves_of_one(start, inputs, tmp_path):
    """The last of four batches is a pair, whose two documents the third process has none of."""
    pairs = [written_pairs(tmp_path / "pairs", inputs.training[0], inputs.encoder)]
    how = {"objectives": [{"loss": "mnrl"}, {"loss": {"kind": "mlm", "share": 0.3}}], "batch_size": 7}
    for number, folder in ((1, "one"), (3, "more")):
        training = start(tmp_path / folder, number, inputs=replace(inputs, training=pairs), **SETTINGS | how)
        assert training.wait() == 0
    assert_close_curves(tmp_path, ("training_loss", "validation_loss", "validation_loss of mlm"))


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
    "signals", [(signal.SIGTERM, signal.SIGKILL), (signal.SIGUSR1, signal.SIGINT, signal.SIGTERM, signal.SIGKILL)]
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
    assert_same_results(tmp_path / "stopped", tmp_path / "whole")
    assert not state.exists()
