"""What `cocite doctor` says of a configuration, of what it names, of a machine, and of a cluster and its profile."""

import http.server
import math
import os
import re
import shutil
import threading
from types import SimpleNamespace

import pytest
import yaml
from tests.corpus.made_openalex import work, write_copy
from tests.releases.server import serve_copy
from tests.tools.builders import invoke

from cocite.config import folders
from cocite.config.configuration import resolve
from cocite.core import memory
from cocite.corpus.release import plan
from cocite.tools import cluster, machine


@pytest.fixture
def complete():
    """A whole configuration whose largest model asks for 9,000 MB."""
    model = {"triplets": "t", "encoder": "e", "seeds": [1]}
    models = {"small": model, "large": {**model, "memory_mb": 9000, "threads": 6}}
    made_of = {"triplets": {"t": {"sampler": "random"}}, "encoders": {"e": {"build": {}}}}
    return resolve({"release": "2026-01-06", "corpus": {"source": "demo"}, **made_of, "models": models})


CLOSED = "http://127.0.0.1:9"


def from_api(url):
    return {"release": "2026-01-06", "corpus": {"source": "s2", "api": url}}


def test_the_demo_can_run_here(tmp_path, monkeypatch):
    (tmp_path / "config.yaml").write_text('release: "2026-01-06"\ncorpus: {source: demo}\n')
    monkeypatch.chdir(tmp_path)
    result = invoke("doctor")
    assert result.exit_code == 0, result.output
    assert "failed" not in result.output
    assert "needs no key" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


def test_all_that_is_wrong_is_reported_at_once_with_the_configuration_among_it(tmp_path, monkeypatch):
    monkeypatch.delenv("S2_API_KEY", raising=False)
    wrong = {**from_api(CLOSED), "run_seed": -1, "models": {"m": {"loss": "none"}}}
    (tmp_path / "my.yaml").write_text(yaml.safe_dump(wrong))
    monkeypatch.chdir(tmp_path)
    result = invoke("doctor", "--configfile", "my.yaml", "--profile", "nowhere")
    assert result.exit_code == 1
    failed = [line for line in result.output.splitlines() if line.startswith("failed")]
    for words in ("seed is -1", "models.m.loss is 'none'", "S2_API_KEY is not set", "nowhere/config.yaml does not"):
        assert any(words in line for line in failed), words
    assert any(line.startswith("ok") and "libraries" in line for line in result.output.splitlines())


@pytest.mark.parametrize("content", [None, "release: a\nrelease: b\n", "- no keys\n"])
def test_a_configuration_that_cannot_be_read_stops_no_other_finding(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "config.yaml").write_text(content)
    result = invoke("doctor")
    assert result.exit_code == 1
    assert result.output.startswith("failed  — config.yaml")
    assert "FAISS" in result.output
    assert "the working folder" in result.output


@pytest.mark.parametrize(("key", "verdict"), [("good", "ok"), ("bad", "failed")])
def test_the_key_is_tried_at_the_api_and_not_shown(monkeypatch, key, verdict):
    asked = []

    class Api(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200 if self.headers.get("x-api-key") == "good" else 403)
            self.end_headers()

    monkeypatch.setenv("S2_API_KEY", key)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        finding = machine.access(from_api(f"http://127.0.0.1:{server.server_port}"))
        server.shutdown()
    assert finding.verdict == verdict
    assert asked == ["/release/2026-01-06/dataset/papers"]
    assert key not in str(finding).split()


@pytest.mark.parametrize(
    ("folder", "verdict", "said"),
    [("data/jsonl", "ok", "answers, and needs no key"), ("data/parquet", "failed", "has no manifest")],
)
def test_a_copy_of_openalex_is_asked_for_its_manifest_without_a_key(tmp_path, monkeypatch, folder, verdict, said):
    monkeypatch.setenv("S2_API_KEY", "good")
    write_copy(tmp_path / "bucket", "jsonl", [work(1)])
    requests = []
    with serve_copy(tmp_path / "bucket", requests=requests) as origin:
        corpus = {"source": "openalex", "format": "jsonl", "url": f"{origin}/{folder}"}
        pathvars = {"results": str(tmp_path / "results")}
        findings = list(machine.examine_source({"release": "2026-06-24", "corpus": corpus, "pathvars": pathvars}))
    assert (findings[0].verdict, said in findings[0].what) == (verdict, True)
    assert [finding.verdict for finding in findings] == (["ok", "ok"] if verdict == "ok" else ["failed"])
    assert "good" not in str(requests)


