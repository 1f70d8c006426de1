"""The terms that are stated are those of what was used, and no others."""

import pytest

from cocite.config.origins import (
    generated_benchmarks,
    has_generated_corpus,
    terms_of_benchmark,
    terms_of_corpus,
    terms_of_encoder,
)
from cocite.demo.release import generate_release

OF_S2 = "Semantic Scholar Academic Graph Datasets\nLICENSE\nThis collection is licensed under ODC-BY."
OF_SOURCES = {"s2": "ODC-BY", "openalex": "CC0", "table": "owner of the tables", "demo": "may be used freely"}


def run(source="s2", readme="", benchmarks=None, encoders=None, **more):
    corpus = {"source": source, **({"path": "/home/someone/my-papers"} if source == "directory" else {})}
    configuration = {"corpus": corpus, "benchmarks": benchmarks or {}, "encoders": encoders or {}}
    return {"configuration": configuration, "readmes": {"papers": readme}, **more}


@pytest.mark.parametrize(
    ("provenance", "said"),
    [
        *((run(source), [said]) for source, said in OF_SOURCES.items()),
        (
            run("directory", release_files=["ATTRIBUTION.md", "release.json"]),
            ["owner of the release in the folder my-papers", "ATTRIBUTION.md, release.json"],
        ),
        (run("directory", OF_S2), ["ODC-BY"]),
        (run("directory", "Papers of the university library"), ["owner"]),
    ],
)
def test_the_terms_of_a_corpus_are_those_of_whose_data_they_are(provenance, said):
    terms = terms_of_corpus(provenance)
    assert all(words in terms for words in said)
    assert ("ODC-BY" in terms) is (said == ["ODC-BY"])
    assert "/home/someone" not in terms


def test_a_folder_with_a_generated_release_is_known_by_what_that_says_of_itself(tmp_path):
    generate_release(tmp_path / "release", release="2026-01-06", papers=30, topics=4, shards=1, seed=1)
    readme = (tmp_path / "release/papers/README.txt").read_text()
    assert has_generated_corpus(run("directory", readme))
    assert not has_generated_corpus(run("directory", OF_S2))


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
    terms = {name: terms_of_benchmark(name, run(benchmarks=BENCHMARKS)) for name in BENCHMARKS}
    assert [name for name, said in terms.items() if "Singh et al., 2023" in said] == ["real", "hub"]
    assert "corpus" in terms["own"]


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
