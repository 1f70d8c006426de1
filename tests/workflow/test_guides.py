"""What the README, the tutorial, the cookbook and the how-to pages tell is done as they say, in a run.

A loss, a sampler and a benchmark task of one's own are one class each, and no more; `cocite start` leads from two
tables to the report, a search and a served search.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import polars as pl
import pytest
import yaml
from tests.cookbook import recipes
from tests.terminal import answer
from tests.tools.builders import invoke
from tests.workflow.conftest import ROOT, SMALL, Run

from cocite.core.tables.files import read_table
from cocite.tools.documentation import cookbook_page

COCITE = [sys.executable, "-c", "from cocite.cli import main; main()"]
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
    return lambda *arguments: invoke(*arguments).stdout


@pytest.fixture
def tables(database, run: Run) -> Run:
    """A folder with two tables of generated papers, and nothing else."""
    (run.folder / "config.yaml").unlink()
    columns = {"papers": "corpusid AS id, title, abstract, year", "citations": "citing, cited"}
    for name, selected in columns.items():
        database.sql(f"COPY (SELECT {selected} FROM {name}) TO '{run.folder}/{name}.csv' (HEADER)")
    return run


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
def test_the_configuration_of_the_readme_runs_as_it_stands_on_two_tables(tables):
    (tables.folder / "my.yaml").write_text(OWN)
    tables.make("all", config=tables.folder / "my.yaml")
    assert "found" in (tables.folder / "results/mine/report/index.html").read_text()


@pytest.mark.long
@pytest.mark.end_to_end
@pytest.mark.timeout(3600)
def test_answers_in_a_terminal_lead_from_two_tables_to_a_report_and_a_served_search(tables, monkeypatch):
    monkeypatch.chdir(tables.folder)
    replies = [("files of your own?", "files"), ("Table of papers", "papers.csv"), ("Table of cit", "citations.csv")]
    lines = [line for line in answer("start", replies).splitlines() if line.startswith("    ")]
    plan, command, search = (line.partition("  #")[0].strip() for line in lines)
    for each in (plan, command):
        subprocess.run(["bash", "-c", each], cwd=tables.folder, check=True)
    assert (tables.folder / "results/my/report/index.html").is_file()
    query = """
        SELECT corpusid, concat(title, ' ', abstract) FROM papers JOIN citations ON cited = corpusid
        WHERE has_text GROUP BY ALL ORDER BY count(*) DESC, corpusid LIMIT 1
    """
    with duckdb.connect(tables.folder / "results/my/cocite.duckdb", read_only=True) as database:
        ((most_cited, text),) = database.sql(query).fetchall()
    results = search.partition('search "…" ')[2].split()
    command = [*COCITE, "search", text, *results, "--format", "json"]
    found = subprocess.run(command, cwd=tables.folder, capture_output=True, text=True, check=True).stdout
    assert most_cited in [row["corpusid"] for row in json.loads(found)]
    serve = [*COCITE, "serve", *results, "--port", "0"]
    with subprocess.Popen(serve, cwd=tables.folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            url = next(match[0] for line in process.stderr if (match := re.search(r"http://127\.0\.0\.1:\d+/", line)))
            with urllib.request.urlopen(f"{url}api/run", timeout=60) as page:  # noqa: S310
                assert json.load(page)["models"][0]["name"].startswith("found")
        finally:
            process.terminate()


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
    answers = [page.split("\n## ")[1:3] for page in ((clone / "docs/cookbook.md").read_text(), COOKBOOK)]
    assert answers[0] == answers[1]


RUNS = ("cocite-1", "soft-1", "random-0")
ASKED = [
    "results/triplets/strongest/triplets.parquet",
    "results/encoder/strongest/seed-1/training_curves.parquet",
    "results/evaluation/holdout/scores/small/soft-1.parquet",
    *(f"results/evaluation/own/scores/small/{run}.parquet" for run in RUNS),
]
"""What shows that each of the three takes part; `all` would score every model on the new task."""


class Recipe(NamedTuple):
    """What a how-to page has its reader write: to one file, scripts that run in the working folder, and settings."""

    file: str
    module: str
    scripts: list[str]
    configuration: dict[str, Any]


def read_recipe(page: Path) -> Recipe:
    text = page.read_text(encoding="utf-8")
    (file,) = set(re.findall(r"\s`(workflow/[^`]+\.py)`:\n\n```python", text))
    module, *scripts = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    (entry,) = re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
    return Recipe(file, module, scripts, yaml.safe_load(entry))


PAGES = {name: read_recipe(ROOT / f"docs/how-to/new-{name}.md") for name in ("loss", "sampler", "task")}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_its_reader_write_few_lines_to_one_file(name):
    recipe = PAGES[name]
    assert (ROOT / recipe.file).exists() == (name == "loss")
    written = [recipe.module, *recipe.scripts, yaml.safe_dump(recipe.configuration)]
    assert sum(len(text.splitlines()) for text in written) < 60


@pytest.fixture(scope="module")
def extended(finished: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The finished run, gone on with after each page was followed in a copy of the project."""
    folder = tmp_path_factory.mktemp("extended")
    project, run = folder / "project", finished.copy(folder / "run")
    project.mkdir()
    shutil.copy2(ROOT / "Snakefile", project)
    for name in ("rules", "workflow", "envs"):
        shutil.copytree(ROOT / name, project / name)
    config = {section: dict(entry) if isinstance(entry, dict) else entry for section, entry in SMALL.items()}
    for recipe in PAGES.values():
        with (project / recipe.file).open("a", encoding="utf-8") as file:
            file.write(recipe.module)
        for script in recipe.scripts:
            subprocess.run([sys.executable, "-c", script], cwd=run.folder, check=True)
        for section, entries in recipe.configuration.items():
            config[section].update(entries)
    command = run.command(*ASKED, config=run.configure(config))
    command[command.index("--snakefile") + 1] = str(project / "Snakefile")
    environment = {**os.environ, "PYTHONPATH": str(project / "workflow")}  # before the package that is installed
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-5000:]
    return run