@pytest.mark.parametrize("corpus", [{"source": "s2", "api": CLOSED}, {"source": "openalex", "url": CLOSED}])
def test_a_source_that_cannot_be_reached_is_reported_at_once(monkeypatch, corpus):
    monkeypatch.setenv("S2_API_KEY", "good")
    (finding,) = machine.examine_source({"release": "2026-06-24", "corpus": corpus})
    assert (finding.verdict, finding.what) == ("failed", f"{CLOSED} cannot be reached (ConnectionError)")


def test_folders_that_cannot_be_written_to_and_full_disks_are_reported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    config = {"pathvars": {"results": "new/results", "logs": "file/logs"}}
    assert [finding.verdict for finding in machine.examine_places(config)] == ["ok", "failed", "ok", "ok"]
    assert not (tmp_path / "new").exists()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=5 * 10**8))
    full = next(machine.examine_places(config))
    assert (full.verdict, "500.0 MB free" in full.what) == ("warning", True)


def test_a_disk_that_can_only_be_read_is_an_obstacle(tmp_path, monkeypatch):
    usual = os.statvfs(tmp_path)
    read_only = os.statvfs_result([*usual[:8], usual.f_flag | os.ST_RDONLY, *usual[9:]])
    monkeypatch.setattr(os, "statvfs", lambda path: read_only)
    assert "is on a disk that can only be read" in folders.obstacle(tmp_path / "results")


def test_a_full_disk_is_reported(tmp_path, monkeypatch):
    demo = {"source": "demo", "buckets": 2, "keep_raw": False, "keep_ingested": False}
    corpus = {**demo, "demo": {"papers": 1000, "shards": 2}}
    planned = {"release": "2026-01-06", "pathvars": {"results": str(tmp_path)}, "corpus": corpus}
    for free, verdict in ((1000, "failed"), (10**12, "ok")):
        monkeypatch.setattr(plan.shutil, "disk_usage", lambda folder, free=free: SimpleNamespace(free=free))
        assert machine.disk(planned).verdict == verdict


def test_tables_need_no_key_and_a_column_that_is_not_there_is_found_before_a_run(tmp_path):
    (tmp_path / "papers.csv").write_text("doi,title\na,A\n")
    (tmp_path / "citations.csv").write_text("from,to\na,b\n")
    papers = {"files": f"{tmp_path}/papers.csv", "columns": {"id": "doi"}}
    citations = {"files": f"{tmp_path}/citations.csv", "columns": {"citing": "from", "cited": "to"}}
    corpus = {"source": "table", "ids": "string", "papers": papers, "citations": citations}
    config = {"release": "mine", "corpus": corpus, "pathvars": {"results": f"{tmp_path}/results"}}
    assert [finding.verdict for finding in machine.examine_source(resolve(config))] == ["ok", "ok"]
    papers["columns"]["title"] = "name"
    key, disk = machine.examine_source(resolve(config))
    assert (key.what, disk.verdict) == ("the source table needs no key", "failed")
    assert "has no column name, which corpus.papers.columns.title names; it has doi, title." in disk.to_do


def test_an_old_python_and_another_version_of_a_library_are_reported():
    assert machine.python((3, 10)).verdict == "failed"
    assert machine.python((3, 11)).verdict == "ok"
    (finding,) = machine.libraries("numpy==0.1\n")
    assert (finding.verdict, "numpy" in finding.what) == ("warning", True)


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
    monkeypatch.setattr(memory, "LIMITS", (tmp_path / "memory.max", tmp_path / "none"))
    assert machine.total_memory() == 2000
    assert machine.available_memory() <= 2000
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.total_memory() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 10**6


