"""What a training with the engine torch may be told, and what it plans: partitions, memory, order of buckets."""

import json
from collections import Counter
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.config.entries import as_json
from cocite.config.settings import parse_settings
from cocite.core.errors import InputError
from cocite.embeddings.engines import Torch
from cocite.embeddings.torch_partitions import buckets_of_round, rounds_of_epoch
from cocite.embeddings.torch_training import partitions_within

SETTINGS = {"engine": "torch", "dimension": 16, "epochs": 3, "batch_size": 500, "threads": 2}


def settings(**changed: Any) -> Torch:
    return Torch(**{**SETTINGS, **changed})


@pytest.mark.parametrize(
    ("given", "message"),
    [({"batch_size": 120, "batch_negatives": 50}, "multiple of batch_negatives"), ({"workers": 2}, "workers")],
)
def test_settings_that_the_engine_lacks_are_refused(given, message):
    written = {**as_json(settings()), **given}
    with pytest.raises(InputError, match=message):
        parse_settings(Torch, json.dumps(written))


def test_partitions_follow_from_the_memory():
    """10 million papers × 128 take 5,160 MB."""
    of = partial(partitions_within, vectors=settings(dimension=128).vectors_mb(1e7), overhead=1160, papers=10_000_000)
    assert [of(None), of(6320), of(6319), of(3010), of(1810)] == [1, 1, 3, 6, 16]
    said = r"10,000,000 papers need at least 1,322 MB, in 64 partitions, but 1,300 MB are allowed"
    with pytest.raises(InputError, match=said):
        of(1300)


def test_several_devices_have_two_partitions_each():
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


def test_the_older_table_may_be_named_by_a_variable(monkeypatch):
    monkeypatch.setenv("OLDER", "/results/2026-01-06")
    chosen = parse_settings(Torch, json.dumps({"engine": "torch", "start": "$OLDER/vectors"}))
    assert chosen.files == (Path("/results/2026-01-06/vectors"),)


PARTITIONS = st.integers(1, 12)


@given(partitions=PARTITIONS, devices=st.integers(1, 4), epoch=st.integers(0, 3))
def test_each_bucket_is_trained_once_an_epoch(partitions, devices, epoch):
    rounds = rounds_of_epoch(partitions, devices, seed=1, epoch=epoch)
    trained = Counter(
        bucket for number in range(len(rounds)) for of_pair in buckets_of_round(rounds, number) for bucket in of_pair
    )
    assert trained == {(lhs, rhs): 1 for lhs in range(partitions) for rhs in range(partitions)}


@given(partitions=PARTITIONS, devices=st.integers(2, 4))
def test_devices_that_train_at_once_share_no_partition(partitions, devices):
    for pairs in rounds_of_epoch(partitions, devices, seed=1, epoch=0):
        assert len(pairs) <= devices
        assert all(not set(one) & set(other) for one, other in combinations(pairs, 2))


@given(partitions=st.integers(2, 12))
def test_one_device_swaps_one_partition_at_a_time(partitions):
    pairs = [pair for (pair,) in rounds_of_epoch(partitions, 1, seed=1, epoch=0)]
    assert all(len(set(one) & set(other)) == 1 for one, other in pairwise(pairs))


@pytest.mark.parametrize(("partitions", "devices", "rounds"), [(4, 2, 3), (8, 4, 7), (6, 3, 5)])
def test_two_partitions_a_device_keep_all_devices_busy(partitions, devices, rounds):
    planned = rounds_of_epoch(partitions, devices, seed=1, epoch=0)
    assert [len(pairs) for pairs in planned] == [devices] * rounds
