"""The order of the buckets: all of them in an epoch, and on several devices none that share a partition."""

from collections import Counter
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.embeddings.engines.torch.schedule import buckets_of_round, rounds_of_epoch

PARTITIONS = st.integers(1, 12)


@given(partitions=PARTITIONS, devices=st.integers(1, 4), epoch=st.integers(0, 3))
def test_each_bucket_is_trained_once_an_epoch(partitions: int, devices: int, epoch: int) -> None:
    rounds = rounds_of_epoch(partitions, devices, seed=1, epoch=epoch)
    trained = Counter(
        bucket for number in range(len(rounds)) for of_pair in buckets_of_round(rounds, number) for bucket in of_pair
    )
    assert trained == {(lhs, rhs): 1 for lhs in range(partitions) for rhs in range(partitions)}


@given(partitions=PARTITIONS, devices=st.integers(2, 4))
def test_devices_that_train_at_once_share_no_partition(partitions: int, devices: int) -> None:
    for pairs in rounds_of_epoch(partitions, devices, seed=1, epoch=0):
        assert len(pairs) <= devices
        assert all(not set(one) & set(other) for one, other in combinations(pairs, 2))


@given(partitions=st.integers(2, 12))
def test_one_device_swaps_one_partition_at_a_time(partitions: int) -> None:
    pairs = [pair for (pair,) in rounds_of_epoch(partitions, 1, seed=1, epoch=0)]
    assert all(len(set(one) & set(other)) == 1 for one, other in pairwise(pairs))


@pytest.mark.parametrize(("partitions", "devices", "rounds"), [(4, 2, 3), (8, 4, 7), (6, 3, 5)])
def test_two_partitions_a_device_keep_all_devices_busy(partitions: int, devices: int, rounds: int) -> None:
    planned = rounds_of_epoch(partitions, devices, seed=1, epoch=0)
    assert [len(pairs) for pairs in planned] == [devices] * rounds


def test_epochs_begin_with_different_partitions() -> None:
    assert len({tuple(rounds_of_epoch(8, 1, seed=1, epoch=epoch)[0][0]) for epoch in range(6)}) > 1
