"""Looking inside a finished run, as the README and the cookbook tell."""

import json
import shlex
import subprocess
import sys

import duckdb
import pytest
from tests.cookbook import recipes
from tests.workflow.conftest import ROOT, SMALL
from tests.workflow.readme import first_walk, python_of
from typer.testing import CliRunner

from cocite.cli import app
from cocite.tools.documentation import cookbook_page

pytestmark = pytest.mark.end_to_end

COOKBOOK = (ROOT / "docs/cookbook.md").read_text()
RECIPES = {recipe.question: recipe for recipe in recipes(COOKBOOK)}


@pytest.fixture
def database(finished):
    with duckdb.connect(finished.folder / "results/cocite.duckdb", read_only=True) as database:
        yield database


@pytest.fixture
def cocite(finished, monkeypatch):
    """Runs a command in the folder of the finished run, and returns what it prints."""
    monkeypatch.chdir(finished.folder)

    def run(*arguments):
        return CliRunner().invoke(app, arguments, catch_exceptions=False).stdout

    return run


def test_the_cookbook_has_ten_questions():
    assert len(RECIPES) == COOKBOOK.count("\n## ") == 10


@pytest.mark.parametrize("question", RECIPES)
def test_each_question_of_the_cookbook_is_answered_in_the_columns_on_the_page(database, question):
    answer = database.execute(RECIPES[question].query)
    assert [name for name, *_ in answer.description] == RECIPES[question].columns
    assert answer.fetchall()


def test_the_cookbook_is_written_again_with_the_same_questions(database):
    written = cookbook_page(COOKBOOK, database)
    assert list(recipes(written)) == list(RECIPES.values())
    assert cookbook_page(written, database) == written


def test_the_tables_that_are_listed_are_those_of_the_database(cocite, database):
    listed = {row["table"]: row["rows"] for row in json.loads(cocite("show", "--format", "json"))}
    assert set(listed) == {
        name for (name,) in database.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    }
    assert listed["papers"] == SMALL["corpus"]["demo"]["papers"]


def test_the_first_walk_of_the_readme_leads_to_neighbours_and_to_a_search(finished, cocite, database):
    made, asked, listed, neighbours, embedded, searched = (shlex.split(command) for command in first_walk())
    assert made == ["make", "run"]
    assert (finished.folder / "results/report/index.html").is_file()
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
def test_the_lines_of_python_in_the_readme_run(finished):
    lines = python_of("A first walk") + "\nprint(vectors.shape)"
    command = [sys.executable, "-c", lines]
    result = subprocess.run(command, cwd=finished.folder, capture_output=True, text=True, check=False)
    assert result.stdout == "(100, 32)\n", result.stderr
