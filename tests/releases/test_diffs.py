"""The server answers for diffs as the Datasets API is known to, from the folder of a release and its predecessors."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.releases.server import serve

KEY = {"x-api-key": "right"}
FIRST, SECOND, THIRD = "2026-01-06", "2026-01-13", "2026-01-20"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A release that follows two others; the second step leaves abstracts as they are and removes no paper."""
    described = {"release_id": THIRD, "earlier_releases": [FIRST, SECOND], "datasets": ["papers", "abstracts"]}
    (tmp_path / "release.json").write_text(json.dumps(described))
    for path in (
        "papers/20260120_000000_00000_papers.gz",
        f"updates/{FIRST}-to-{SECOND}/papers/20260113_1.gz",
        f"updates/{FIRST}-to-{SECOND}/papers/20260113_2.gz",
        f"deletes/{FIRST}-to-{SECOND}/papers/20260113_1.gz",
        f"updates/{FIRST}-to-{SECOND}/abstracts/20260113_1.gz",
        f"updates/{SECOND}-to-{THIRD}/papers/20260120_1.gz",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(gzip.compress(path.encode()))
    return tmp_path


@pytest.fixture
def url(folder: Path) -> Iterator[str]:
    with serve(folder, key="right") as url:
        yield url


def _diffs(url: str, start: str, end: str, dataset: str = "papers") -> dict[str, Any]:
    return requests.get(f"{url}/diffs/{start}/to/{end}/{dataset}", headers=KEY, timeout=5).json()


def test_all_known_releases_are_listed_and_only_the_newest_can_be_had_whole(url):
    assert requests.get(f"{url}/release/", timeout=5).json() == [FIRST, SECOND, THIRD]
    assert requests.get(f"{url}/release/latest", timeout=5).json()["release_id"] == THIRD
    for path in (f"release/{FIRST}", f"release/{SECOND}/dataset/papers"):
        assert requests.get(f"{url}/{path}", headers=KEY, timeout=5).status_code == 404


def test_the_answer_has_the_keys_of_the_published_description(url, shared):
    described = (shared / "data/s2-openapi/semantic-scholar-datasets-openapi.yml").read_text()
    answer = _diffs(url, FIRST, "latest")
    for name in [*answer, *answer["diffs"][0]]:
        assert re.search(rf"^ +{name}:$", described, re.MULTILINE)


@pytest.mark.parametrize(
    "path",
    [
        f"2025-01-01/to/{THIRD}/papers",
        f"{THIRD}/to/{FIRST}/papers",
        f"{FIRST}/to/{THIRD}/authors",
    ],
)
def test_diffs_that_do_not_exist_are_404(url, path):
    answer = requests.get(f"{url}/diffs/{path}", headers=KEY, timeout=5)
    assert answer.status_code == 404
    assert "error" in answer.json()
