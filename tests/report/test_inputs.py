"""What the models were made from, and whose the data are: tables, size of the corpus, provenance, terms of use."""

import json
import os
import platform
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from tests.configurations import recorded
from tests.papers import papers_table
from tests.report.conftest import drawn, texts

from cocite.config.origins import (
    generated_benchmarks,
    has_generated_corpus,
    terms_of_benchmark,
    terms_of_corpus,
    terms_of_encoder,
)
from cocite.core.atomic import read_json, write_json
from cocite.core.tables.files import read_table, write_omissions, write_table
from cocite.demo.release import generate_release
from cocite.report import provenance
from cocite.report.figures import draw_pair_counts
from cocite.report.inputs import (
    band_quality,
    graph_embeddings,
    leaks,
    leaks_by_text,
    leaks_in_words,
    omissions,
    searches,
    trained_models,
    triplet_sets,
)
from cocite.report.provenance import describe_machine, write_corpus_statistics, write_provenance


def test_a_graph_embedding_is_described_by_its_last_epoch_raw_and_filtered():
    rows = [(1, "mrr", True, 0.1), (2, "mrr", False, 0.25), (2, "mrr", True, 0.5), (2, "auc", False, 0.9)]
    table = pl.DataFrame(rows, ["epoch", "metric", "filtered", "value"], orient="row").with_columns(edges=1200)
    shared = {"embedding": "g", "graph": "cited", "epochs": "2", "held-out edges": "1,200"}
    configuration = {"embeddings": {"g": {"graph": "cited"}}, "corpus": {"source": "directory"}}
    assert graph_embeddings({"g": table}, recorded(configuration)).to_dicts() == [
        {**shared, "negatives": "raw", "MRR": "0.250", "AUC": "0.900"},
        {**shared, "negatives": "filtered", "MRR": "0.500", "AUC": None},
    ]
    of_s2 = graph_embeddings({"g": table}, recorded({**configuration, "corpus": {"source": "s2"}})).to_dicts()
    values = {(row["graph"], row["embedding"]): (row["mean rank"], row["MRR"], row["AUC"]) for row in of_s2[2:]}
    assert len(values) == 8
    assert values["CoCite, Table 6.6", "dot, 768"] == ("12.32", "0.65", "0.99")
    assert values["SciNCL, Table 5", "dot, 128"] == (None, "0.8975", "0.9770")


def test_omissions_are_listed_by_step_whose_jobs_count_together_without_entries_that_are_gone(tmp_path):
    write_omissions(tmp_path / "corpus/omissions/ingest.parquet", {"gone": 3, "never": 0})
    steps = {
        "corpus": {"merge-papers-0": 3, "merge-papers-10": 4, "read-triplets": 1, "update-papers-0": 1},
        "graph": {"a-edges-0": 1, "a-cocitations-0": 1, "a-b-edges-0": 1, "a-2-edges-0": 1, "a-2-edges-1": 1},
        "neighbours": {"a_0": 1, "a-b_0": 1},
        "triplets": {"cocite-25-1000": 5, "cocite-25-5000": 6, "a": 1},
    }
    for stage, counts in steps.items():
        for name, count in counts.items():
            write_omissions(tmp_path / stage / f"omissions/{name}.parquet", {"gone": count})
    configuration = {"queries": {"from": "rule"}, "corpus": {}, "graphs": {"a": {}, "a-2": {}}, "embeddings": {"a": {}}}
    configuration["triplets"] = {"cocite-25-1000": {}, "cocite-25-5000": {}}  # names may end in numbers
    assert sorted(omissions(tmp_path, recorded(configuration)).rows()) == [
        ("corpus", "ingest", "gone", 3),
        ("corpus", "merge-papers", "gone", 7),
        ("graph", "a-2-edges", "gone", 2),
        ("graph", "a-cocitations", "gone", 1),
        ("graph", "a-edges", "gone", 1),
        ("neighbours", "a", "gone", 1),
        ("triplets", "cocite-25-1000", "gone", 5),
        ("triplets", "cocite-25-5000", "gone", 6),
    ]


def test_only_searches_that_are_not_exact_are_listed_with_their_recall(tmp_path):
    row = {"metric": "l2", "index": "ivf", "k": 5000, "queries": 1200, "seconds": 0.4, "exact_seconds": 4.0}
    table = pa.Table.from_pylist([row | {"k": 10, "recall": 1.0}, row | {"recall": 0.98765}])
    write_table(tmp_path / "neighbours/listed/search_quality.parquet", "search_quality", table)
    kinds = {"exact": "flat", "listed": "ivf"}
    embeddings = {name: {"neighbours": {"index": {"kind": kind}}} for name, kind in kinds.items()}
    rows = searches(tmp_path, recorded({"embeddings": embeddings})).rows()
    assert rows[0][5] == "1.000"
    assert rows[1:] == [("listed", "ivf", "l2", "1,200", "5,000", "0.988", "0.4", "4.0")]


