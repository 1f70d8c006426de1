"""A training can be repeated, and killed, without a trace."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from cocite.config.engine import RankingLoss
from cocite.config.entries import as_json
from cocite.core.atomic import checked_path
from cocite.core.checkpoints import remove_state
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.embeddings import biggraph_training as training
from cocite.embeddings.biggraph_training import TrainingState, train_graph_embedding
from cocite.embeddings.engines import BigGraph
from cocite.embeddings.imported import ImportedFolder
from cocite.embeddings.trained import train

from .conftest import interrupted

WIDE = RankingLoss(kind="ranking", margin=0.5)

COMMAND = [sys.executable, "-c", "from cocite.cli import app; app()", "embeddings", "train"]
RESULTS = ("vectors", "scores", "written_settings", "omissions")
MOMENTS = ("checkpoint/embeddings_paper_0.v3.h5", "scores/2.json")
"""Files in the state at whose appearance a training is killed: within a checkpoint, and after an epoch."""
VALUES = 14
"""Values of an epoch in `graph_scores`: seven metrics, raw and filtered."""


def arguments(folder: Path, settings: BigGraph) -> dict[str, Any]:
    results = {name: folder / name for name in RESULTS}
    return {"settings": settings, "seed": 1, "state": folder / "state", **results}


def kill_at(moment: Path, imported: Path, folder: Path, settings: BigGraph) -> None:
    """Train by the command, kill it when a file appears, and wait for its workers to follow it."""
    given = arguments(folder, settings) | {"settings": json.dumps(as_json(settings))}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    command = [*COMMAND, str(imported), *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    while not list(moment.parent.glob(moment.name)):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.001)
    workers = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert workers
    assert not psutil.wait_procs(workers, timeout=10)[1]


@pytest.fixture(scope="module", params=[1, 3])
def parted(request, tmp_path_factory, graphs):
    """60 communities of 14 papers, in one partition and in several."""
    folder = tmp_path_factory.mktemp(f"in-{request.param}")
    return graphs.imported(folder, graphs.communities(60, 14), partitions=request.param)


@pytest.mark.long
def test_a_killed_training_ends_like_one_that_was_not(parted, tmp_path, settings, capsys):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    train(parted, **arguments(whole, settings()))
    told = capsys.readouterr().err
    for line in (r"epoch 1, chunk 1: training loss \d+\.\d+, [\d,]+ edges/s", r"train: \d+/\d+ edges, [\d.]+edges/s"):
        assert re.search(line, told)
    for moment in MOMENTS if len(ImportedFolder(parted).starts()) == 2 else MOMENTS[:1]:
        kill_at(killed / "state" / moment, parted, killed, settings())
        assert not any((killed / name).exists() for name in RESULTS)
    capsys.readouterr()
    train(parted, **arguments(killed, settings()))
    told = capsys.readouterr().err
    assert "resuming after iteration" in told
    assert "epoch 1 of 3" not in told
    for name in RESULTS:
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    assert not (killed / "state").exists()
    scores = read_table(whole / "scores", "graph_scores")
    assert scores.column("epoch").to_pylist() == [1] * VALUES + [2] * VALUES + [3] * VALUES


@pytest.mark.parametrize(
    ("partitions", "changed", "raw", "filtered"),
    [
        pytest.param(3, {}, 0.95, 0.98, marks=pytest.mark.long),
        pytest.param(1, {"loss": "logistic"}, 0.8, 0.8, marks=pytest.mark.long),
        pytest.param(1, {"loss": "softmax"}, 0.8, 0.8, marks=pytest.mark.long),
        (1, {"comparator": "cos", "loss": WIDE}, 0.8, 0.8),
        pytest.param(1, {"max_norm": None}, 0.8, 0.8, marks=pytest.mark.long),
    ],
)
def test_partitions_and_other_losses_comparators_and_bounds_learn_as_well(
    tmp_path, graphs, settings, partitions, changed, raw, filtered
):
    imported = graphs.imported(tmp_path, graphs.communities(60, 14), partitions=partitions)
    scores = train_graph_embedding(imported, settings(chunks=1, **changed), seed=1, state=tmp_path / "state").scores[-1]
    assert scores["raw"]["auc"] > raw
    assert scores["filtered"]["auc"] > filtered


def test_a_training_whose_vectors_become_zeros_stops_with_the_setting_to_lower(communities, tmp_path, settings):
    with pytest.raises(InputError, match=r"has collapsed: .*vectors are zeros\); lower lr, which is 1e\+30\.$"):
        train(communities, **arguments(tmp_path, settings(lr=1e30, epochs=1)))
    assert not (tmp_path / "vectors").exists()


@pytest.fixture
def stopped(tmp_path):
    """The state of a training that was killed behind its third iteration of four."""
    state = TrainingState(tmp_path / "state")
    assert state.open({"chunks": 1, "seed": 1}, partitions=0, chunks=4) == 0
    for name in ("checkpoint_version.txt", "model.v3.h5"):
        with checked_path(state.folder / "checkpoint" / name) as written:
            written.write_text("3\n")
    assert state.open({"chunks": 1, "seed": 1}, partitions=0, chunks=4) == 3
    return state


def test_state_of_other_settings_is_not_gone_on_from(stopped, capsys):
    """PyTorch-BigGraph counts iterations: 4 done of 2 chunks would pass for 3 epochs of 1 chunk, and train nothing."""
    assert stopped.open({"chunks": 2, "seed": 1}, partitions=0, chunks=4) == 0
    assert not (stopped.folder / "checkpoint/checkpoint_version.txt").exists()
    assert "chunks changed since the training that was killed; starting afresh" in capsys.readouterr().err


def test_a_training_of_other_settings_or_edges_or_another_seed_starts_afresh(
    communities, tmp_path, settings, graphs, monkeypatch, capsys
):
    monkeypatch.setattr(training, "_train", interrupted)
    others = graphs.imported(tmp_path, graphs.communities(3, 14))
    for imported, chunks, seed in ((communities, 2, 1), (others, 1, 2)):
        with pytest.raises(KeyboardInterrupt):
            train_graph_embedding(imported, settings(chunks=chunks), seed=seed, state=tmp_path / "state")
    assert "chunks, edges, seed changed since the training that was killed" in capsys.readouterr().err


def test_state_whose_removal_was_killed_is_not_gone_on_from(stopped, monkeypatch):
    with monkeypatch.context() as killed:
        killed.setattr("shutil.rmtree", lambda *_, **__: None)
        remove_state(stopped.folder)
    assert stopped.open({"chunks": 1, "seed": 1}, partitions=0, chunks=4) == 0


@pytest.mark.parametrize(
    ("pairs", "changed", "chunks", "message"),
    [
        ([(1, 2), (2, 3), (3, 4), (4, 5)], {"directed": True}, 81, r"chunks is 81, but there are \d edges to train on"),
        ([(1, 2), (3, 4), (5, 6), (7, 8)], {"partitions": 4}, 1, "are 0 edges from one of 4 partitions to another"),
    ],
)
def test_more_chunks_than_edges_are_refused(tmp_path, graphs, settings, pairs, changed, chunks, message):
    imported = graphs.imported(tmp_path, pairs, holdout=0.4, **changed)
    with pytest.raises(InputError, match=message):
        train_graph_embedding(imported, settings(chunks=chunks), seed=1, state=tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_a_chunk_of_more_edges_than_int32_can_number_is_refused(communities, settings, tmp_path, monkeypatch):
    assert training.MOST_EDGES_IN_CHUNK == 2**31 - 1
    monkeypatch.setattr(training, "MOST_EDGES_IN_CHUNK", 3000)
    with pytest.raises(
        InputError, match=r"chunks is 2, but \d,\d+ edges need at least 3: the limit of a chunk is 3,000"
    ):
        train_graph_embedding(communities, settings(chunks=2), seed=1, state=tmp_path / "state")