def models_and_triplets(run: Run) -> dict[Path, float]:
    """When they were made."""
    patterns = ("encoder/*/seed-*/training_curves.parquet", "triplets/*/triplets.parquet")
    paths = [path for pattern in patterns for path in (run.folder / "results").glob(pattern)]
    return {path.relative_to(run.folder): path.stat().st_mtime for path in paths}


def scores(run: Run, benchmark: str, task: str, model: str) -> list[float]:
    table = pl.read_parquet(run.folder / f"results/evaluation/{benchmark}/scores/small/{model}.parquet")
    return table.filter(task=task)["value"].to_list()


@pytest.mark.long
@pytest.mark.end_to_end
def test_a_new_loss_trains_a_model_a_new_task_scores_all_and_nothing_else_is_made_again(extended, finished):
    before, after = models_and_triplets(finished), models_and_triplets(extended)
    assert {path: after[path] for path in before} == before
    assert {path.parts[2] for path in after.keys() - before.keys()} == {"soft", "strongest"}
    assert '"sharpness": 2.0' in (extended.folder / "results/encoder/soft/seed-1/settings.json").read_text()
    assert len(scores(extended, "holdout", "cite", "soft-1")) == 2
    values = {run: scores(extended, "own", "own_field", run) for run in RUNS}
    assert {len(found) for found in values.values()} == {3}
    assert max(values["cocite-1"]) > max(values["random-0"])


@pytest.mark.long
@pytest.mark.end_to_end
def test_the_new_sampler_takes_the_papers_most_often_co_cited_and_random_ones_that_never_were(extended):
    results = extended.folder / "results"
    pairs = pl.read_parquet(results / "graph/cocitation/cocitations/*.parquet")
    queries = pl.read_parquet(results / "corpus/queries.parquet").drop_nulls("work")
    twins = dict(queries.select("corpusid", "work").rows())
    works = pairs.with_columns(pl.col("paper", "other").replace(twins)).filter(pl.col("paper") != pl.col("other"))
    both = pl.concat([works, works.rename({"paper": "other", "other": "paper"}).select(works.columns)])
    both = both.group_by("paper", "other").agg(pl.col("count").sum())  # of a work the records count together
    papers = pl.read_parquet(results / "corpus/papers/*.parquet", columns=["corpusid", "has_text"])
    with_text = papers.filter("has_text")["corpusid"].implode()
    ranked = both.filter(pl.col("other").is_in(with_text)).sort("count", "other", descending=[True, False])
    strongest = dict(ranked.group_by("paper", maintain_order=True).agg(pl.col("other").head(3)).iter_rows())
    cocited = dict(both.group_by("paper").agg("other").iter_rows())
    drawn = pl.from_arrow(read_table(results / "triplets/strongest/triplets.parquet", "triplets"))
    assert drawn.height > 100
    for (query,), triplets in drawn.group_by("query"):
        assert set(triplets["positive"]) == set(strongest[query])
        assert not set(triplets["negative"]) & set(cocited[query])
