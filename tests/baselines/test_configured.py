"""Baselines in the configuration: which are scored, and what is refused."""

import re
from pathlib import Path

import pytest
import yaml
from tests.baselines.tables import documents, embedded
from tests.configurations import refused

from cocite.config.configuration import configure
from cocite.config.runs import (
    baselines_with_vectors,
    beside_models,
    reported_on,
    runs_of,
    runs_that_rank_alone,
    trained_entries,
)
from cocite.plan.recorded import is_configured

ROOT = Path(__file__).parents[2]


@pytest.fixture
def written():
    """The default configuration without its index."""
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    del config["indexes"]
    return config


def baseline_runs(config):
    models = {f"{name}-{seed}" for name, entry in config.models.items() for seed in entry.seeds}
    return [run for run in runs_of(config) if run not in models and "_" not in run]


def test_bm25_popularity_and_random_vectors_are_scored_where_no_baselines_are_named(written):
    config = configure(written)
    assert baseline_runs(config) == ["bm25-0", "popularity-0", "random-0"]
    assert runs_that_rank_alone(config) == ["bm25-0", "popularity-0"]


def test_exactly_the_baselines_that_are_named_are_scored(written):
    named = {
        "words": {"kind": "bm25", "k1": 2.0},
        "ft": {"kind": "fasttext", "seeds": [4, 5]},
        "s": {"kind": "sif", "of": "ft"},
    }
    config = configure(written | {"baselines": named})
    assert baseline_runs(config) == ["words-0", "ft-4", "ft-5", "s-4", "s-5"]
    assert runs_that_rank_alone(config) == ["words-0"]
    assert baseline_runs(configure(written | {"baselines": {}})) == []


def test_brought_vectors_are_scored_on_the_benchmarks_that_they_are_for(written, tmp_path):
    (tmp_path / "v.jsonl").touch()
    named = {"theirs": {"kind": "brought", "path": str(tmp_path / "v.jsonl"), "benchmarks": ["holdout"]}}
    config = configure(written | {"baselines": named})
    assert "theirs-0" in runs_of(config, "holdout")
    assert "theirs-0" not in runs_of(config, "scirepeval")


def with_datasets(written, folder, *names):
    """A configuration with datasets in BEIR's layout."""
    for path in (Path(name, file) for name in names for file in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    beir = {"kind": "beir", "datasets": {name: str(folder / name) for name in names}}
    return written | {"benchmarks": {"holdout": {"kind": "holdout"}, "beir": beir}}


def test_reported_scores_are_read_on_benchmarks_with_tasks_of_mteb_and_are_no_run(written, tmp_path):
    (tmp_path / "SciFact.json").write_text("{}")
    named = {"theirs": {"kind": "reported", "path": str(tmp_path / "SciFact.json")}, "random": {"kind": "random"}}
    config = configure(with_datasets(written, tmp_path, "scifact", "own") | {"baselines": named})
    assert [reported_on(config, name) for name in ("holdout", "beir")] == [[], ["theirs"]]
    assert baseline_runs(config) == ["random-0"]
    assert baselines_with_vectors(config) == ["random"]
    assert beside_models(config) == []
    places = [{"benchmark": name, "baseline": "theirs"} for name in ("beir", "holdout")]
    places += [{"stage": "evaluation", "step": step} for step in ("beir_theirs", "beir_gone", "holdout_theirs")]
    assert [is_configured(place, config) for place in places] == [True, False, True, False, False]


@pytest.mark.parametrize(
    ("datasets", "files", "said"),
    [
        (["scifact"], [], r"baselines\.theirs\.path: .* contains no results of mteb: there is no <task>\.json"),
        (
            ["scifact"],
            ["a/1/SciFact.json", "b/1/SciFact.json"],
            r"contains results of 2 models or revisions \(a/1, b/1\)",
        ),
        (["own"], ["SciFact.json"], r"baselines\.theirs: no benchmark has a task of mteb, which kind: beir has with"),
    ],
)
def test_reported_scores_that_cannot_be_shown_are_refused(written, tmp_path, datasets, files, said):
    folder = tmp_path / "theirs"
    folder.mkdir()
    for path in files:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("{}")
    found = refused(
        with_datasets(written, tmp_path, *datasets), "baselines", {"theirs": {"kind": "reported", "path": str(folder)}}
    )
    assert re.search(said, found), found


@pytest.mark.parametrize(
    ("baselines", "said"),
    [
        ({"cocite": {"kind": "random"}}, "models.cocite: that name is a baseline's; give the model another"),
        ({"a": {"kind": "chess"}}, r"baselines\.a\.kind is 'chess'; it must be one of bm25, brought, citeomatic"),
        ({"a": {"kind": "random", "k1": 1.0}}, r"baselines\.a\.k1 does not go with kind: random"),
        ({"a": {"kind": "sif", "of": "b"}}, r"baselines\.a\.of names 'b', which baselines does not declare"),
        ({"a": {"kind": "sif", "of": "a"}}, r"baselines\.a\.of: a baseline cannot be derived from itself"),
        (
            {"a": {"kind": "sif", "of": "b"}, "b": {"kind": "doc2vec"}},
            r"baselines\.a\.of: the baseline b \(doc2vec\) has no word vectors; those of the kind fasttext have",
        ),
        ({"a": {"kind": "sif", "of": "b"}, "b": {"kind": "bm25"}}, r"the baseline b \(bm25\) has no vectors"),
        ({"a": {"kind": "fasttext", "min_n": 7}}, r"baselines\.a\.min_n \(7\) must be at least 1 and not exceed max_n"),
        ({"a": {"kind": "brought", "path": "/no/such.jsonl"}}, r"baselines\.a\.path: /no/such.jsonl does not exist"),
        ({"a": {"kind": "brought", "path": "Makefile"}}, r"baselines\.a\.path: Makefile is none of \.parquet"),
        (
            {"a": {"kind": "brought", "path": "tests", "benchmarks": ["x"]}},
            r"baselines\.a\.benchmarks names 'x', which benchmarks does not declare \(declared: holdout",
        ),
    ],
)
def test_baselines_that_cannot_be_scored_are_refused(written, baselines, said, monkeypatch):
    monkeypatch.chdir(ROOT)
    found = refused(written | {"baselines": {}}, "baselines", baselines)
    assert re.search(said, found), found


def test_the_published_grids_are_valid(shared, monkeypatch):
    monkeypatch.setenv("COCITE_SHARED", str(shared))
    trained = trained_entries(configure(yaml.safe_load((ROOT / "experiments/baselines.yaml").read_text())).baselines)
    assert sum(name.startswith("doc2vec_point-") for name in trained) == 27
    assert [entry.a for entry in trained.values() if entry.kind == "sif"] == [1e-5, 3e-5, 1e-4, 3e-4, 1e-3]


def test_the_example_of_the_documentation_embeds(tmp_path):
    [code] = re.findall(r"```python\n(.*?)```", (ROOT / "docs/how-to/new-baseline.md").read_text(), re.DOTALL)
    space: dict = {"__name__": "initials"}
    exec(code, space)  # noqa: S102
    source = documents(tmp_path / "documents.parquet", {"x": ("An apple", "bakes"), "y": (None, None)})
    found = embedded(space["Initials"](kind="initials", letters="abz"), source, tmp_path / "v.parquet")
    assert {name: vector.tolist() for name, vector in found.items()} == {"x": [2, 1, 0], "y": [0, 0, 0]}
