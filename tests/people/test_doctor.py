"""What `cocite doctor` says of a place."""

import http.server
import math
import os
import re
import shutil
import threading
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config import folders
from cocite.config.configuration import resolve_or_explain
from cocite.people.doctor import asked, cluster, configuration, machine

PROFILE = Path(__file__).parents[2] / "profiles/slurm"
WITH_ACCOUNTS = "echo 'AccountingStorageType   = accounting_storage/slurmdbd'; echo 'MinJobAge = 300 sec'"


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


def profile(folder, **resources):
    (folder / "config.yaml").write_text(yaml.safe_dump({"default-resources": resources}))
    return folder


def programs(folder, monkeypatch, **scripts):
    """Make these scripts, and nothing else, what is on the PATH."""
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_the_demo_can_run_here(tmp_path, monkeypatch):
    config = {"release": "2026-01-06", "corpus": {"source": "demo"}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0, result.output
    assert "failed" not in result.output
    assert "needs no key" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


def test_all_that_is_wrong_is_reported_at_once_with_the_configuration_among_it(tmp_path, monkeypatch):
    monkeypatch.delenv("S2_API_KEY", raising=False)
    wrong = {**from_api("http://127.0.0.1:9"), "seed": -1, "models": {"m": {"loss": "none"}}}
    (tmp_path / "my.yaml").write_text(yaml.safe_dump(wrong))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["doctor", "--configfile", "my.yaml", "--profile", "nowhere"])
    assert result.exit_code == 1
    failed = [line for line in result.output.splitlines() if line.startswith("failed")]
    told = (
        "key seed is -1",
        "key models.m.loss is 'none'",
        "S2_API_KEY is not set",
        "nowhere/config.yaml does not exist",
    )
    assert all(any(words in line for line in failed) for words in told), failed
    assert any(line.startswith("ok") and "libraries" in line for line in result.output.splitlines())


@pytest.mark.parametrize("content", [None, "release: a\nrelease: b\n", "- no keys\n"])
def test_a_configuration_that_cannot_be_read_stops_no_other_finding(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "config.yaml").write_text(content)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert result.output.startswith("failed  — config.yaml")
    assert "FAISS" in result.output
    assert "the working folder" in result.output


def test_what_would_stop_a_run_gives_status_1(tmp_path, monkeypatch):
    monkeypatch.delenv("S2_API_KEY", raising=False)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(from_api("http://127.0.0.1:9")))
    result = CliRunner().invoke(app, ["doctor", "--configfile", str(tmp_path / "config.yaml")])
    assert result.exit_code == 1
    assert "S2_API_KEY is not set" in result.output


@pytest.mark.parametrize(("key", "verdict"), [("good", "ok"), ("bad", "failed")])
def test_the_key_is_tried_at_the_api_and_not_shown(api, monkeypatch, key, verdict):
    url, asked = api
    monkeypatch.setenv("S2_API_KEY", key)
    finding = configuration.key(from_api(url))
    assert finding.verdict == verdict
    assert asked == ["/release/2026-01-06/dataset/papers"]
    assert key not in str(finding).split()


def test_an_api_that_is_not_there_is_told(monkeypatch):
    monkeypatch.setenv("S2_API_KEY", "good")
    finding = configuration.key(from_api("http://127.0.0.1:9"))
    assert (finding.verdict, "cannot be reached" in finding.what) == ("failed", True)


def test_an_old_python_and_another_version_of_a_library_are_told():
    assert machine.python((3, 10)).verdict == "failed"
    assert machine.python((3, 11)).verdict == "ok"
    (finding,) = machine.libraries("numpy==0.1\n")
    assert finding.verdict == "warning"
    assert "numpy" in finding.what


