"""What `cocite doctor` says of a place."""

import http.server
import threading
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cocite.cli import app
from cocite.doctor import cluster, machine, source

PROFILE = Path(__file__).parents[1] / "profiles/slurm"
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
    assert "no key needed" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


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
    finding = source.key(from_api(url))
    assert finding.verdict == verdict
    assert asked == ["/release/2026-01-06/dataset/papers"]
    assert key not in str(finding).split()


def test_an_api_that_is_not_there_is_told(monkeypatch):
    monkeypatch.setenv("S2_API_KEY", "good")
    finding = source.key(from_api("http://127.0.0.1:9"))
    assert (finding.verdict, "cannot be reached" in finding.what) == ("failed", True)


def test_an_old_python_and_another_version_of_a_library_are_told():
    assert machine.python((3, 10)).verdict == "failed"
    assert machine.python((3, 11)).verdict == "ok"
    (finding,) = machine.libraries("numpy==0.1\n")
    assert finding.verdict == "warning"
    assert "numpy" in finding.what


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    config = {"release": "2026-01-06", "pathvars": {"results": str(tmp_path)}}
    demo = {"source": "demo", "buckets": 2, "keep_raw": False, "keep_ingested": False}
    full = {**config, "corpus": {**demo, "demo": {"papers": 10**12, "shards": 2}}}
    assert source.disk(full).verdict == "failed"
    small = {**config, "corpus": {**demo, "demo": {"papers": 1000, "shards": 2}}}
    assert source.disk(small).verdict == "ok"


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
    assert "take one of large, small" in answers[2].to_do


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
