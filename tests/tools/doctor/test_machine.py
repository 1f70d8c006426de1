"""What `cocite doctor` says of a machine, and of its memory beside what the rules ask for."""

import os
import re

import pytest

from cocite.tools import cluster, machine


def test_an_old_python_and_another_version_of_a_library_are_reported():
    assert machine.python((3, 10)).verdict == "failed"
    assert machine.python((3, 11)).verdict == "ok"
    (finding,) = machine.libraries("numpy==0.1\n")
    assert finding.verdict == "warning"
    assert "numpy" in finding.what


@pytest.mark.parametrize(
    ("total", "free", "granted", "verdict", "words"),
    [
        (8000, 7000, 4000, "failed", "train_encoder asks for 9000 MB, and this machine has 8000"),
        (16000, 15000, 20000, "failed", "jobs may take 20000 MB together, and this machine has 16000"),
        (16000, 15000, 4000, "warning", "train_encoder asks for 9000 MB, and all jobs together may take 4000"),
        (16000, 3000, 10000, "warning", "jobs may take 10000 MB together, and 3000 are free"),
        (16000, 15000, 10000, "ok", "15000 of 16000 MB free"),
    ],
)
def test_memory_is_compared_with_what_jobs_ask_for(complete, monkeypatch, total, free, granted, verdict, words):
    monkeypatch.setattr(machine, "total_memory", lambda: total)
    monkeypatch.setattr(machine, "available_memory", lambda: free)
    finding = machine.memory(complete, granted)
    assert (finding.verdict, words in finding.what) == (verdict, True), finding


def test_a_container_has_the_memory_that_it_is_granted(tmp_path, monkeypatch):
    (tmp_path / "memory.max").write_text("2000000000\n")
    monkeypatch.setattr(machine, "LIMITS", (tmp_path / "memory.max", tmp_path / "none"))
    assert machine.total_memory() == 2000
    assert machine.available_memory() <= 2000
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.total_memory() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 10**6


def test_what_rules_ask_for_is_read_from_them(complete):
    found = cluster.least_requests(complete)
    rules = "".join(path.read_text() for path in cluster.rule_files())
    written = set(re.findall(r"^ *(?:use rule \w+ as |rule )(\w+)(?: with)?:$", rules, re.MULTILINE))
    of_tables = {"ingest_tables", "list_names", "number_names", "number_ids"}
    of_works = {"ingest_works", "reuse_works"}
    assert set(found) == written - {"fetch_triplets", "fetch_benchmark"} - of_tables - of_works
    on_works = cluster.least_requests({**complete, "corpus": {"source": "openalex", "base": "older"}})
    assert on_works.keys() - found.keys() == of_works
    on_tables = cluster.least_requests({**complete, "corpus": {"source": "table", "ids": "string"}})
    assert on_tables.keys() - found.keys() == of_tables
    assert found.keys() - on_tables.keys() == {"download_shards", "ingest"}
    assert found["select_queries"] == {"memory_mb": 2000, "minutes": 10, "threads": 1}
    assert found["train_encoder"] == {"memory_mb": 9000, "minutes": 1440, "threads": 6}
    assert found["embed_papers"]["memory_mb"] == 1500
    assert cluster.least_requests({**complete, "gpu": True})["embed_papers"]["memory_mb"] == 4000


def test_a_rule_that_uses_another_asks_for_what_that_one_does_or_for_its_own(complete, tmp_path, monkeypatch):
    (tmp_path / "own.smk").write_text(
        "rule train_encoder:\n    threads: lookup()\n\n\n"
        "rule first:\n    threads: 2\n"
        "    resources:\n        mem_mb=megabytes(700),\n        runtime=minutes(10),\n\n\n"
        "if OWN:\n\n    use rule first as second with:\n        output:\n            a,\n\n\n"
        "use rule first as third with:\n    threads: 4\n\n\n"
        "rule small:\n    resources:\n        mem_mb=megabytes(100),\n"
    )
    monkeypatch.setattr(cluster, "RULES", tmp_path)
    found = cluster.least_requests(complete)
    assert found["first"] == {"memory_mb": 700, "minutes": 10, "threads": 2}
    assert found["second"] == {"memory_mb": 700, "minutes": 10, "threads": 2}
    assert found["third"] == {"memory_mb": 700, "minutes": 10, "threads": 4}
    assert found["small"] == {"memory_mb": 100, "minutes": 0, "threads": 1}
