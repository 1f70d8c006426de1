"""Fixtures that every stage's tests share."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

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

RUNS = {"cluster", "finished"}
"""Fixtures that take longest: what shares one comes first, so that no process of several ends with it."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of a file, and those that share a run, in one process where there are several."""
    if config.getoption("dist", "no") == "loadgroup":
        for item in items:
            shared = RUNS.intersection(item.fixturenames)
            item.add_marker(pytest.mark.xdist_group(*(shared or [item.nodeid.partition("::")[0]])))
        items.sort(key=lambda item: not RUNS.intersection(item.fixturenames))


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
