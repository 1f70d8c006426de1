"""SciRepEval from the hub: its file layout, what is taken of it, and what is said where it cannot be had."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.evaluation.folders import read_benchmark, write_parquet
from tests.hub import COMMIT, serve_hub

from cocite.config.benchmarks import TASKS
from cocite.config.benchmarks.scirepeval import TASKS as SCIREPEVAL
from cocite.config.benchmarks.scirepeval import splits_to_fetch
from cocite.core.tables.files import read_table
from cocite.evaluation.preparation.readers import prepare_folder

DATASETS = {"metadata": "lab/texts", "test": "lab/labels"}


def write(path, *rows):
    write_parquet(path, rows)


@pytest.fixture
def hub(tmp_path):
    """A hub with texts in the layout of its main branch and labels in that of refs/convert/parquet."""
    texts, labels = tmp_path / "hub/texts", tmp_path / "hub/labels"
    documents = [{"doc_id": name, "title": f"title {name}", "abstract": None} for name in "abcp"]
    write(texts / "relish/evaluation-00000-of-00002.parquet", *documents[:2])
    write(texts / "relish/evaluation-00001-of-00002.parquet", *documents[2:])
    write(texts / "relish/train-00000-of-00001.parquet", {"doc_id": "z", "title": "z", "abstract": None})
    write(texts / "paper_reviewer_matching/evaluation-00000-of-00001.parquet", *documents)
    write(texts / "fos/evaluation-00000-of-00001.parquet", *documents)
    (texts / "scirepeval.py").write_text("raise RuntimeError")
    judged = [{"query_id": "a", "cand_id": name, "score": score} for name, score in (("b", 2), ("c", 0))]
    write(labels / "relish/test/0000.parquet", *judged)
    for split in ("test_hard", "test_soft"):
        write(labels / f"paper_reviewer_matching/{split}/0000.parquet", {"query_id": "p", "cand_id": "r", "score": 1})
    write(labels / "reviewers/metadata/0000.parquet", {"r_id": "r", "papers": ["a", "b"]})
    with serve_hub({"lab/texts": texts, "lab/labels": labels}) as (url, asked):
        yield url, asked


def fetch(url, folder, half, config, splits, **environment):
    command = [Path(sys.executable).with_name("cocite"), "evaluation", "fetch", config]
    options = {
        **{"dataset": DATASETS[half], "revision": COMMIT, "splits": ",".join(splits)},
        **{"state": folder / ".state" / half / config, "output": folder / half / config},
    }
    arguments = [str(part) for name, value in options.items() for part in (f"--{name}", value)]
    environment |= {"HF_ENDPOINT": url, "HF_HOME": str(folder / "home"), "PATH": "", "NO_PROXY": "*"}
    return subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, check=False)


def test_a_benchmark_is_fetched_config_by_config_and_read_offline(hub, tmp_path):
    url, asked = hub
    tasks = [TASKS[name] for name in ("relish", "paper_reviewer_matching_hard", "paper_reviewer_matching_soft")]
    folder, tables = tmp_path / "fetched", tmp_path / "tables"
    for (half, config), splits in splits_to_fetch(tasks).items():
        result = fetch(url, folder, half, config, splits)
        assert result.returncode == 0, result.stderr
    prepare_folder(folder, kind="scirepeval", tables=tables, omissions=tables / "omissions.parquet")
    benchmark = read_benchmark(tables)
    assert benchmark.judgements["relish"] == {"a": {"b": 2, "c": 0}}
    assert benchmark.judgements["paper_reviewer_matching_soft"] == {"p": {"r": 1}}
    assert benchmark.reviewers == {"r": {"a", "b"}}
    assert read_table(tables / "documents.parquet", "documents")["document"].to_pylist() == ["a", "b", "c", "p"]
    taken = {path.rpartition(f"/resolve/{COMMIT}/")[2] for path in asked if "/resolve/" in path}
    assert not [path for path in taken if path.endswith(".py") or "train" in path or path.startswith("fos")]
    assert not list((folder / ".state").rglob("*.parquet"))


def test_every_config_of_the_benchmark_is_fetched_once_with_all_its_splits():
    asked = splits_to_fetch(SCIREPEVAL)
    labels = {config: splits for (half, config), splits in asked.items() if half == "test"}
    assert (len(asked) - len(labels), len(labels)) == (17, 22 + 1)
    assert (labels["fos"], labels["search"], labels["reviewers"]) == (["train", "test"], ["test"], ["metadata"])
    assert labels["paper_reviewer_matching"] == ["test_hard", "test_soft"]


def test_a_hub_that_cannot_be_reached_is_reported_with_what_to_do(tmp_path):
    result = fetch("http://127.0.0.1:9", tmp_path, "test", "relish", ["test"], HF_HUB_OFFLINE="1")
    assert result.returncode != 0
    assert f"lab/labels at {COMMIT} cannot be fetched from the hub" in result.stderr
    assert "run that step where there is a network" in result.stderr
    assert "name a local folder in place of hub" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "test").exists()


def test_a_revision_that_holds_only_scripts_is_refused(hub, tmp_path):
    result = fetch(hub[0], tmp_path, "metadata", "search", ["evaluation"])
    assert result.returncode != 0
    assert "has no Parquet or JSON Lines files of search, split evaluation; pin a commit" in result.stderr
    assert not (tmp_path / "metadata").exists()
