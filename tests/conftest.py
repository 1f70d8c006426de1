"""Fixtures that every stage's tests share."""

import gzip
import json
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parents[1]
Rows = list[dict[str, Any]]

# Threads that wait for each other must not keep a core busy: other tests run beside these, and all take far longer so.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# How long an example takes is a matter of the machine, and a fixture's folder may serve several examples.
# `make test-long` draws more of them.
settings.register_profile(
    "quick", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20
)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=300)
settings.load_profile("quick")

SHARED_RUNS = {"clusters": "calm", "slurm": "cluster", "workflow": "finished"}
"""The fixtures that take longest, by the folders whose tests share them."""


@cache
def group_of(file: str) -> str:
    """What the tests of a file are kept in one process with: those of the file, or all that share a run with them."""
    run = SHARED_RUNS.get(Path(file).parent.name)
    is_asked_for = run and re.search(rf"^def \w+\([^)]*\b{run}\b", (ROOT / file).read_text(encoding="utf-8"), re.M)
    return run if run and is_asked_for else file


class GroupScheduling(LoadFileScheduling):
    """Gives each group of tests to one of several processes, so that no fixture of a file or a run is made twice."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupScheduling:
    """Schedule by group, whatever `--dist` says."""
    config.option.loadscopereorder = False  # the order is that of the next function
    return GroupScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that share a run, so that none of several processes ends with them."""
    items.sort(key=lambda item: group_of(item.nodeid.partition("::")[0]) not in SHARED_RUNS.values())


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a case of packed bytes by its argument: gzip writes the time into them, and processes must agree on it."""
    return argname if isinstance(val, bytes) and val.startswith(b"\x1f\x8b") else None


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real corpora, through COCITE_SHARED or beside the checkout; skips where it is absent."""
    folder = Path(os.environ.get("COCITE_SHARED", ROOT.parent / "shared")).resolve()
    if not (folder / "data" / "releases").is_dir():
        pytest.skip(f"no real corpora: COCITE_SHARED is not set and {folder} holds none")
    return folder


@pytest.fixture(scope="session")
def read_rows() -> Callable[[Path], Rows]:
    """A reading of a dataset's folder, or of one shard, that shares no code with the program."""

    def read(source: Path) -> Rows:
        rows: Rows = []
        for path in sorted(source.glob("*.gz")) if source.is_dir() else [source]:
            rows += [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        return rows

    return read