def test_leaks_are_listed_by_table_and_column_and_oracles_are_told_apart_from_them(tmp_path):
    counts = {"column_name": "query", "table_name": "t", "rows": 12000, "kept_out": 1500, "leaked": 0}
    paths = {"triplets/oracle/sampled_examples.parquet": "scirepeval", "triplets/t/triplets.parquet": None}
    rows = [{**counts, "path": path, "answers_of": answers} for path, answers in paths.items()]
    write_table(tmp_path / "corpus/leaks.parquet", "leaks", pa.Table.from_pylist(rows))
    found = leaks(tmp_path)
    assert found["answers of"].to_list() == ["scirepeval", "–"]
    summed = pl.DataFrame({"table": ["t", "t"], "papers found": ["1,200", "3"]})
    said = "2 columns of 1 tables were searched for papers that are kept out: 1,203 were found."
    assert leaks_in_words(summed) == said
    said = "Tables of oracles, which contain the answers of scirepeval on purpose: 1."
    assert leaks_in_words(found).endswith(f"and none was found. {said}")
    edges = {**counts, "path": "graph/g/edges", "column_name": "source"}
    write_table(tmp_path / "corpus/leaks.parquet", "leaks", pa.Table.from_pylist([edges]))
    assert leaks(tmp_path).rows() == [("graph/g/edges", "source", "12,000", "1,500", "0")]


def test_an_embedding_has_a_row_for_each_way_to_be_related_and_a_column_a_band():
    columns = {"first_rank": [1, 6, 96], "last_rank": [5, 10, 100], "papers": [8, 10, 10], "cited": [2, 0, 0]}
    wide = pl.DataFrame({**columns, "cocited": [6, 5, 1]})
    table = band_quality({"wide": wide, "narrow": wide.head(2)})
    assert table.columns == ["embedding", "neighbours", "ranks 1–5", "ranks 6–10", "ranks 96–100"]
    assert table.rows() == [
        ("wide", "co-cited with the query", "75.0", "50.0", "10.0"),
        ("wide", "citing it or cited by it", "25.0", "0.0", "0.0"),
        ("narrow", "co-cited with the query", "75.0", "50.0", "–"),
        ("narrow", "citing it or cited by it", "25.0", "0.0", "–"),
    ]


def test_a_set_of_triplets_has_its_size_its_queries_and_its_checks_in_a_row():
    counts = pl.DataFrame({"split": ["train", "train", "validation"], "count": [0, 5, 5], "queries": [2, 300, 10]})
    rows = [("collision", "pairs", 3, 1500), ("in benchmark", "scirepeval", 0, 70), ("no text", "query", 0, 310)]
    checks = pl.DataFrame(rows, ["check", "part", "found", "among"], orient="row")
    assert len(band_quality({})) == len(triplet_sets({}, {})) == 0
    [row] = triplet_sets({"cocite": counts}, {"cocite": checks}).to_dicts()
    assert row == {
        **{"triplets": "cocite", "number": "1,550", "queries served": "310 of 312", "colliding pairs": "3 of 1,500"},
        **{"papers of scirepeval": "0 of 70", "query papers without text": "0 of 310"},
    }


def test_a_model_is_described_by_its_triplets_what_they_are_sampled_from_its_encoder_and_its_seeds():
    trained = {"encoder": "e", "loss": {"kind": "triplet"}, "trainable": {"kind": "all"}, "epochs": 2, "seeds": [1, 2]}
    further = {"loss": {"kind": "mnrl"}, "trainable": {"kind": "lora"}, "epochs": 1, "seeds": [3]}
    configuration = {
        "triplets": {"t": {"sampler": "neighbours", "embedding": "dot"}, "u": {"sampler": "union", "of": ["t", "s"]}},
        "models": {"m": {**trained, "triplets": "t"}, "n": {**trained, **further, "triplets": "u"}},
    }
    assert trained_models(recorded(configuration)).rows() == [
        ("m", "t", "neighbours", "dot", "e", "triplet", "all", "2", "1, 2"),
        ("n", "u", "union", "t, s", "e", "mnrl", "lora", "1", "3"),
    ]


def test_what_training_reads_of_other_papers_is_listed_with_examples(tmp_path):
    counts = {"texts": 12000, "by_id": 0, "by_twin": 1, "by_title": 2, "common_title": 3}
    found = [
        {"kind": "benchmark", "name": "beir", **counts, "examples": ["MED-1: Maps", "MED-2: Deep"]},
        {"kind": "split", "name": "holdout", **counts, "examples": []},
    ]
    write_table(tmp_path / "corpus/leaks_by_text.parquet", "leaks_by_text", pa.Table.from_pylist(found))
    shared = ("12,000", "0", "1", "2", "3")
    rows = [("documents of beir", *shared, "MED-1: Maps; MED-2: Deep"), ("held-out papers", *shared, "")]
    assert leaks_by_text(tmp_path).rows() == rows


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


def test_papers_texts_citations_queries_and_pairs_are_counted_if_there_are_any(corpus):
    statistics, counts = described(corpus, {"g": "cocitations"})
    assert statistics.select("measure", "value").rows() == [
        ("papers", 3),
        ("papers with text", 2),
        ("citations", 3),
        ("papers: heldout", 1),
        ("papers: train", 1),
    ]
    assert counts.select("graph", "count", "pairs").rows() == [("g", 1, 2), ("g", 3, 1)]
    _, none = described(corpus, {})
    assert len(none) == 0
    assert "pairs" in texts(drawn(corpus, draw_pair_counts, none, {}))


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
