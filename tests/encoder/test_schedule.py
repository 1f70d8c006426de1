"""What happens at which step, and a training that stops by itself: it saves, says so, and ends as an unstopped one."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.encoder.building import CURVES, WEIGHTS, AfterSteps, assert_same_files, trained
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.models import TrainingSettings
from cocite.config.settings import parse_settings
from cocite.encoder import measuring, processes, schedule, trainer
from cocite.encoder.model import TOKENS_IN_BATCH
from cocite.encoder.processes import Stopping, Unfinished, seconds_left
from cocite.encoder.schedule import Mixture, Schedule, round_order

QUERIES = st.lists(st.integers(0, 5), min_size=1, max_size=40).map(np.array)


def one_set(queries, settings):
    return Mixture(queries=[queries], batch_size=settings.batch_size, block=settings.together, seed=2)


def runs(values):
    """Lengths of the runs of equal neighbours, with their value."""
    ends = [i for i in range(len(values)) if i + 1 == len(values) or values[i] != values[i + 1]]
    return [(values[end], end - start + 1) for start, end in zip([0, *(e + 1 for e in ends)], ends, strict=False)]


@given(queries=QUERIES, block=st.integers(1, 5), epoch=st.integers(0, 3))
def test_an_epoch_holds_every_triplet_once(queries, block, epoch):
    order = round_order(queries, block=block, seed=3, number=epoch)
    assert sorted(order) == list(range(len(queries)))


def test_seven_triplets_of_a_query_make_blocks_of_four_and_three():
    queries = np.repeat(np.arange(200), 7)
    lengths = [length for _, length in runs(queries[round_order(queries, block=4, seed=1, number=0)].tolist())]
    # The two blocks of a query may happen to be neighbours, and then look like one of seven.
    assert set(lengths) <= {3, 4, 7}
    assert lengths.count(7) < 10


@pytest.mark.parametrize(
    ("loss", "together"),
    [("mnrl", 1), ("cosent", 1), ("angle", 1), ("triplet", 8), ("infonce", 4), ("supcon", 8)],
)
def test_losses_over_the_batch_shuffle_triplets_one_by_one(loss, together):
    settings = parse_settings(TrainingSettings, json.dumps({"loss": loss, "batch_size": 16}))
    assert settings.together == together
    queries = np.repeat(np.arange(200), 5)
    [batch] = Schedule(mixture=one_set(queries, settings), settings=settings).batches_of(1)
    assert (len(np.unique(queries[batch.numbers])) > 13) == (together == 1)


def test_the_batches_of_a_step_are_the_same_whichever_steps_were_asked_for_before():
    settings = TrainingSettings(batch_size=2, accumulation=2, block=1, epochs=3)
    in_turn, alone = (Schedule(mixture=one_set(np.arange(10), settings), settings=settings) for _ in range(2))
    # 10 examples in steps of two batches of 2 are 3 steps an epoch; the third has one batch.
    assert (in_turn.steps_of_an_epoch, in_turn.steps) == (3, 9)
    taken = {step: [batch.numbers.tolist() for batch in in_turn.batches_of(step)] for step in range(1, 10)}
    assert [len(batches) for batches in taken.values()] == [2, 2, 1] * 3
    for step in (8, 2, 5, 9):
        assert [batch.numbers.tolist() for batch in alone.batches_of(step)] == taken[step]
    for epoch in range(3):
        of_epoch = [number for step in range(3 * epoch + 1, 3 * epoch + 4) for batch in taken[step] for number in batch]
        assert of_epoch == round_order(np.arange(10), block=1, seed=2, number=epoch).tolist()


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
    train(tmp_path / "whole", evaluations=1)
    assert len(stopped_again_and_again(train, tmp_path / "stopped", steps=3, evaluations=1)) == 3
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
    train(tmp_path / "whole", evaluations=2)
    embedded, embed_batch = [], measuring.embed_batch

    def embed_and_send(*arguments):
        embedded.append(1)
        if len(embedded) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return embed_batch(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(measuring, "embed_batch", embed_and_send)
        with pytest.raises(Unfinished, match="Stopped after step 6 of 12: it was sent SIGTERM"):
            train(tmp_path / "stopped", evaluations=2)
    assert len(embedded) == 2
    train(tmp_path / "stopped", evaluations=2)
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
