"""A graph embedding whose state a disk has spoilt ends like a whole training, and the log names the file."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.spoiling import SPOILS, files_of

from cocite.config.embeddings import AnyEngine
from cocite.config.settings import entry_of
from cocite.core.atomic import SUFFIX, checked_path, remove_checked
from cocite.embeddings import fastrp_projection as projection
from cocite.embeddings import torch_training
from cocite.embeddings.biggraph_training import TrainingState

from .conftest import interrupted, vectors_of

TRAINING = {"epochs": 2, "dimension": 8, "batch_size": 500}
ENGINES: dict[str, dict[str, Any]] = {
    "biggraph": {"engine": "biggraph", **TRAINING, "chunks": 2},
    "torch": {"engine": "torch", **TRAINING, "gpus": 0, "threads": 1},
    "fastrp": {"engine": "fastrp", "dimension": 8, "block": 4, "hop_weights": (1.0, 1.0)},
}
SCORES = ["scores/1.json", "scores/2.json"]
CHECKPOINT = [f"checkpoint/{name}" for name in ("checkpoint_version.txt", "embeddings_paper_0.v4.h5", "model.v4.h5")]
FILES = {
    "biggraph": [*CHECKPOINT, "fingerprint.json", *SCORES],
    "torch": [
        *("edges/0-0.edges", "edges/counts.json", "fingerprint.json", "progress.json"),
        *(*SCORES, "squares/0.2.npy", "vectors/0.2.npy"),
    ],
    "fastrp": ["fingerprint.json", "vectors.f32"],
}


@pytest.fixture(scope="module")
def imported(tmp_path_factory, graphs):
    folder: Path = graphs.imported(tmp_path_factory.mktemp("graph"), graphs.communities(20, 10))
    return folder


def vectors_after(imported: Path, name: str, state: Path) -> np.ndarray[Any, Any]:
    """What an engine ends with that goes on from a state."""
    return vectors_of(entry_of(ENGINES[name], AnyEngine).train(imported, seed=1, state=state))


@pytest.mark.long
@pytest.mark.parametrize("name", ENGINES)
def test_a_spoilt_file_of_the_state_changes_no_vector_and_is_named(imported, tmp_path, capsys, name):
    state = tmp_path / "state"
    whole = vectors_after(imported, name, state)
    assert [str(path.relative_to(state)) for path in files_of(state)] == FILES[name]
    for number, file in enumerate(FILES[name]):
        spoil = list(SPOILS)[number % len(SPOILS)]
        SPOILS[spoil](state / file)
        capsys.readouterr()
        assert np.array_equal(vectors_after(imported, name, state), whole), f"{file} {spoil}"
        if (file, spoil) != ("fingerprint.json", "gone"):
            assert f"{state / file}: " in capsys.readouterr().err


@pytest.mark.parametrize("spoil", ["changed", "cut", "gone"])
def test_of_a_projection_only_the_spoilt_block_is_made_again(imported, tmp_path, monkeypatch, spoil):
    state = tmp_path / "state"
    whole = vectors_after(imported, "fastrp", tmp_path / "whole")
    with monkeypatch.context() as killed:
        killed.setattr(projection, "merge_blocks", interrupted)
        with pytest.raises(KeyboardInterrupt):
            vectors_after(imported, "fastrp", state)
    SPOILS[spoil](state / "hop-1-from-4.f32")
    drawn, draw = [], projection.random_signs
    monkeypatch.setattr(projection, "random_signs", lambda *given: drawn.append(given[1]) or draw(*given))
    assert np.array_equal(vectors_after(imported, "fastrp", state), whole)
    assert drawn == [range(4, 8)]


@pytest.mark.parametrize("lost", [None, *FILES["biggraph"]])
def test_biggraph_starts_afresh_where_a_file_of_its_version_is_gone_with_its_mark(tmp_path, lost):
    kept, state = TrainingState(tmp_path), {"seed": 1}
    assert kept.open(state, partitions=1, chunks=2) == 0
    for name in FILES["biggraph"]:
        if name != "fingerprint.json":
            with checked_path(tmp_path / name) as path:
                path.write_text("4\n")
    if lost is not None:
        remove_checked(tmp_path / lost)
    assert kept.open(state, partitions=1, chunks=2) == (4 if lost is None else 0)


GONE = [
    *("edges/counts.json", "edges", "progress.json", "scores/1.json", "squares/0.*"),
    *(pytest.param(name, marks=pytest.mark.long) for name in ("edges/*", "edges/1-2.edges", "scores", "squares")),
    *(pytest.param(name, marks=pytest.mark.long) for name in ("vectors/1.*", "vectors")),
]


@pytest.fixture(scope="module")
def stopped(imported, tmp_path_factory):
    """The state of a training in partitions that was killed in its second epoch, and the vectors of a whole one."""
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch_training, "plan_partitions", lambda *_: 3)
        whole = vectors_after(imported, "torch", folder / "whole")
        train_stretch = torch_training.Training._train_stretch
        patch.setattr(torch_training.Training, "_train_stretch", interrupted_after(12, train_stretch))
        with pytest.raises(KeyboardInterrupt):
            vectors_after(imported, "torch", folder / "state")
    return folder / "state", whole


@pytest.mark.parametrize("spoil", ["changed", "cut", "emptied"])
def test_a_training_in_partitions_that_was_killed_starts_afresh_from_a_spoilt_partition(
    imported, stopped, tmp_path, monkeypatch, spoil
):
    monkeypatch.setattr(torch_training, "plan_partitions", lambda *_: 3)
    state = shutil.copytree(stopped[0], tmp_path / "state")
    SPOILS[spoil](next(path for path in files_of(state) if path.parent.name == "squares"))
    assert np.array_equal(vectors_after(imported, "torch", state), stopped[1])


@pytest.mark.parametrize("lost", ["mark", "file and mark"])
@pytest.mark.parametrize("pattern", GONE)
def test_a_training_starts_afresh_where_a_file_that_its_progress_implies_is_gone(
    imported, stopped, tmp_path, monkeypatch, capsys, pattern, lost
):
    monkeypatch.setattr(torch_training, "plan_partitions", lambda *_: 3)
    state = shutil.copytree(stopped[0], tmp_path / "state")
    found = list(state.glob(pattern))
    paths = [path for at in found for path in (at.rglob("*") if at.is_dir() else at.parent.glob(f"{at.name}*"))]
    for path in paths:
        if path.suffix == SUFFIX or lost == "file and mark":
            path.unlink(missing_ok=True)
    if pattern in ("edges", "scores", "squares", "vectors") and lost == "file and mark":
        (state / pattern).rmdir()
    capsys.readouterr()
    assert np.array_equal(vectors_after(imported, "torch", state), stopped[1])
    said = capsys.readouterr().err
    assert ("the training starts afresh" in said) == ((pattern, lost) != ("edges", "file and mark"))


def interrupted_after(calls: int, function: Callable[..., Any]) -> Callable[..., Any]:
    left = iter(range(calls))
    return lambda *given: interrupted() if next(left, None) is None else function(*given)
