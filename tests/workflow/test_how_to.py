"""A loss, a sampler and a benchmark task of one's own, added as the how-to pages say: one module each, and no more."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from tests.workflow.conftest import ROOT, SMALL, Run

from cocite.core.tables.files import read_table

PAGES = {name: ROOT / f"docs/how-to/new-{name}.md" for name in ("loss", "sampler", "task")}
COPIED = ("Snakefile", "rules", "workflow", "envs")
MOST_LINES = 60
RUNS = ("cocite-1", "soft-1", "random-0")
ASKED = [
    "results/triplets/strongest/triplets.parquet",
    "results/encoder/strongest/seed-1/training_curves.parquet",
    "results/evaluation/holdout/scores/small/soft-1.parquet",
    *(f"results/evaluation/own/scores/small/{run}.parquet" for run in RUNS),
]
"""What shows that each of the three takes part; `all` would score every model on the new task."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a how-to page has its reader write."""

    file: str
    """The one file of the project, which is new."""
    module: str
    scripts: list[str]
    """Python that is run in the working folder."""
    configuration: dict[str, Any]

    @property
    def lines(self) -> int:
        written = [self.module, *self.scripts, yaml.safe_dump(self.configuration)]
        return sum(len(text.splitlines()) for text in written)


def read_recipe(page: Path) -> Recipe:
    text = page.read_text(encoding="utf-8")
    (file,) = set(re.findall(r"\s`(workflow/[^`]+\.py)`:\n\n```python", text))
    module, *scripts = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    (entry,) = re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
    return Recipe(file=file, module=module, scripts=scripts, configuration=yaml.safe_load(entry))


RECIPES = {name: read_recipe(page) for name, page in PAGES.items()}


@pytest.fixture(scope="module")
def extended(finished: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The finished run, gone on with after each page was followed in a copy of the project."""
    folder = tmp_path_factory.mktemp("extended")
    project, results = folder / "project", folder / "run"
    project.mkdir()
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, project / name)
    shutil.copytree(finished.folder, results)
    config = {section: dict(entry) if isinstance(entry, dict) else entry for section, entry in SMALL.items()}
    for recipe in RECIPES.values():
        (project / recipe.file).write_text(recipe.module, encoding="utf-8")
        for script in recipe.scripts:
            subprocess.run([sys.executable, "-c", script], cwd=results, check=True)
        for section, entries in recipe.configuration.items():
            config[section].update(entries)
    run = Run(folder=results)
    command = run.command(*ASKED, config=run.configure(config))
    command[command.index("--snakefile") + 1] = str(project / "Snakefile")
    result = subprocess.run(command, env=_finding(project), capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-5000:]
    return run


def _finding(project: Path) -> dict[str, str]:
    """An environment in which Python finds the package of this copy before the one that is installed."""
    return {**os.environ, "PYTHONPATH": str(project / "workflow")}


@pytest.mark.parametrize("name", RECIPES)
def test_a_page_has_its_reader_write_one_new_file_of_few_lines(name):
    recipe = RECIPES[name]
    assert not (ROOT / recipe.file).exists()
    assert recipe.lines < MOST_LINES


@pytest.mark.long
@pytest.mark.end_to_end
def test_only_what_is_new_was_made(extended, finished):
    before = {path.relative_to(finished.folder): path.stat().st_mtime for path in _models_and_triplets(finished)}
    after = {path.relative_to(extended.folder): path.stat().st_mtime for path in _models_and_triplets(extended)}
    assert {path: after[path] for path in before} == before
    assert {path.parts[2] for path in after.keys() - before.keys()} == {"soft", "strongest"}


def _models_and_triplets(run: Run) -> list[Path]:
    results = run.folder / "results"
    return [*results.glob("encoder/*/seed-*/training_curves.parquet"), *results.glob("triplets/*/triplets.parquet")]


@pytest.mark.long
@pytest.mark.end_to_end
def test_a_model_with_the_new_loss_is_trained_and_scored(extended):
    settings = (extended.folder / "results/encoder/soft/seed-1/settings.json").read_text()
    assert '"sharpness": 2.0' in settings
    assert _scores(extended, "holdout", "cite", "soft-1").height == 2


@pytest.mark.long
@pytest.mark.end_to_end
def test_the_new_sampler_takes_the_papers_most_often_co_cited_and_random_ones_that_never_were(extended):
    results = extended.folder / "results"
    pairs = pl.concat([pl.read_parquet(file) for file in (results / "graph/cocitation/cocitations").glob("*.parquet")])
    both = pl.concat([pairs, pairs.rename({"paper": "other", "other": "paper"}).select(pairs.columns)])
    papers = pl.concat([pl.read_parquet(file) for file in (results / "corpus/papers").glob("*.parquet")])
    with_text = set(papers.filter("has_text")["corpusid"])
    counts: dict[int, dict[int, int]] = {}
    for paper, other, count in both.select("paper", "other", "count").iter_rows():
        counts.setdefault(paper, {})[other] = count
    drawn = pl.from_arrow(read_table(results / "triplets/strongest/triplets.parquet", "triplets"))
    assert drawn.height > 100
    for (query,), triplets in drawn.group_by("query"):
        of_query = {paper: count for paper, count in counts[query].items() if paper in with_text}
        strongest = sorted(of_query, key=lambda paper: (-of_query[paper], paper))[:3]
        assert set(triplets["positive"]) == set(strongest)
        assert not set(triplets["negative"]) & counts[query].keys()


@pytest.mark.long
@pytest.mark.end_to_end
def test_models_and_random_vectors_are_scored_on_the_new_task(extended):
    values = {run: _scores(extended, "own", "own_field", run)["value"].to_list() for run in RUNS}
    assert {len(found) for found in values.values()} == {3}
    assert max(values["cocite-1"]) > max(values["random-0"])


def _scores(run: Run, benchmark: str, task: str, model: str) -> pl.DataFrame:
    scores = pl.read_parquet(run.folder / f"results/evaluation/{benchmark}/scores/small/{model}.parquet")
    return scores.filter(task=task)
