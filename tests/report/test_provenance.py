"""The provenance names what made the results and whose the data are; the corpus has its size, and rules their costs."""

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
from cocite.core.progress import Usage
from cocite.core.tables.files import read_table, write_table
from cocite.report import provenance
from cocite.report.figures import draw_pair_counts
from cocite.report.inputs import size_of_corpus
from cocite.report.provenance import (
    costs_of_rules,
    describe_machine,
    read_jobs,
    time_at_work,
    write_corpus_statistics,
    write_costs,
    write_provenance,
)

COLUMNS = ["rule", "jobs", "seconds", "longest_seconds", "cpu_seconds", "peak_mb"]


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
        ("query papers: heldout", "1"),
        ("query papers: train", "1"),
    ]
    assert counts.select("graph", "count", "pairs").rows() == [("g", 1, 2), ("g", 3, 1)]


def test_without_graphs_of_pairs_there_are_none_to_draw(corpus, tmp_path):
    _, counts = described(corpus, {})
    assert len(counts) == 0
    draw_pair_counts(counts, {}, tmp_path / "pairs.svg")
    assert "pairs" in texts((tmp_path / "pairs.svg").read_text())


def note(path, *took):
    """The log of a job that was run once for each (seconds, seconds of the processors, MB)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (Usage(seconds=seconds, cpu_seconds=cpu, peak_mb=peak) for seconds, cpu, peak in took)
    path.write_text("".join(f"at work\n{line}\n" for line in lines))


def costs(folder, **logs):
    """The rows of the table of rules with these logs, by the rule."""
    write_costs(read_jobs({rule: f"{folder}/l/{log}" for rule, log in logs.items()}, None), folder / "costs.parquet")
    return {row["rule"]: row for row in read_table(folder / "costs.parquet", "costs").to_pylist()}


def test_jobs_of_a_rule_are_summed_and_the_largest_is_stated(tmp_path):
    note(tmp_path / "l/graph/g/count-0.log", (2.0, 1.5, 100))
    note(tmp_path / "l/graph/h/count-1.log", (3.0, 2.5, 50))
    note(tmp_path / "l/graph/g/edges-0.log", (9.0, 1.0, 1))
    found = costs(tmp_path, count_pairs="graph/{graph}/count-{bucket}.log", train="train.log")
    assert {rule: tuple(row[name] for name in COLUMNS[1:]) for rule, row in found.items()} == {
        "count_pairs": (2, 5.0, 3.0, 4.0, 100.0)
    }


def test_of_a_repeated_job_the_last_run_counts_and_of_one_that_has_not_finished_none(tmp_path):
    note(tmp_path / "l/list-0.log", (2.0, 1.0, 1), (5.0, 1.0, 1))
    (tmp_path / "l/list-1.log").write_text("at work\n")
    row = costs(tmp_path, list="list-{n}.log")["list"]
    assert (row["jobs"], row["seconds"]) == (1, 5.0)


def test_rules_that_share_their_logs_are_named_together_and_a_log_is_of_the_rule_that_says_most_of_it(tmp_path):
    for name in ("edges-0", "score-fos-random-0", "score-fos-cocite-1"):
        note(tmp_path / f"l/{name}.log", (1.0, 1.0, 1))
    logs = {"weigh": "edges-{bucket}.log", "combine": "edges-{bucket}.log"}
    logs |= {"model": "score-{task}-{model}-{seed}.log", "random": "score-{task}-random-0.log"}
    found = {rule: row["jobs"] for rule, row in costs(tmp_path, **logs).items()}
    assert found == {"combine or weigh": 1, "model": 1, "random": 1}


def shown(*rows, at_work):
    return costs_of_rules(pl.DataFrame(rows, schema=COLUMNS, orient="row"), at_work).rows()


def test_the_longest_rule_comes_first_and_all_together_last_in_which_snakemake_is_no_job():
    rows = [("short", 1, 5.0, 5.0, 30.0, 1200.0), ("long", 1, 3700.0, 3600.0, 30.0, 1200.0)]
    assert shown(*rows, ("snakemake", 1, 3702.0, 3702.0, 2.0, 90.0), at_work=3702.0) == [
        ("snakemake", "1", "1:01:42", "1:01:42", "0:00:02", "90"),
        ("long", "1", "1:01:40", "1:00:00", "0:00:30", "1,200"),
        ("short", "1", "0:00:05", "0:00:05", "0:00:30", "1,200"),
        ("all together", "2", "1:01:42", "1:00:00", "0:01:02", "1,200"),
    ]


def test_the_time_at_work_counts_jobs_side_by_side_once_and_pauses_not_at_all(tmp_path):
    logs = {"r": f"{tmp_path}/l/{{n}}.log"}
    assert time_at_work(read_jobs(logs, None)) == 0.0
    # From 100 to 110; from 105 to 115, beside it; within the second; and after a pause.
    jobs = [(1_000_110.0, 10.0), (1_000_115.0, 10.0), (1_000_112.0, 1.0), (1_009_000.0, 20.0)]
    for number, (end, seconds) in enumerate(jobs):
        note(tmp_path / f"l/{number}.log", (seconds, 1.0, 1))
        os.utime(tmp_path / f"l/{number}.log", (end, end))
    assert time_at_work(read_jobs(logs, None)) == pytest.approx(15.0 + 20.0)
