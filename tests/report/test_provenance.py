"""The provenance names what made the results and whose the data are; the corpus is described by its size and pairs."""

import json
import os
import platform
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from tests.papers import papers_table
from tests.report.conftest import texts

from cocite.core.atomic import read_json, write_json
from cocite.core.tables.files import read_table, write_table
from cocite.report import provenance
from cocite.report.figures import draw_pair_counts
from cocite.report.inputs import size_of_corpus
from cocite.report.provenance import describe_machine, write_corpus_statistics, write_provenance


def written(tmp_path, **configuration):
    datasets = {"papers": {"shards": [1, 2], "readme": "Papers of ours."}}
    write_json(tmp_path / "manifest.json", {"release": "2026-01-06", "datasets": datasets})
    (tmp_path / "configuration.json").write_text(json.dumps({"corpus": {"source": "s2"}, **configuration}))
    files = {name: tmp_path / f"{name}.json" for name in ("configuration", "manifest")}
    write_provenance(**files, spaces="[]", output=tmp_path / "provenance.json", ids=tmp_path / "id_spaces.parquet")
    return read_json(tmp_path / "provenance.json")


def test_it_keeps_the_order_of_the_configuration_and_what_the_release_says_of_its_datasets(tmp_path):
    found = written(tmp_path, models={"second": {"seeds": [1]}, "first": {"seeds": [1]}})
    assert list(found["configuration"]["models"]) == ["second", "first"]
    assert (found["release"], found["shards"]) == ("2026-01-06", {"papers": 2})
    assert found["readmes"] == {"papers": "Papers of ours."}
    assert found["versions"]["python"] == platform.python_version()


def test_it_names_the_files_that_say_whose_a_release_in_a_folder_is(tmp_path):
    release = tmp_path / "mine"
    (release / "papers").mkdir(parents=True)
    for name in ("release.json", "ATTRIBUTION.md", "README.md", "labels.tsv"):
        (release / name).touch()
    found = written(tmp_path, corpus={"source": "directory", "path": str(release)})
    assert found["release_files"] == ["ATTRIBUTION.md", "README.md", "release.json"]


def test_it_has_the_version_and_the_licence_of_a_package_that_carries_an_encoder(tmp_path):
    found = written(tmp_path, encoders={"e": {"package": "pytest"}, "f": {"package": "no_such_package"}})
    assert found["packages"] == {"pytest": {"version": pytest.__version__, "license": "MIT"}}


def test_it_describes_the_machine(tmp_path, monkeypatch):
    found = written(tmp_path)["machine"]
    assert found["cores"] == os.cpu_count()
    named = [line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal")]
    assert found["memory_mb"] == pytest.approx(int(named[0].split()[1]) * 1024 / 1e6, rel=0.01)
    assert found["processor"]
    (tmp_path / "cpuinfo").write_text("processor : 0\nBogoMIPS : 50.00\n")
    monkeypatch.setattr(provenance, "PROCESSORS", tmp_path / "cpuinfo")
    assert describe_machine()["processor"] == platform.machine()


def test_gpus_are_those_that_the_driver_lists(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'NVIDIA H200'\necho 'NVIDIA H200'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert describe_machine()["gpus"] == ["NVIDIA H200", "NVIDIA H200"]
    program.write_text("#!/bin/sh\necho 'no driver' >&2\nexit 9\n")
    assert describe_machine()["gpus"] == []


@pytest.fixture
def corpus(tmp_path):
    for bucket, words in enumerate([{2: ("t", "a"), 4: ("u", None)}, {1: ("v", "b")}]):
        write_table(tmp_path / f"corpus/papers/{bucket}.parquet", "papers", papers_table(words))
    for bucket, (citing, cited) in enumerate([([2, 4], [1, 1]), ([1], [4])]):
        nothing = {"influential": [False] * len(citing), "intents": pa.array([[]] * len(citing), pa.list_(pa.string()))}
        rows = pa.table({"citing": citing, "cited": cited, **nothing})
        write_table(tmp_path / f"corpus/citations/{bucket}.parquet", "citations", rows)
    queries = pa.table({"corpusid": [1, 2], "split": ["heldout", "train"]})
    write_table(tmp_path / "corpus/queries.parquet", "queries", queries)
    pairs = pa.table({"paper": [1, 1, 2], "other": [2, 4, 4], "count": [1, 3, 1]})
    write_table(tmp_path / "graph/g/cocitations/0.parquet", "cocitations", pairs)
    return tmp_path


def described(results, pairs):
    paths = {"statistics": results / "statistics.parquet", "counts": results / "counts.parquet"}
    write_corpus_statistics(results=results, pairs=json.dumps(pairs), memory_mb=500, threads=1, **paths)
    statistics = read_table(paths["statistics"], "corpus_statistics")
    return pl.DataFrame(statistics), pl.DataFrame(read_table(paths["counts"], "pair_counts"))


def test_papers_texts_citations_queries_and_pairs_are_counted(corpus):
    statistics, counts = described(corpus, {"g": "cocitations"})
    assert size_of_corpus(statistics).rows() == [
        ("papers", "3"),
        ("papers with text", "2"),
        ("citations", "3"),
        ("papers: heldout", "1"),
        ("papers: train", "1"),
    ]
    assert counts.select("graph", "count", "pairs").rows() == [("g", 1, 2), ("g", 3, 1)]


def test_without_graphs_of_pairs_there_are_none_to_draw(corpus, tmp_path):
    _, counts = described(corpus, {})
    assert len(counts) == 0
    draw_pair_counts(counts, {}, tmp_path / "pairs.svg")
    assert "pairs" in texts((tmp_path / "pairs.svg").read_text())
