"""Releases that the tests of this stage share."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cocite.demo.release import generate_release

Rows = list[dict[str, Any]]
ReadRows = Callable[[Path], Rows]


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of 1,200 papers on 12 topics, two in each field."""
    folder = tmp_path_factory.mktemp("generated") / "release"
    generate_release(folder, release="2026-01-06", papers=1200, topics=12, shards=3, seed=7)
    return folder


@pytest.fixture(scope="session")
def read_rows() -> ReadRows:
    """A reading of a dataset's folder, or of one shard, that shares no code with the program."""

    def read(source: Path) -> Rows:
        rows: Rows = []
        for path in sorted(source.glob("*.gz")) if source.is_dir() else [source]:
            rows += [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        return rows

    return read