@pytest.fixture
def complete():
    """A whole configuration whose largest model asks for 9,000 MB."""
    model = {"triplets": "t", "encoder": "e", "seeds": [1]}
    sampled = {"sampler": "random"}
    config, faults = resolve_or_explain(
        {
            "release": "2026-01-06",
            "corpus": {"source": "demo"},
            "triplets": {"t": sampled},
            "encoders": {"e": {"build": {}}},
            "models": {"small": model, "large": {**model, "memory_mb": 9000, "threads": 6}},
        }
    )
    assert faults == []
    return config


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
def test_memory_is_held_against_what_jobs_ask_for(complete, monkeypatch, total, free, granted, verdict, words):
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
    found = {one.rule: one for one in asked.asked(complete)}
    written = set(
        re.findall(
            r"^ *(?:use rule \w+ as |rule )(\w+)(?: with)?:$",
            "".join(p.read_text() for p in PROFILE.parents[1].glob("rules/*.smk")),
            re.M,
        )
    )
    assert set(found) == written - {"fetch_triplets", "fetch_benchmark"}
    assert found["select_queries"] == asked.Asked(rule="select_queries", memory_mb=2000, minutes=10, threads=1)
    assert found["train_encoder"] == asked.Asked(rule="train_encoder", memory_mb=9000, minutes=1440, threads=6)
    assert found["embed_papers"].memory_mb == 1500
    assert {one.rule: one for one in asked.asked({**complete, "gpu": True})}["embed_papers"].memory_mb == 4000


def test_a_rule_that_uses_another_asks_for_what_that_one_does_or_for_its_own(complete, tmp_path, monkeypatch):
    (tmp_path / "own.smk").write_text(
        "rule train_encoder:\n    threads: lookup()\n\n\n"
        "rule first:\n    threads: 2\n"
        "    resources:\n        mem_mb=megabytes(700),\n        runtime=minutes(10),\n\n\n"
        "if OWN:\n\n    use rule first as second with:\n        output:\n            a,\n\n\n"
        "use rule first as third with:\n    threads: 4\n\n\n"
        "rule small:\n    resources:\n        mem_mb=megabytes(100),\n"
    )
    monkeypatch.setattr(asked, "RULES", tmp_path)
    found = {one.rule: one for one in asked.asked(complete)}
    assert found["first"] == asked.Asked(rule="first", memory_mb=700, minutes=10, threads=2)
    assert found["second"] == asked.Asked(rule="second", memory_mb=700, minutes=10, threads=2)
    assert found["third"] == asked.Asked(rule="third", memory_mb=700, minutes=10, threads=4)
    assert found["small"] == asked.Asked(rule="small", memory_mb=100, minutes=0, threads=1)


def test_folders_that_cannot_be_written_to_and_full_disks_are_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    config = {"pathvars": {"results": "new/results", "logs": "file/logs"}}
    verdicts = [finding.verdict for finding in configuration.examine_places(config)]
    assert verdicts == ["ok", "failed", "ok", "ok"]
    assert not (tmp_path / "new").exists()
    usage = type(shutil.disk_usage(tmp_path))(10**12, 10**12, 5 * 10**8)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    full = next(configuration.examine_places(config))
    assert (full.verdict, "500.0 MB free" in full.what) == ("warning", True)


def test_a_disk_that_can_only_be_read_is_an_obstacle(tmp_path, monkeypatch):
    usual = os.statvfs(tmp_path)
    read_only = os.statvfs_result([*usual[:8], usual.f_flag | os.ST_RDONLY, *usual[9:]])
    monkeypatch.setattr(os, "statvfs", lambda path: read_only)
    assert "is on a disk that can only be read" in folders.obstacle(tmp_path / "results")


@pytest.mark.parametrize(
    ("time", "minutes"),
    [
        *(("30:00", 30), ("4:00:00", 240), ("1-00:00:00", 1440), ("2-12", 3600), ("1-06:30", 1830), ("45", 0.75)),
        *(("infinite", math.inf), ("n/a", math.inf)),
    ],
)
def test_times_of_slurm_are_read_in_all_their_forms(time, minutes):
    assert cluster.in_minutes(time) == minutes


NODES = "small|4:00:00|4|8000\nsmall|4:00:00|8+|16000+\nlarge|infinite|64|512000\n"


