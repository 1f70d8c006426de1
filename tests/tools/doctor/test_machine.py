"""What `cocite doctor` says of a configuration, of the folders and the source that it names, and of a machine."""

import http.server
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


def from_api(url):
    return {"release": "2026-01-06", "corpus": {"source": "s2", "api": url}}


@pytest.fixture
def api():
    """The URL of an API on this machine that takes one key, and the paths that it was asked for."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200 if self.headers.get("x-api-key") == "good" else 403)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def test_the_demo_can_run_here(tmp_path, monkeypatch):
    config = {"release": "2026-01-06", "corpus": {"source": "demo"}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    monkeypatch.chdir(tmp_path)
    result = invoke("doctor")
    assert result.exit_code == 0, result.output
    assert "failed" not in result.output
    assert "needs no key" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


def test_all_that_is_wrong_is_reported_at_once_with_the_configuration_among_it(tmp_path, monkeypatch):
    monkeypatch.delenv("S2_API_KEY", raising=False)
    wrong = {**from_api("http://127.0.0.1:9"), "run_seed": -1, "models": {"m": {"loss": "none"}}}
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
def test_the_key_is_tried_at_the_api_and_not_shown(api, monkeypatch, key, verdict):
    url, asked = api
    monkeypatch.setenv("S2_API_KEY", key)
    finding = machine.access(from_api(url))
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


@pytest.mark.parametrize(
    "config",
    [
        from_api("http://127.0.0.1:9"),
        {"release": "2026-06-24", "corpus": {"source": "openalex", "url": "http://127.0.0.1:9"}},
    ],
)
def test_a_source_that_cannot_be_reached_is_reported_at_once(monkeypatch, config):
    monkeypatch.setenv("S2_API_KEY", "good")
    (finding,) = machine.examine_source(config)
    assert (finding.verdict, finding.what) == ("failed", "http://127.0.0.1:9 cannot be reached (ConnectionError)")


def test_folders_that_cannot_be_written_to_and_full_disks_are_reported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    config = {"pathvars": {"results": "new/results", "logs": "file/logs"}}
    verdicts = [finding.verdict for finding in machine.examine_places(config)]
    assert verdicts == ["ok", "failed", "ok", "ok"]
    assert not (tmp_path / "new").exists()
    usage = type(shutil.disk_usage(tmp_path))(10**12, 10**12, 5 * 10**8)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    full = next(machine.examine_places(config))
    assert (full.verdict, "500.0 MB free" in full.what) == ("warning", True)


def test_a_disk_that_can_only_be_read_is_an_obstacle(tmp_path, monkeypatch):
    usual = os.statvfs(tmp_path)
    read_only = os.statvfs_result([*usual[:8], usual.f_flag | os.ST_RDONLY, *usual[9:]])
    monkeypatch.setattr(os, "statvfs", lambda path: read_only)
    assert "is on a disk that can only be read" in folders.obstacle(tmp_path / "results")


def test_a_full_disk_is_reported(tmp_path, monkeypatch):
    config = {"release": "2026-01-06", "pathvars": {"results": str(tmp_path)}}
    demo = {"source": "demo", "buckets": 2, "keep_raw": False, "keep_ingested": False}
    planned = {**config, "corpus": {**demo, "demo": {"papers": 1000, "shards": 2}}}
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
    monkeypatch.setattr(memory, "LIMITS", (tmp_path / "memory.max", tmp_path / "none"))
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
    ingesting = {"ingest", "ingest_with_authors", "ingest_with_contexts"}
    assert found.keys() - on_tables.keys() == {"download_shards", *ingesting}
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
