"""A training can be repeated, and killed, without a trace."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from cocite.biggraph.checkpoints import TrainingState
from cocite.biggraph.commands import train
from cocite.biggraph.configuration import GraphEmbeddingSettings
from cocite.biggraph.training import train_graph_embedding
from cocite.errors import InputError
from cocite.files import read_table
from cocite.settings import settings_as_dict

Settings = Callable[..., GraphEmbeddingSettings]

COMMAND = [sys.executable, "-c", "from cocite.biggraph.commands import app; app()", "train"]
RESULTS = ("vectors", "scores", "written_settings", "omissions")
MOMENTS = ("checkpoint/embeddings_paper_0.v3.h5", "scores/2.json")
"""Files in the state at whose appearance a training is killed: within a checkpoint, and after an epoch."""


def arguments(folder: Path, settings: GraphEmbeddingSettings) -> dict[str, str | int | Path]:
    results = {name: folder / name for name in RESULTS}
    return {"settings": json.dumps(settings_as_dict(settings)), "seed": 1, "state": folder / "state", **results}


def start(imported: Path, folder: Path, settings: GraphEmbeddingSettings) -> "subprocess.Popen[str]":
    options = [
        part
        for name, value in arguments(folder, settings).items()
        for part in (f"--{name.replace('_', '-')}", str(value))
    ]
    return subprocess.Popen(
        [*COMMAND, str(imported), *options], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )


def kill_at(moment: Path, process: "subprocess.Popen[str]") -> None:
    """Kill the process when a file appears, and wait for its workers to follow it."""
    while not moment.exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.001)
    workers = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert workers
    assert not psutil.wait_procs(workers, timeout=10)[1]


def test_a_killed_training_ends_like_one_that_was_not(
    communities: Path, tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    train(communities, **arguments(whole, settings()))
    for moment in MOMENTS:
        kill_at(killed / "state" / moment, start(communities, killed, settings()))
        assert not any((killed / name).exists() for name in RESULTS)
    assert "going on" not in capsys.readouterr().err
    train(communities, **arguments(killed, settings()))
    assert "going on after iteration" in capsys.readouterr().err
    for name in RESULTS:
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    assert not (killed / "state").exists()
    scores = read_table(whole / "scores", "graph_scores")
    assert scores.column("epoch").to_pylist() == [1] * 7 + [2] * 7 + [3] * 7


def test_state_of_other_settings_is_not_gone_on_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = TrainingState(tmp_path / "state")
    assert state.open({"chunks": 1, "seed": 1}) == 0
    checkpoint = tmp_path / "state" / "checkpoint" / "checkpoint_version.txt"
    checkpoint.parent.mkdir()
    checkpoint.write_text("3\n")
    assert state.open({"chunks": 1, "seed": 1}) == 3
    assert state.open({"chunks": 2, "seed": 1}) == 0
    assert not checkpoint.exists()
    assert "chunks changed" in capsys.readouterr().err


def test_state_whose_removal_was_killed_is_not_gone_on_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = TrainingState(tmp_path / "state")
    state.open({"seed": 1})
    (tmp_path / "state" / "checkpoint").mkdir()
    (tmp_path / "state" / "checkpoint" / "checkpoint_version.txt").write_text("3\n")
    with monkeypatch.context() as killed:
        killed.setattr("shutil.rmtree", lambda *_, **__: None)
        state.remove()
    assert state.open({"seed": 1}) == 0


def test_settings_without_negatives_are_refused(settings: Settings) -> None:
    with pytest.raises(InputError, match="both 0"):
        settings(batch_negatives=0, uniform_negatives=0)


def test_more_chunks_than_edges_are_refused(tmp_path: Path, graphs: SimpleNamespace, settings: Settings) -> None:
    graphs.imported(tmp_path, graphs.random(20, 40), 0.2)
    with pytest.raises(InputError, match=r"chunks is 81, but there are \d\d edges to train on"):
        train_graph_embedding(tmp_path / "imported", settings(chunks=81), seed=1, state=tmp_path / "state")
    assert not (tmp_path / "state").exists()
