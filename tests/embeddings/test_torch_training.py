"""A training with the engine torch plans, learns, can be repeated, and goes on after a kill without a trace."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import combinations, count, pairwise, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from cocite.config.entries import as_json
from cocite.config.settings import parse_settings
from cocite.core.atomic import read_json
from cocite.core.errors import InputError
from cocite.core.tables.files import vector_column, write_table
from cocite.embeddings import torch_training as training
from cocite.embeddings.engines import Torch
from cocite.embeddings.imported import ImportedFolder, import_edges, partition_starts
from cocite.embeddings.torch_partitions import buckets_of_round, deal_into_buckets, rounds_of_epoch
from cocite.embeddings.torch_training import partitions_within
from cocite.embeddings.trained import Trained, write_vectors

from .conftest import interrupted, vectors_of

SETTINGS = {"engine": "torch", "dimension": 16, "epochs": 3, "batch_size": 500, "threads": 2}
CPU = torch.device("cpu")
PROGRAM = Path(__file__).with_name("killed_embedding.py")
KILLS = 20
RESULTS = ("vectors", "scores", "written_settings", "omissions")
KILLED = {
    **{"engine": "torch", "dimension": 64, "epochs": 12, "batch_size": 500, "checkpoint_minutes": 0.001},
    **{"threads": 1, "gpus": 0},
}
MEMORY_MB = 702
"""What lets 4,000 papers × 64 dimensions, 1.04 MB beside 701.2 MB, into 3 partitions: two of them are 0.69 MB."""


def settings(**changed: Any) -> Torch:
    return Torch(**{**SETTINGS, **changed})


def train(imported: Path, state: Path, chosen: Torch, devices: int = 1, seed: int = 1) -> Trained:
    return training.train_graph_embedding(imported, chosen, seed=seed, state=state, devices=[CPU] * devices)


def assert_same(one: Trained, other: Trained) -> None:
    assert one.scores == other.scores
    assert np.array_equal(vectors_of(one), vectors_of(other))


@pytest.fixture
def in_partitions(monkeypatch):
    return lambda count: monkeypatch.setattr(training, "plan_partitions", lambda *_: count)


@pytest.mark.parametrize("devices", [pytest.param(1, marks=pytest.mark.long), 2])
def test_partitions_learn_what_one_learns(communities, tmp_path, in_partitions, devices):
    in_partitions(5)
    trained = train(communities, tmp_path / "state", settings(), devices)
    assert trained.scores[-1]["raw"]["auc"] > 0.98
    assert len(trained.vectors.parts) == 5


@pytest.mark.parametrize(
    ("changed", "least"),
    [
        ({}, 0.98),
        pytest.param({"loss": "softmax"}, 0.98, marks=pytest.mark.long),
        ({"comparator": "cos", "loss": {"kind": "ranking", "margin": 0.5}}, 0.8),
        ({"storage": "bfloat16", "max_norm": None}, 0.98),
        pytest.param({"precision": "float32", "batch_negatives": 0}, 0.98, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_communities_are_found(communities, tmp_path, changed, least):
    trained = train(communities, tmp_path / "state", settings(**changed))
    assert len(trained.scores) == 3
    assert trained.scores[-1]["raw"]["auc"] > least
    assert trained.scores[-1]["filtered"]["auc"] > least


def test_the_seed_alone_decides_what_is_learned(communities, tmp_path):
    one, again, other = (
        train(communities, tmp_path / str(number), settings(), seed=seed) for number, seed in enumerate((1, 1, 2))
    )
    assert_same(one, again)
    assert not np.array_equal(vectors_of(one), vectors_of(other))


@pytest.mark.parametrize("devices", [pytest.param(1, marks=pytest.mark.long), 2])
@pytest.mark.parametrize("changed", [pytest.param({}, marks=pytest.mark.long), {"storage": "bfloat16"}], ids=str)
def test_a_training_that_stops_anywhere_ends_like_one_that_did_not(
    communities, tmp_path, monkeypatch, in_partitions, devices, changed
):
    """It stops at every fifth stretch, with a checkpoint before each stretch, and once more than it had come."""
    in_partitions(3)
    monkeypatch.setattr(training, "STRETCH", 1000)
    chosen = settings(checkpoint_minutes=1e-9, **changed)
    whole = train(communities, tmp_path / "whole", chosen, devices)
    train_stretch, numbers, stops, stopped = training.Training._train_stretch, count(1), 0, None

    def fifth_stops(*given: Any) -> Any:
        return train_stretch(*given) if next(numbers) % 5 else interrupted()

    monkeypatch.setattr(training.Training, "_train_stretch", fifth_stops)
    while stopped is None:
        try:
            stopped = train(communities, tmp_path / "stopped", chosen, devices)
        except KeyboardInterrupt:
            stops += 1
    assert stops > 3
    assert_same(stopped, whole)


@pytest.mark.parametrize("devices", [pytest.param(1, marks=pytest.mark.long), 2])
def test_a_training_that_stops_while_it_is_measured_goes_on(communities, tmp_path, monkeypatch, devices):
    chosen = settings(epochs=2)
    whole = train(communities, tmp_path / "whole", chosen, devices)
    with monkeypatch.context() as changed:
        changed.setattr(training.Training, "_measure", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(communities, tmp_path / "stopped", chosen, devices)
    assert_same(train(communities, tmp_path / "stopped", chosen, devices), whole)


@pytest.mark.parametrize("devices", [1, 2])
def test_partitions_without_an_edge_keep_the_vectors_they_begin_with(tmp_path, in_partitions, graphs, devices):
    """Twelve pairs of papers, and a partition for each paper: those of held-out pairs are never trained."""
    imported = graphs.imported(tmp_path, [(paper, paper + 1) for paper in range(0, 24, 2)], holdout=0.3)
    in_partitions(24)
    trained = train(imported, tmp_path / "state", settings(epochs=1), devices)
    lengths = np.linalg.norm(vectors_of(trained), axis=1)
    edges = ImportedFolder(imported).count_edges("training").sum()
    assert (lengths > 0.1).sum() >= edges > 0
    assert 0 < (lengths < 0.1).sum() < 24


def test_a_training_that_stopped_does_not_go_on_in_another_precision(communities, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(training, "computes_in", lambda *_: torch.float32)
    monkeypatch.setattr(training.Training, "_measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(communities, tmp_path / "state", settings(epochs=1))
    monkeypatch.undo()
    monkeypatch.setattr(training, "computes_in", lambda *_: torch.bfloat16)
    train(communities, tmp_path / "state", settings(epochs=1))
    assert "state: precision changed since the training that was killed" in capsys.readouterr().err


def test_files_do_not_pile_up_between_checkpoints(communities, tmp_path, monkeypatch, in_partitions):
    """Of each of 16 partitions the version of the last checkpoint and the newest one."""
    in_partitions(16)
    train_stretch, found = training.Training._train_stretch, set()

    def count_files(self: training.Training, *given: Any) -> Any:
        found.add(len(list((self.kept.folder / "vectors").glob("*.npy"))))
        return train_stretch(self, *given)

    monkeypatch.setattr(training.Training, "_train_stretch", count_files)
    train(communities, tmp_path / "state", settings(epochs=2))
    assert 16 < max(found) <= 32


def write_older(folder: Path, papers: Sequence[int], vectors: np.ndarray[Any, Any]) -> Path:
    order = np.argsort(papers)
    columns = {"corpusid": pa.array(np.asarray(papers)[order]), "vector": vector_column(vectors[order])}
    write_table(folder / "older.parquet", "graph_embeddings", pa.table(columns))
    return folder / "older.parquet"


def test_papers_of_an_older_release_begin_with_their_vectors(communities, tmp_path, capsys):
    """With a learning rate of next to nothing they also end with them; the others are drawn, near 0."""
    papers = ImportedFolder(communities).papers()
    older = np.random.default_rng(1).normal(size=(500, 16)).astype(np.float32)
    older /= 2 * np.linalg.norm(older, axis=1, keepdims=True)
    start = write_older(tmp_path, [*papers[:400].tolist(), *range(10_000, 10_100)], older)
    trained = train(communities, tmp_path / "state", settings(epochs=1, lr=1e-12, start=str(start)))
    vectors = vectors_of(trained)
    np.testing.assert_allclose(vectors[:400], older[:400], atol=1e-6)
    assert np.linalg.norm(vectors[400:], axis=1).max() < 0.1
    assert "400 of 840 papers begin with their vectors" in capsys.readouterr().err


def weighted_graph(folder: Path, graphs: SimpleNamespace, *, weighted: bool, spread: float) -> Path:
    """Communities whose edges weigh 1, or up to so much more by the number of their first paper."""
    pairs = graphs.communities(20, 10)
    weights = [1 + spread * (source % 7) for source, _ in pairs]
    edges = graphs.write(folder / f"{weighted}.parquet", pairs, weights)
    import_edges([edges], graphs.settings(weighted=weighted), directed=False, seed=1, output=folder / str(weighted))
    return folder / str(weighted)


def test_equal_weights_change_nothing_and_others_do(tmp_path, graphs):
    def vectors(spread: float, *, weighted: bool) -> np.ndarray[Any, Any]:
        imported = weighted_graph(tmp_path, graphs, weighted=weighted, spread=spread)
        return vectors_of(train(imported, tmp_path / "state", settings(epochs=1)))

    plain = vectors(3, weighted=False)
    assert np.array_equal(vectors(0, weighted=True), plain)
    assert not np.allclose(vectors(3, weighted=True), plain, atol=0.01)


def test_buckets_hold_each_edge_with_its_weight(tmp_path, graphs):
    imported = ImportedFolder(weighted_graph(tmp_path, graphs, weighted=True, spread=3))
    papers = len(imported.papers())
    starts = partition_starts(papers, 3)
    buckets = deal_into_buckets(imported, starts, tmp_path / "edges")
    found = []
    for lhs, rhs in product(range(3), repeat=2):
        ends, weights = buckets.read((lhs, rhs), 0, papers**2)
        assert (ends < torch.tensor([[starts[lhs + 1] - starts[lhs]], [starts[rhs + 1] - starts[rhs]]])).all()
        found += zip((ends[0] + starts[lhs]).tolist(), (ends[1] + starts[rhs]).tolist(), weights.tolist(), strict=True)
    ((sources, targets, weights),) = imported.weighted_edges("training")
    assert weights is not None
    assert len(set(weights.tolist())) == 7
    assert sorted(found) == sorted(zip(sources.tolist(), targets.tolist(), weights.tolist(), strict=True))
    assert buckets.edges == len(found)


NOT_FINITE = r"epoch 1, batch \d+ after edge 0 of bucket \(0, 0\): a gradient is not finite"


@pytest.mark.parametrize(
    ("changed", "said"),
    [({"start": True}, "whose vectors have 8 dimensions; dimension is 16"), ({"lr": 1e30}, NOT_FINITE)],
    ids=["older vectors of another dimension", "gradients that are not finite"],
)
def test_what_cannot_be_trained_stops_with_its_reason(communities, tmp_path, changed, said):
    older = str(write_older(tmp_path, [1, 2], np.ones((2, 8), dtype=np.float32)))
    with pytest.raises(InputError, match=said):
        train(communities, tmp_path / "state", settings(**changed | ({"start": older} if "start" in changed else {})))


def test_a_full_device_names_the_settings_that_help(communities, tmp_path, monkeypatch):
    full = Mock(side_effect=torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB."))
    monkeypatch.setattr(training.Training, "_train_stretch", full)
    with pytest.raises(InputError, match=r"out of memory .*lower memory_mb, .* or batch_size"):
        train(communities, tmp_path / "state", settings())


@pytest.mark.parametrize(
    ("given", "message"),
    [({"batch_size": 120, "batch_negatives": 50}, "multiple of batch_negatives"), ({"workers": 2}, "workers")],
)
def test_settings_that_the_engine_lacks_are_refused_and_a_path_may_be_a_variable(given, message, monkeypatch):
    with pytest.raises(InputError, match=message):
        parse_settings(Torch, json.dumps({**as_json(settings()), **given}))
    monkeypatch.setenv("OLDER", "/results/2026-01-06")
    chosen = parse_settings(Torch, json.dumps({"engine": "torch", "start": "$OLDER/vectors"}))
    assert chosen.files == (Path("/results/2026-01-06/vectors"),)


def test_partitions_follow_from_the_memory_and_two_a_device():
    """10 million papers × 128 take 5,160 MB."""
    of = partial(partitions_within, vectors=settings(dimension=128).vectors_mb(1e7), overhead=1160, papers=10_000_000)
    assert [of(None), of(6320), of(6319), of(3010), of(1810)] == [1, 1, 3, 6, 16]
    said = r"10,000,000 papers need at least 1,322 MB, in 64 partitions, but 1,300 MB are allowed"
    with pytest.raises(InputError, match=said):
        of(1300)
    assert partitions_within(None, 100, papers=1000, devices=2) == 4
    with pytest.raises(InputError, match="8 GPUs take 16 partitions, but there are 10 papers"):
        partitions_within(None, 100, papers=10, devices=8)


def test_a_training_asks_a_cluster_for_what_it_takes():
    # A batch of 500 edges has 10 chunks of 100 rows a side.
    batch = 2 * 10 * 100 * 128 * 8 / 1e6
    assert settings(dimension=128).training_memory(10_000_000, 0) == 6510 + batch
    assert settings(dimension=128, memory_mb=3000).training_memory(10_000_000, 0) == 3000
    assert settings(dimension=128, memory_mb=100).training_memory(10_000_000, 0) == 1150 + batch
    assert settings(dimension=128, storage="bfloat16").training_memory(10_000_000, 0) == 3950 + batch
    assert (settings(threads=4).cores, settings(gpus=2).devices) == (4, 2)


@example(partitions=4, devices=2, epoch=0)
@example(partitions=8, devices=4, epoch=0)
@example(partitions=6, devices=3, epoch=0)
@example(partitions=12, devices=1, epoch=0)
@given(partitions=st.integers(1, 12), devices=st.integers(1, 4), epoch=st.integers(0, 3))
def test_an_epoch_trains_each_bucket_once_and_two_partitions_a_device_keep_all_busy(partitions, devices, epoch):
    rounds = rounds_of_epoch(partitions, devices, seed=1, epoch=epoch)
    trained = Counter(
        bucket for number in range(len(rounds)) for of_pair in buckets_of_round(rounds, number) for bucket in of_pair
    )
    assert trained == {(lhs, rhs): 1 for lhs in range(partitions) for rhs in range(partitions)}
    for pairs in rounds:
        assert len(pairs) <= devices
        assert all(not set(one) & set(other) for one, other in combinations(pairs, 2))
    if devices == 1 < partitions:  # which swaps one partition at a time
        assert all(len(set(one) & set(other)) == 1 for (one,), (other,) in pairwise(rounds))
    if partitions == 2 * devices > 2:
        assert [len(pairs) for pairs in rounds] == [devices] * (partitions - 1)


@pytest.fixture(scope="module")
def large(tmp_path_factory, graphs):
    """200 communities of 20 papers; few edges are held out, as measuring them takes longer than learning the others."""
    folder: Path = graphs.imported(tmp_path_factory.mktemp("graph"), graphs.communities(200, 20), holdout=0.03)
    return folder


@pytest.fixture(scope="module")
def earlier(tmp_path_factory, graphs):
    folder = tmp_path_factory.mktemp("earlier")
    older = graphs.imported(folder, graphs.communities(150, 20))
    trained = train(older, folder / "state", Torch(**KILLED | {"epochs": 2}))
    write_vectors(folder / "vectors", ImportedFolder(older), trained.vectors, "")
    return folder / "vectors"


@pytest.mark.long
@pytest.mark.parametrize(
    "changed", [{}, {"memory_mb": MEMORY_MB}, {"storage": "bfloat16"}, {"start": "earlier"}], ids=str
)
def test_twenty_random_kills_leave_no_trace(large, request, tmp_path, changed):
    if "start" in changed:
        changed = {"start": str(request.getfixturevalue("earlier"))}
    if "memory_mb" in changed:
        assert training.plan_partitions(Torch(**KILLED, **changed), 4000, [CPU]) == 3
    command = [sys.executable, PROGRAM, large, tmp_path, json.dumps({**KILLED, **changed}), str(KILLS)]
    subprocess.run(command, check=True)
    told = read_json(tmp_path / "told.json")
    assert told["kills"] == KILLS
    assert told["resumed"] > 0
    for number in range(told["trainings"]):
        for name in RESULTS:
            ended = tmp_path / f"killed-{number}" / name
            assert ended.read_bytes() == (tmp_path / "whole" / name).read_bytes(), f"{name} of training {number}"
        assert not (tmp_path / f"killed-{number}" / "state").exists()
