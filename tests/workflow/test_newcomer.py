"""A newcomer's first walk: the commands of the README, one after the other, in a fresh clone."""

import subprocess

import pytest
from tests.workflow.conftest import ROOT
from tests.workflow.readme import first_walk, python_of


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_first_walk_of_the_readme_works_in_a_fresh_clone(tmp_path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    printed = {}
    for command in first_walk():
        step = subprocess.run(["bash", "-c", command], cwd=clone, capture_output=True, text=True, check=False)
        assert step.returncode == 0, f"{command}: {step.stdout[-2000:]}{step.stderr[-2000:]}"
        printed[command] = step.stdout
    assert (clone / "results/report/index.html").stat().st_size > 10_000
    *_, neighbours, _, searched = printed.values()
    assert neighbours.startswith("Paper 100000047, ")
    asked, found = searched.split("rank", 1)
    assert "bounding boxes" in asked
    assert "bounding boxes" in " ".join(found.split())
    subprocess.run([".venv/bin/python", "-c", python_of("A first walk")], cwd=clone, check=True)
    # The other answers depend on sums of floats, whose last digits differ between machines.
    page = (clone / "docs/cookbook.md").read_text()
    subprocess.run([".venv/bin/cocite", "docs", "cookbook"], cwd=clone, check=True)
    written = (clone / "docs/cookbook.md").read_text()
    assert [section(number, written) for number in "125"] == [section(number, page) for number in "125"]


def section(number: str, page: str) -> str:
    """A question of the cookbook with all that belongs to it."""
    return page.split(f"\n## {number}. ")[1].split("\n## ")[0]
