"""Looking inside a finished run, as the tutorial and the cookbook tell; what a newcomer types, in a fresh clone."""

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
TUTORIAL = (ROOT / "docs/tutorial.md").read_text()
COMMANDS = re.findall(r"^    ((?:make|\.venv/bin)\S* .+)$", TUTORIAL, flags=re.MULTILINE)
PYTHON = re.search(r"```python\n(.*?)```", TUTORIAL, flags=re.DOTALL)[1]
(OWN,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)


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
def test_the_questions_of_the_cookbook_are_answered_in_the_columns_on_the_page(database):
    assert len(RECIPES) == COOKBOOK.count("\n## ") == 6
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
def test_the_commands_of_the_tutorial_lead_to_neighbours_and_to_a_search(finished, cocite, database):
    ((query, nearest),) = database.sql(
        "SELECT query, neighbour FROM neighbours WHERE embedding = 'cocitation-dot' AND rank = 1 ORDER BY query LIMIT 1"
    ).fetchall()
    finished.make(*(f"results/encoder/cocite/seed-1/papers/{bucket}.parquet" for bucket in (0, 1)))
    commands = [shlex.split(command.replace("100000047", str(query))) for command in COMMANDS]
    *shown, searched = [cocite(*words[1:]) for words in commands if words[0] == ".venv/bin/cocite"]
    assert all(shown)
    found = cocite("show", "neighbours", "--of", "cocitation-dot", "--paper", str(query), "--format", "json")
    assert json.loads(found)[0]["corpusid"] == nearest
    assert searched.startswith("Nearest to “word alignment")


@pytest.mark.long
@pytest.mark.end_to_end
def test_the_lines_of_python_in_the_tutorial_run(finished):
    result = subprocess.run([sys.executable, "-c", PYTHON], cwd=finished.folder, capture_output=True, text=True)
    assert result.stdout == "(100, 32)\n", result.stderr


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_configuration_of_the_readme_runs_as_it_stands_on_two_tables(finished, database, run):
    papers = "SELECT corpusid AS id, title, abstract, year FROM papers"
    database.sql(f"COPY ({papers}) TO '{run.folder}/papers.csv' (HEADER)")
    citations = "SELECT citing, cited FROM citations"
    database.sql(f"COPY ({citations}) TO '{run.folder}/citations.csv' (HEADER)")
    (run.folder / "my.yaml").write_text(OWN)
    run.make("all", config=run.folder / "my.yaml")
    page = (run.folder / "results/mine/report/index.html").read_text()
    assert "found" in page


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_tutorial_can_be_followed_to_its_end_in_a_fresh_clone(tmp_path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    printed = []
    for command in COMMANDS:
        if "--dry-run" in command:  # after the one change
            config = (clone / "config.yaml").read_text()
            assert config.count("loss: mnrl") == 1
            (clone / "config.yaml").write_text(config.replace("loss: mnrl", "loss: triplet"))
        step = subprocess.run(["bash", "-c", command], cwd=clone, capture_output=True, text=True, check=False)
        assert step.returncode == 0, f"{command}: {step.stdout[-2000:]}{step.stderr[-2000:]}"
        printed.append(step.stdout)
        if command.startswith(".venv/bin/cocite search"):
            subprocess.run([".venv/bin/python", "-c", PYTHON], cwd=clone, check=True)
            subprocess.run([".venv/bin/cocite", "docs", "cookbook"], cwd=clone, check=True)
    assert (clone / "results/report/index.html").stat().st_size > 10_000
    assert any(text.startswith("Paper 100000047, ") for text in printed)
    # The other answers depend on sums of floats, whose last digits differ between machines.
    written = (clone / "docs/cookbook.md").read_text()
    assert [answered(number, written) for number in "12"] == [answered(number, COOKBOOK) for number in "12"]


def answered(number: str, page: str) -> str:
    """A question of the cookbook with all that belongs to it."""
    return page.split(f"\n## {number}. ")[1].split("\n## ")[0]
