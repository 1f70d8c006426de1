"""What a training with the engine torch may be told, and what it plans by that: partitions, memory, cores, GPUs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cocite.config.entries import as_json
from cocite.config.settings import parse_settings
from cocite.core.errors import InputError
from cocite.embeddings.engines.torch import Torch
from cocite.embeddings.engines.torch.planning import overhead_mb, partitions_within, vectors_mb

SETTINGS = {"engine": "torch", "dimension": 16, "epochs": 3, "batch_size": 500, "threads": 2}


def settings(**changed: Any) -> Torch:
    return Torch(**{**SETTINGS, **changed})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"comparator": "l2"}, "comparator"),
        ({"dimension": 1}, "dimension"),
        ({"batch_size": 120, "batch_negatives": 50}, "multiple of batch_negatives"),
        ({"workers": 2}, "workers"),
    ],
)
def test_settings_that_the_engine_lacks_are_refused(given: dict[str, Any], message: str) -> None:
    written = {**as_json(settings()), **given}
    with pytest.raises(InputError, match=message):
        parse_settings(Torch, json.dumps(written))


def test_partitions_follow_from_the_memory() -> None:
    """10 million papers × 128 take 5,160 MB, and 1,160 MB beside them, of which 10 MB for a batch."""
    vectors, overhead = vectors_mb(10_000_000, 128, 4), overhead_mb(10_000_000, 1_250_000)
    assert (vectors, overhead) == (5160, 1160)
    of: Callable[[float | None], int] = lambda bound: partitions_within(  # noqa: E731
        bound, vectors, overhead=overhead, papers=10_000_000
    )
    assert [of(None), of(6320), of(6319), of(3010), of(1810)] == [1, 1, 3, 6, 16]
    with pytest.raises(
        InputError, match=r"10,000,000 papers take 1,322 MB at least, in 64 partitions, and 1,300 MB are allowed"
    ):
        of(1300)


def test_several_devices_have_two_partitions_each() -> None:
    assert partitions_within(None, 100, papers=1000, devices=2) == 4
    with pytest.raises(InputError, match="8 GPUs take 16 partitions, but there are 10 papers"):
        partitions_within(None, 100, papers=10, devices=8)


def test_a_training_asks_a_cluster_for_what_it_takes() -> None:
    # A batch of 500 edges has 10 chunks of 100 rows a side.
    batch = 2 * 10 * 100 * 128 * 8 / 1e6
    assert settings(dimension=128).training_memory(10_000_000, 0) == 6310 + batch
    assert settings(dimension=128, memory_mb=3000).training_memory(10_000_000, 0) == 3000
    assert settings(dimension=128, memory_mb=100).training_memory(10_000_000, 0) == 1150 + batch
    assert settings(dimension=128, storage="bfloat16").training_memory(10_000_000, 0) == 3750 + batch
    assert (settings(threads=4).cores, settings(gpus=2).devices) == (4, 2)


def test_the_older_table_may_be_named_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLDER", "/results/2026-01-06")
    chosen = parse_settings(Torch, json.dumps({"engine": "torch", "start": "$OLDER/vectors"}))
    assert chosen.files == (Path("/results/2026-01-06/vectors"),)