def test_a_partition_grants_what_its_largest_node_has():
    assert cluster.read_limits(NODES) == {
        "small": cluster.Limits(minutes=240, memory_mb=16000, threads=8),
        "large": cluster.Limits(minutes=math.inf, memory_mb=512000, threads=64),
    }


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (
            {"default-resources": {"slurm_partition": "small"}, "set-threads": {"count_pairs": 16}},
            [
                "failed: partition small grants 240 minutes, and train_encoder asks for 1440",
                "failed: partition small grants 8 threads, and count_pairs asks for 16",
            ],
        ),
        (
            {"default-resources": ["slurm_partition=small"], "set-resources": {"train_encoder": {"runtime": 200}}},
            ["warning: partition small grants 240 minutes, and jobs with a large input ask for up to a day"],
        ),
        (
            {"default-resources": {"slurm_partition": "large"}, "set-resources": {"ingest": {"mem_mb": 600000}}},
            ["failed: partition large grants 512000 MB of memory, and ingest asks for 600000"],
        ),
        (
            {
                "default-resources": {"slurm_partition": "small"},
                "set-resources": {"train_encoder": ["slurm_partition=large"]},
            },
            [
                "ok: partition large grants what its rules ask for at least",
                "warning: partition small grants 240 minutes, and jobs with a large input ask for up to a day",
            ],
        ),
        ({"default-resources": {"slurm_partition": "unknown"}}, []),
    ],
)
def test_partitions_are_held_against_what_rules_ask_for_there(complete, written, told):
    found = cluster.compare(cluster.read_limits(NODES), asked.asked(complete), written)
    assert sorted(f"{finding.verdict}: {finding.what}" for finding in found) == told


def test_limits_are_asked_of_slurm_for_the_profile(complete, tmp_path, monkeypatch):
    answer = 'case "$*" in *--Node*) echo "small|1:00:00|2|4000";; *) echo small;; esac'
    programs(tmp_path, monkeypatch, sinfo=answer, scontrol=WITH_ACCOUNTS)
    folder = profile(tmp_path, slurm_partition="small", slurm_account="ours")
    failed = [finding.what for finding in cluster.examine_cluster(folder, complete) if finding.verdict == "failed"]
    assert failed == [
        "partition small grants 60 minutes, and train_encoder asks for 1440",
        "partition small grants 4000 MB of memory, and train_encoder asks for 9000",
        "partition small grants 2 threads, and train_encoder asks for 6",
    ]


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    config = {"release": "2026-01-06", "pathvars": {"results": str(tmp_path)}}
    demo = {"source": "demo", "buckets": 2, "keep_raw": False, "keep_ingested": False}
    full = {**config, "corpus": {**demo, "demo": {"papers": 10**12, "shards": 2}}}
    assert configuration.disk(full).verdict == "failed"
    small = {**config, "corpus": {**demo, "demo": {"papers": 1000, "shards": 2}}}
    assert configuration.disk(small).verdict == "ok"


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
        (
            "default-resources: {slurm_partition: small}\nset-resources: {train: {slurm_partition: gone}}\n",
            ["failed", "ok"],
        ),
        ("default-resources: {\n", ["failed"]),
        ("- a list\n", ["failed"]),
    ],
)
def test_a_profile_in_any_form_is_read(tmp_path, content, verdicts):
    (tmp_path / "config.yaml").write_text(content)
    assert [finding.verdict for finding in cluster.site(tmp_path, ["small"])] == verdicts


def test_a_partition_that_slurm_does_not_have_is_told_with_those_that_it_has(tmp_path, monkeypatch):
    programs(tmp_path, monkeypatch, sinfo="echo small; echo large", scontrol=WITH_ACCOUNTS)
    folder = profile(tmp_path, slurm_partition="huge", slurm_account="ours")
    answers = list(cluster.examine_cluster(folder))
    assert [finding.verdict for finding in answers] == ["ok", "ok", "failed", "ok"]
    assert "use one of large, small" in answers[2].to_do


@pytest.mark.parametrize(
    ("answer", "verdicts"),
    [
        (WITH_ACCOUNTS, ["ok"]),
        ("echo 'AccountingStorageType   = (null)'; echo 'MinJobAge = 300 sec'", ["warning"]),
        ("echo 'AccountingStorageType = accounting_storage/none'; echo 'MinJobAge = 5 sec'", ["warning", "failed"]),
        ("exit 1", ["warning"]),
    ],
)
def test_a_slurm_that_forgets_jobs_before_they_are_looked_at_is_told(tmp_path, monkeypatch, answer, verdicts):
    programs(tmp_path, monkeypatch, scontrol=answer)
    assert [finding.verdict for finding in cluster.memory_of_jobs()] == verdicts


def test_no_slurm_and_a_slurm_that_does_not_answer_are_told_apart(tmp_path, monkeypatch):
    folder = profile(tmp_path, slurm_partition="small", slurm_account="ours")
    programs(tmp_path, monkeypatch)
    assert "not on the PATH" in next(cluster.examine_cluster(folder)).what
    programs(tmp_path, monkeypatch, sinfo="echo unable to contact the controller >&2; exit 1")
    assert "unable to contact the controller" in next(cluster.examine_cluster(folder)).what
