"""The terms that are stated are those of what was used, and no others."""

import pytest
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.terms import (
    generated_benchmarks,
    has_generated_corpus,
    terms_of_benchmark,
    terms_of_corpus,
    terms_of_encoder,
)
from cocite.core.tables.files import read_json

ODC_BY = "LICENSE\nThis collection is licensed under ODC-BY."


def run(source="s2", readme="", benchmarks=None, encoders=None, **more):
    corpus = {"source": source, **({"path": "/home/someone/my-papers"} if source == "directory" else {})}
    configuration = {"corpus": corpus, "benchmarks": benchmarks or {}, "encoders": encoders or {}}
    return {"configuration": configuration, "readmes": {"papers": readme}, **more}


def test_semantic_scholar_is_named_where_its_data_are():
    assert "ODC-BY" in terms_of_corpus(run("s2"))


def test_openalex_is_named_where_its_data_are_and_tables_have_an_owner():
    assert "CC0" in terms_of_corpus(run("openalex"))
    assert "owner of the tables" in terms_of_corpus(run("table"))


def test_a_generated_corpus_is_free_and_is_not_that_of_semantic_scholar():
    terms = terms_of_corpus(run("demo"))
    assert "may be used freely" in terms
    assert "ODC-BY" not in terms


def test_the_terms_of_a_folder_are_those_of_its_owner_and_its_files_are_named():
    terms = terms_of_corpus(run("directory", release_files=["ATTRIBUTION.md", "release.json"]))
    assert "owner of the release in the folder my-papers" in terms
    assert "ATTRIBUTION.md, release.json" in terms
    assert "ODC-BY" not in terms
    assert "/home/someone" not in terms


def test_a_folder_whose_readme_says_that_it_is_of_semantic_scholar_has_their_terms():
    assert "ODC-BY" in terms_of_corpus(run("directory", f"Semantic Scholar Academic Graph Datasets\n{ODC_BY}"))
    assert "owner" in terms_of_corpus(run("directory", "Papers of the university library"))


def test_a_folder_with_a_generated_release_is_known_by_what_that_says_of_itself(tmp_path):
    settings = ["--papers", "300", "--topics", "4", "--shards", "1", "--seed", "1", "--release", "2026-01-06"]
    made = CliRunner().invoke(app, ["demo", "release", *settings, "--output", str(tmp_path / "release")])
    assert made.exit_code == 0, made.output
    readme = (tmp_path / "release/papers/README.txt").read_text()
    assert read_json(tmp_path / "release/release.json")["papers"] == 300
    assert has_generated_corpus(run("directory", readme))
    assert not has_generated_corpus(run("directory", f"Semantic Scholar\n{ODC_BY}"))


BENCHMARKS = {
    "own": {"kind": "holdout"},
    "made": {"kind": "scirepeval", "folder": "demo"},
    "real": {"kind": "scirepeval", "folder": "/data/scirepeval"},
    "hub": {"kind": "scirepeval", "hub": {}},
}


def test_generated_are_the_demos_benchmark_and_holdouts_of_a_generated_corpus():
    assert generated_benchmarks(run("demo", benchmarks=BENCHMARKS)) == ["own", "made"]
    assert generated_benchmarks(run("s2", benchmarks=BENCHMARKS)) == ["made"]


def test_a_benchmark_of_others_has_the_terms_of_its_publishers_and_says_whom_to_cite():
    provenance = run(benchmarks=BENCHMARKS)
    assert "Singh et al., 2023" in terms_of_benchmark("real", provenance)
    assert "Singh et al., 2023" in terms_of_benchmark("hub", provenance)
    assert "Singh" not in terms_of_benchmark("made", provenance)
    assert "corpus" in terms_of_benchmark("own", provenance)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"build": {"layers": 2}}, "its weights are random"),
        ({"package": "tiny_bert"}, "states the licence MIT"),
        ({"model": "allenai/scibert", "revision": 40 * "a"}, "owner of allenai/scibert"),
        ({"model": "/models/mine"}, "owner of the encoder in the folder mine"),
    ],
)
def test_an_encoder_has_the_terms_of_where_it_comes_from(entry, expected):
    provenance = run(encoders={"e": entry}, packages={"tiny_bert": {"version": "1.0", "license": "MIT"}})
    assert expected in terms_of_encoder("e", provenance)
