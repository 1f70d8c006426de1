"""SciRepEval from the hub: its file layout, what is taken of it, and what is said where it cannot be had."""

import pytest
from tests.evaluation.folders import read_benchmark, write_parquet
from tests.hub import COMMIT, serve_hub

from cocite.config.benchmarks import TASKS
from cocite.config.benchmarks.scirepeval import TASKS as SCIREPEVAL
from cocite.config.benchmarks.scirepeval import splits_to_fetch
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.evaluation.preparation.readers import fetch_config, prepare_folder

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


@pytest.fixture
def fetch(tmp_path, monkeypatch):
    """Fetch some splits of a config from the hub at a URL into a folder."""
    monkeypatch.setenv("NO_PROXY", "*")

    def fetch_from(url, half, config, splits):
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", url)
        template = f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
        where = {"state": tmp_path / ".state" / half / config, "output": tmp_path / half / config}
        fetch_config(config, dataset=DATASETS[half], revision=COMMIT, splits=",".join(splits), **where)

    return fetch_from


def test_a_benchmark_is_fetched_config_by_config_and_read_offline(hub, fetch, tmp_path):
    url, asked = hub
    tasks = [TASKS[name] for name in ("relish", "paper_reviewer_matching_hard", "paper_reviewer_matching_soft")]
    tables = tmp_path / "tables"
    for (half, config), splits in splits_to_fetch(tasks).items():
        fetch(url, half, config, splits)
    prepare_folder(tmp_path, kind="scirepeval", tables=tables, omissions=tables / "omissions.parquet")
    benchmark = read_benchmark(tables)
    assert benchmark.judgements["relish"] == {"a": {"b": 2, "c": 0}}
    assert benchmark.judgements["paper_reviewer_matching_soft"] == {"p": {"r": 1}}
    assert benchmark.reviewers == {"r": {"a", "b"}}
    assert read_table(tables / "documents.parquet", "documents")["document"].to_pylist() == ["a", "b", "c", "p"]
    taken = {path.rpartition(f"/resolve/{COMMIT}/")[2] for path in asked if "/resolve/" in path}
    assert not [path for path in taken if path.endswith(".py") or "train" in path or path.startswith("fos")]
    assert not list((tmp_path / ".state").rglob("*.parquet"))


def test_every_config_of_the_benchmark_is_fetched_once_with_all_its_splits():
    asked = splits_to_fetch(SCIREPEVAL)
    labels = {config: splits for (half, config), splits in asked.items() if half == "test"}
    assert (len(asked) - len(labels), len(labels)) == (17, 22 + 1)
    assert (labels["fos"], labels["search"], labels["reviewers"]) == (["train", "test"], ["test"], ["metadata"])
    assert labels["paper_reviewer_matching"] == ["test_hard", "test_soft"]


def test_a_hub_that_cannot_be_reached_is_reported_with_what_to_do(fetch, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    said = (
        f"lab/labels at {COMMIT} cannot be fetched from the hub.* run that step where there is a network.* name a local"
    )
    with pytest.raises(InputError, match=said):
        fetch("http://127.0.0.1:9", "test", "relish", ["test"])
    assert not (tmp_path / "test").exists()


def test_a_revision_that_holds_only_scripts_is_refused(hub, fetch, tmp_path):
    said = "has no Parquet or JSON Lines files of search, split evaluation; pin a commit"
    with pytest.raises(InputError, match=said):
        fetch(hub[0], "metadata", "search", ["evaluation"])
    assert not (tmp_path / "metadata").exists()
