"""Looking inside a finished run, as the README and the cookbook tell; and a newcomer's first walk in a fresh clone."""

import json
import re
import shlex
import subprocess
import sys

import duckdb
import pytest
from tests.cookbook import recipes
from tests.workflow.conftest import ROOT, SMALL
from typer.testing import CliRunner

from cocite.cli import app
from cocite.tools.documentation import cookbook_page

COOKBOOK = (ROOT / "docs/cookbook.md").read_text()
RECIPES = {recipe.question: recipe for recipe in recipes(COOKBOOK)}
WALK = (ROOT / "README.md").read_text().split("\n## A first walk\n")[1].split("\n## ")[0]
COMMANDS = [line.partition("  #")[0].strip() for line in re.findall(r"^    (.+)$", WALK, flags=re.MULTILINE)]
PYTHON = re.search(r"```python\n(.*?)```", WALK, flags=re.DOTALL)[1]


@pytest.fixture
def database(finished):
    with duckdb.connect(finished.folder / "results/cocite.duckdb", read_only=True) as database:
        yield database


@pytest.fixture
def cocite(finished, monkeypatch):
    """Runs a command in the folder of the finished run, and returns what it prints."""
    monkeypatch.chdir(finished.folder)
    return lambda *arguments: CliRunner().invoke(app, arguments, catch_exceptions=False).stdout


@pytest.mark.end_to_end
def test_the_ten_questions_of_the_cookbook_are_answered_in_the_columns_on_the_page(database):
    assert len(RECIPES) == COOKBOOK.count("\n## ") == 10
    for question, recipe in RECIPES.items():
        answer = database.execute(recipe.query)
        assert [name for name, *_ in answer.description] == recipe.columns, question
        assert answer.fetchall(), question
    written = cookbook_page(COOKBOOK, database)
    assert list(recipes(written)) == list(RECIPES.values())
    assert cookbook_page(written, database) == written


@pytest.mark.end_to_end
def test_the_tables_that_are_listed_are_those_of_the_database(cocite, database):
    listed = {row["table"]: row["rows"] for row in json.loads(cocite("show", "--format", "json"))}
    views = database.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    assert set(listed) == {name for (name,) in views}
    assert listed["papers"] == SMALL["corpus"]["demo"]["papers"]


@pytest.mark.end_to_end
def test_the_first_walk_of_the_readme_leads_to_neighbours_and_to_a_search(finished, cocite, database):
    made, asked, listed, neighbours, embedded, searched = (shlex.split(command) for command in COMMANDS)
    assert made == ["make", "run"]
    assert "finished" in cocite(*asked[1:])
    assert "neighbours" in cocite(*listed[1:])
    ((query, nearest),) = database.sql(
        "SELECT query, neighbour FROM neighbours WHERE embedding = 'cocitation-dot' AND rank = 1 ORDER BY query LIMIT 1"
    ).fetchall()
    assert json.loads(cocite(*neighbours[1:-1], str(query), "--format", "json"))[0]["corpusid"] == nearest
    targets = [embedded[-1].replace("{0..1}", str(bucket)) for bucket in (0, 1)]
    assert finished.snakemake(*embedded[1:-1], *targets).returncode == 0
    assert len(json.loads(cocite(*searched[1:], "--format", "json"))) == 10


@pytest.mark.long
@pytest.mark.end_to_end
def test_the_lines_of_python_in_the_readme_run(finished):
    command = [sys.executable, "-c", f"{PYTHON}\nprint(vectors.shape)"]
    result = subprocess.run(command, cwd=finished.folder, capture_output=True, text=True, check=False)
    assert result.stdout == "(100, 32)\n", result.stderr


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_first_walk_of_the_readme_works_in_a_fresh_clone(tmp_path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    printed = []
    for command in COMMANDS:
        step = subprocess.run(["bash", "-c", command], cwd=clone, capture_output=True, text=True, check=False)
        assert step.returncode == 0, f"{command}: {step.stdout[-2000:]}{step.stderr[-2000:]}"
        printed.append(step.stdout)
    assert (clone / "results/report/index.html").stat().st_size > 10_000
    *_, neighbours, _, searched = printed
    assert neighbours.startswith("Paper 100000047, ")
    assert all("bounding boxes" in " ".join(part.split()) for part in searched.split("rank", 1))  # asked and found
    subprocess.run([".venv/bin/python", "-c", PYTHON], cwd=clone, check=True)
    subprocess.run([".venv/bin/cocite", "docs", "cookbook"], cwd=clone, check=True)
    # The other answers depend on sums of floats, whose last digits differ between machines.
    written = (clone / "docs/cookbook.md").read_text()
    assert [answered(number, written) for number in "125"] == [answered(number, COOKBOOK) for number in "125"]


def answered(number: str, page: str) -> str:
    """A question of the cookbook with all that belongs to it."""
    return page.split(f"\n## {number}. ")[1].split("\n## ")[0]
