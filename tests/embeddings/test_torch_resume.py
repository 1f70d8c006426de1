"""A training by the engine torch that is killed at random moments ends as if nothing had happened."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from cocite.core.atomic import read_json
from cocite.embeddings.engines import Torch
from cocite.embeddings.torch_training import plan_partitions

pytestmark = pytest.mark.long

PROGRAM = Path(__file__).with_name("killed_embedding.py")
KILLS = 20
RESULTS = ("vectors", "scores", "written_settings", "omissions")
SETTINGS = {
    **{"engine": "torch", "dimension": 64, "epochs": 12, "batch_size": 500, "checkpoint_minutes": 0.001},
    **{"threads": 1, "gpus": 0},
}


MEMORY_MB = 702
"""What lets 4,000 papers × 64 dimensions, 1.04 MB beside 701.2 MB, into 3 partitions: two of them are 0.69 MB."""


@pytest.fixture(scope="module")
def imported(tmp_path_factory, graphs):
    """200 communities of 20 papers."""
    folder: Path = graphs.imported(tmp_path_factory.mktemp("graph"), graphs.communities(200, 20))
    return folder


@pytest.fixture(scope="module")
def earlier(tmp_path_factory, graphs):
    """Vectors of the first 150 of the communities."""
    folder = tmp_path_factory.mktemp("earlier")
    older = graphs.imported(folder, graphs.communities(150, 20))
    subprocess.run(
        [sys.executable, PROGRAM, older, folder / "trained", json.dumps({**SETTINGS, "epochs": 2})], check=True
    )
    return folder / "trained" / "whole" / "vectors"


@pytest.mark.parametrize(
    "changed", [{}, {"memory_mb": MEMORY_MB}, {"storage": "bfloat16"}, {"start": "earlier"}], ids=str
)
def test_twenty_random_kills_leave_no_trace(imported, request, tmp_path, changed):
    """Kill trainings, resume each, and compare what they leave with what an undisturbed one leaves."""
    if "start" in changed:
        changed = {"start": str(request.getfixturevalue("earlier"))}
    if "memory_mb" in changed:
        assert plan_partitions(Torch(**SETTINGS, **changed), 4000, [torch.device("cpu")]) == 3
    command = [sys.executable, PROGRAM, imported, tmp_path, json.dumps({**SETTINGS, **changed}), str(KILLS)]
    subprocess.run(command, check=True)
    told = read_json(tmp_path / "told.json")
    assert told["kills"] == KILLS
    assert told["resumed"] > 0
    for number in range(told["trainings"]):
        for name in RESULTS:
            ended = tmp_path / f"killed-{number}" / name
            assert ended.read_bytes() == (tmp_path / "whole" / name).read_bytes(), f"{name} of training {number}"
        assert not (tmp_path / f"killed-{number}" / "state").exists()