def test_what_rules_ask_for_is_read_from_them(complete):
    found = cluster.least_requests(complete)
    rules = "".join(path.read_text() for path in cluster.rule_files())
    written = set(re.findall(r"^ *(?:use rule \w+ as |rule )(\w+)(?: with)?:$", rules, re.MULTILINE))
    of_tables, of_works = {"ingest_tables", "list_names", "number_names", "number_ids"}, {"ingest_works", "reuse_works"}
    assert set(found) == written - {"fetch_triplets", "fetch_benchmark"} - of_tables - of_works
    on_works = cluster.least_requests({**complete, "corpus": {"source": "openalex", "base": "older"}})
    assert on_works.keys() - found.keys() == of_works
    on_tables = cluster.least_requests({**complete, "corpus": {"source": "table", "ids": "string"}})
    assert on_tables.keys() - found.keys() == of_tables
    of_shards = {"download_shards", "ingest", "ingest_with_authors", "ingest_with_contexts"}
    assert found.keys() - on_tables.keys() == of_shards
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
    assert found["first"] == found["second"] == {"memory_mb": 700, "minutes": 10, "threads": 2}
    assert found["third"] == {"memory_mb": 700, "minutes": 10, "threads": 4}
    assert found["small"] == {"memory_mb": 100, "minutes": 0, "threads": 1}


PROFILE = cluster.RULES.parent / "profiles/slurm"
WITH_ACCOUNTS = "echo 'AccountingStorageType   = accounting_storage/slurmdbd'; echo 'MinJobAge = 300 sec'"


@pytest.fixture
def profile(tmp_path):
    """A folder with a profile for the partition `small`."""
    resources = {"slurm_partition": "small", "slurm_account": "ours"}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"default-resources": resources}))
    return tmp_path


def programs(folder, monkeypatch, **scripts):
    """Make these scripts, and nothing else, what is on the PATH."""
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_the_delivered_profile_is_incomplete_until_the_site_is_set():
    findings = list(cluster.site(PROFILE, ["small"]))
    assert [finding.verdict for finding in findings] == ["failed", "failed"]
    assert all("is still your-" in finding.what for finding in findings)


@pytest.mark.parametrize(
    ("content", "verdicts"),
    [
        ("executor: slurm\n", ["warning"]),
        ("default-resources:\nset-resources:\n", ["warning"]),
        ("default-resources: [slurm_partition=small, slurm_account=ours]\n", ["ok", "ok"]),
        ("default-resources: slurm_partition=small\n", ["ok"]),
        ("default-resources: 5\n", ["failed"]),
        ("set-threads: 5\n", ["failed"]),
        ("default-resources: {slurm_partition: small}\nset-resources: {a: {slurm_partition: b}}\n", ["failed", "ok"]),
        ("default-resources: {\n", ["failed"]),
        ("- a list\n", ["failed"]),
    ],
)
def test_a_profile_in_any_form_is_read(tmp_path, content, verdicts):
    (tmp_path / "config.yaml").write_text(content)
    assert [finding.verdict for finding in cluster.site(tmp_path, ["small"])] == verdicts


@pytest.mark.parametrize(
    ("answer", "verdicts"),
    [
        (WITH_ACCOUNTS, ["ok"]),
        ("echo 'AccountingStorageType   = (null)'; echo 'MinJobAge = 300 sec'", ["warning"]),
        ("echo 'AccountingStorageType = accounting_storage/none'; echo 'MinJobAge = 5 sec'", ["warning", "failed"]),
        ("exit 1", ["warning"]),
    ],
)
def test_a_slurm_that_forgets_jobs_before_they_are_checked_is_reported(tmp_path, monkeypatch, answer, verdicts):
    programs(tmp_path, monkeypatch, scontrol=answer)
    assert [finding.verdict for finding in cluster.memory_of_jobs()] == verdicts


