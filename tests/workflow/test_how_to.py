"""A loss, a sampler and a benchmark task of one's own, added as the how-to pages say: one class each, and no more."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest
import yaml
from tests.workflow.conftest import ROOT, SMALL, Run

from cocite.core.tables.files import read_table

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


RECIPES = {name: read_recipe(ROOT / f"docs/how-to/new-{name}.md") for name in ("loss", "sampler", "task")}


@pytest.mark.parametrize("name", RECIPES)
def test_a_page_has_its_reader_write_few_lines_to_one_file(name):
    recipe = RECIPES[name]
    assert (ROOT / recipe.file).exists() == (name == "loss")
    written = [recipe.module, *recipe.scripts, yaml.safe_dump(recipe.configuration)]
    assert sum(len(text.splitlines()) for text in written) < MOST_LINES


@pytest.fixture(scope="module")
def extended(finished: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The finished run, gone on with after each page was followed in a copy of the project."""
    folder = tmp_path_factory.mktemp("extended")
    project, run = folder / "project", finished.copy(folder / "run")
    project.mkdir()
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, project / name)
    config = {section: dict(entry) if isinstance(entry, dict) else entry for section, entry in SMALL.items()}
    for recipe in RECIPES.values():
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


def scores(run: Run, benchmark: str, task: str, model: str) -> pl.DataFrame:
    table = pl.read_parquet(run.folder / f"results/evaluation/{benchmark}/scores/small/{model}.parquet")
    return table.filter(task=task)


@pytest.mark.long
@pytest.mark.end_to_end
def test_a_new_loss_trains_a_model_a_new_task_scores_all_and_nothing_else_is_made_again(extended, finished):
    before, after = models_and_triplets(finished), models_and_triplets(extended)
    assert {path: after[path] for path in before} == before
    assert {path.parts[2] for path in after.keys() - before.keys()} == {"soft", "strongest"}
    assert '"sharpness": 2.0' in (extended.folder / "results/encoder/soft/seed-1/settings.json").read_text()
    assert scores(extended, "holdout", "cite", "soft-1").height == 2
    values = {run: scores(extended, "own", "own_field", run)["value"].to_list() for run in RUNS}
    assert {len(found) for found in values.values()} == {3}
    assert max(values["cocite-1"]) > max(values["random-0"])


@pytest.mark.long
@pytest.mark.end_to_end
def test_the_new_sampler_takes_the_papers_most_often_co_cited_and_random_ones_that_never_were(extended):
    results = extended.folder / "results"
    pairs = pl.read_parquet(results / "graph/cocitation/cocitations/*.parquet")
    twins = dict(
        pl.read_parquet(results / "corpus/queries.parquet").drop_nulls("work").select("corpusid", "work").rows()
    )
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