def test_a_partition_that_slurm_does_not_have_is_reported_with_those_that_it_has(profile, monkeypatch):
    programs(profile, monkeypatch, sinfo="echo huge; echo large", scontrol=WITH_ACCOUNTS)
    answers = list(cluster.examine_cluster(profile))
    assert [finding.verdict for finding in answers] == ["ok", "ok", "failed", "ok"]
    assert "use one of huge, large" in answers[2].to_do


def test_no_slurm_is_not_reported_as_a_slurm_that_does_not_answer(profile, monkeypatch):
    programs(profile, monkeypatch)
    assert "not on the PATH" in next(cluster.examine_cluster(profile)).what
    programs(profile, monkeypatch, sinfo="echo unable to contact the controller >&2; exit 1")
    assert "unable to contact the controller" in next(cluster.examine_cluster(profile)).what


def test_times_of_slurm_are_read_in_all_their_forms():
    times = ["30:00", "4:00:00", "1-00:00:00", "2-12", "1-06:30", "45", "infinite", "n/a"]
    assert [*map(cluster.in_minutes, times)] == [30, 240, 1440, 3600, 1830, 0.75, math.inf, math.inf]


NODES = "small|4:00:00|4|8000\nsmall|4:00:00|8+|16000+\nlarge|infinite|64|512000\n"


def test_a_partition_grants_what_its_largest_node_has():
    assert cluster.read_limits(NODES) == {
        "small": {"minutes": 240, "memory_mb": 16000, "threads": 8},
        "large": {"minutes": math.inf, "memory_mb": 512000, "threads": 64},
    }


SMALL, LARGE = {"slurm_partition": "small"}, {"slurm_partition": "large"}
TOO_LONG = "failed: partition small grants 240 minutes, and train_encoder asks for 1440"
UP_TO_A_DAY = "warning: partition small grants 240 minutes, and jobs with a large input ask for up to a day"
FEW_THREADS = "failed: partition small grants 8 threads, and count_pairs asks for 16"
NOT_ENOUGH_THREADS = "failed: partition large grants 64 threads, and count_pairs asks for 65"
LITTLE_MEMORY = "failed: partition large grants 512000 MB of memory, and ingest asks for 600000"
ENOUGH = "ok: partition large grants what its rules ask for at least"


@pytest.mark.parametrize(
    ("default", "others", "expected"),
    [
        (SMALL, {"set-threads": {"count_pairs": 16}}, [TOO_LONG, FEW_THREADS]),
        ("slurm_partition=large", {"set-threads": ["count_pairs=65"]}, [NOT_ENOUGH_THREADS]),
        (["slurm_partition=small"], {"set-resources": {"train_encoder": {"runtime": 200}}}, [UP_TO_A_DAY]),
        (LARGE, {"set-resources": {"ingest": {"mem_mb": 600000}}}, [LITTLE_MEMORY]),
        (SMALL, {"set-resources": {"train_encoder": ["slurm_partition=large"]}}, [ENOUGH, UP_TO_A_DAY]),
        ({"slurm_partition": "unknown"}, {}, []),
    ],
)
def test_partitions_are_compared_with_what_rules_ask_for_there(complete, default, others, expected):
    written = {"default-resources": default, **others}
    found = cluster.compare(cluster.read_limits(NODES), cluster.least_requests(complete), written)
    assert sorted(f"{finding.verdict}: {finding.what}" for finding in found) == expected


def test_limits_are_asked_of_slurm_for_the_profile(complete, profile, monkeypatch):
    answer = 'case "$*" in *--Node*) echo "small|1:00:00|2|4000";; *) echo small;; esac'
    programs(profile, monkeypatch, sinfo=answer, scontrol=WITH_ACCOUNTS)
    failed = [finding.what for finding in cluster.examine_cluster(profile, complete) if finding.verdict == "failed"]
    assert failed == [
        "partition small grants 60 minutes, and train_encoder asks for 1440",
        "partition small grants 4000 MB of memory, and train_encoder asks for 9000",
        "partition small grants 2 threads, and train_encoder asks for 6",
    ]
