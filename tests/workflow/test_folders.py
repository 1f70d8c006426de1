"""A folder of results: which are refused, which go on side by side, and what becomes of copies and leftovers."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import time
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from tests.workflow.conftest import ROOT, SMALL, Run, edited, planned, write_release
from typer.testing import CliRunner

from cocite.cli import app

MANIFEST = "results/corpus/manifest.json"
ACCOUNTED = "results/corpus/omissions/ingest-papers.parquet"
EDITED = edited(models__cocite__loss="cosent")


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    run = Run(folder=tmp_path_factory.mktemp("listed"))
    write_release(run.folder / "release")
    run.configure({**SMALL, "corpus": {"source": "directory", "path": "release", "buckets": 2}, "benchmarks": {}})
    run.make(MANIFEST)
    return run


@pytest.fixture
def listed(made_once, tmp_path):
    """A working folder with a release of one shard each, of which nothing but the manifest is made."""
    return made_once.copy(tmp_path / "listed")


def other(run: Run, **entries) -> Path:
    """A configuration beside that of the run, with other entries."""
    config = yaml.safe_load((run.folder / "config.yaml").read_text())
    return run.configure({**config, **entries}, "other.yaml")


@pytest.mark.parametrize("options", [["--dry-run"], ["--quiet", "rules"]])
def test_another_release_is_refused_from_the_first_job_on_in_dry_runs_too(made_once, options):
    manifest = (made_once.folder / MANIFEST).read_bytes()
    result = made_once.snakemake(*options, "--", "corpus", config=other(made_once, release="2026-01-13"))
    assert result.returncode == 1
    assert "results has results of another corpus" in result.stdout + result.stderr
    assert "release was 2026-01-06 and is 2026-01-13" in result.stdout + result.stderr
    assert (made_once.folder / MANIFEST).read_bytes() == manifest


@pytest.mark.long
def test_what_is_overwritten_on_purpose_is_overwritten_once(listed, monkeypatch):
    config = other(listed, release="2026-01-13")
    monkeypatch.setenv("COCITE_OVERWRITE", "results")
    listed.make(MANIFEST, config=config)
    monkeypatch.delenv("COCITE_OVERWRITE")
    listed.make("corpus", config=config, options=["--dry-run"])
    assert "release was 2026-01-13 and is 2026-01-06" in listed.snakemake("corpus").stderr


def test_steps_that_fail_get_more_memory_once_more_and_are_listed_at_the_end_with_the_last_lines_of_their_logs(
    listed, monkeypatch
):
    (listed.folder / "release/papers/0.gz").write_bytes(b"no gzip")
    result = listed.snakemake("--keep-going", "--retries", "1", "results/corpus/papers/0.parquet")
    assert result.returncode == 1
    job = r"^localrule ingest:\n.*\n    output: results/corpus/ingested/papers/0.parquet"
    asked = rf"{job}(?:.*\n)*?    resources: .*mem_mb=(\d+)"
    assert re.findall(asked, result.stderr, re.MULTILINE) == ["1500", "3000"]
    lines = result.stderr.rpartition("\nFailed\n")[2].partition("\nComplete log")[0].splitlines()
    log = listed.folder / "logs/corpus/ingest-papers-0.log"
    assert lines[0] == f"  ingest papers 0: {log}"
    assert lines[-1] == f"      {log.read_text().splitlines()[-1]}"
    assert len(lines) < 8
    monkeypatch.chdir(listed.folder)
    status = CliRunner().invoke(app, ["status"]).stdout.splitlines()
    assert status[0].startswith("results: ended with failures, ")
    assert status[-len(lines) :] == lines


@contextmanager
def at_work(folder: Path) -> Iterator[None]:
    """Hold the lock of a run in the results of a folder."""
    lock = folder / "results/.state/run.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


OPTIONS = ["--touch"], ["--forceall", "--rerun-incomplete"], []


@pytest.mark.parametrize("options", [["--nolock"], *(pytest.param(each, marks=pytest.mark.long) for each in OPTIONS)])
def test_a_snakemake_waits_for_the_run_at_work_before_it_plans_however_it_is_started(listed, options):
    manifest = listed.folder / MANIFEST
    manifest.unlink()
    with at_work(listed.folder):
        command, pipe = listed.command(MANIFEST, *options), subprocess.PIPE
        second = subprocess.Popen(command, cwd=listed.folder, stdout=subprocess.DEVNULL, stderr=pipe, text=True)
        said = next(line for line in second.stderr if "Using workflow specific profile" not in line)
        assert "is at work in" in said
        assert planned(listed, None, MANIFEST).rules() == {"list_shards"}
        manifest.write_text("as the run at work makes it")
        assert second.poll() is None
    _, log = second.communicate(timeout=60)
    assert second.returncode == 0
    assert "--touch" in options or "Nothing to be done" in log or "--forceall" in options


def test_a_file_whose_record_was_cut_by_a_full_disk_is_made_again(listed):
    records = listed.folder / ".snakemake/metadata"
    (record,) = (path for path in records.iterdir() if urlsafe_b64decode(path.name).decode() == MANIFEST)
    record.write_bytes(record.read_bytes()[:512])
    assert "Finished jobid: 0 (Rule: list_shards)" in listed.make(MANIFEST)
    assert json.loads(record.read_text())["rule"] == "list_shards"
    assert "Nothing to be done" in listed.make(MANIFEST)


def test_broken_files_are_not_deleted_beside_a_run(listed):
    broken = listed.folder / "results/corpus/papers/0.parquet"
    broken.parent.mkdir()
    broken.write_bytes(b"no table")
    with at_work(listed.folder):
        command = [sys.executable, "-c", "from cocite.cli import main; main()", "check", "--remove"]
        removing = subprocess.Popen(command, cwd=listed.folder, stderr=subprocess.PIPE, text=True)
        assert "is at work in" in removing.stderr.readline()
        assert broken.exists()
    assert removing.wait(timeout=60) == 1
    assert not broken.exists()


@pytest.mark.end_to_end
@pytest.mark.long
def test_a_run_moves_with_its_records(finished, tmp_path):
    """What docs/recovery.md says to copy: results, logs, benchmarks and .snakemake/metadata."""
    copied, moved = finished.copy(tmp_path / "copy"), Run(folder=tmp_path / "cluster")
    for name in ("results", "logs", "benchmarks", ".snakemake/metadata"):
        shutil.copytree(copied.folder / name, moved.folder / name)
    moved.configure(SMALL)
    shutil.rmtree(copied.folder)
    same = moved.make("all")
    assert "Nothing to be done" in same
    assert "no record" not in same
    assert len(planned(moved, EDITED).of("train_encoder")) == 1


@pytest.mark.end_to_end
@pytest.mark.long
def test_without_records_edits_are_named_and_are_noticed_again_once_the_records_are_written(finished, tmp_path):
    """What docs/recovery.md says to do where the records are lost."""
    copied = finished.copy(tmp_path / "copy")
    shutil.rmtree(copied.folder / ".snakemake")
    unnoticed = planned(copied, EDITED)
    assert not unnoticed.jobs
    assert "Snakemake has no record of how results/" in unnoticed.said
    assert 'models.cocite.loss.kind was "triplet" and is "cosent"' in unnoticed.said
    config = copied.folder / "results/configuration.yaml"
    copied.make("all", config=config, options=["--touch", "--forceall"])
    again = planned(copied, EDITED)
    assert "no record" not in again.said
    assert len(again.of("train_encoder")) == 1


@pytest.mark.end_to_end
@pytest.mark.long
def test_two_configurations_run_side_by_side_in_one_working_folder(finished, run, monkeypatch):
    """Started as `make run` starts them; both end with the tables of a run that was alone."""
    runs = []
    for name in ("one", "two"):
        pathvars = {key: f"{name}/{key}" for key in ("results", "logs", "benchmarks")}
        run.configure({**SMALL, "pathvars": pathvars}, f"{name}.yaml")
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "1"]
        command += ["triplets", "--configfile", f"{name}.yaml", "--replace-workflow-config"]
        log = (run.folder / f"{name}.log").open("w")
        runs.append(subprocess.Popen(command, cwd=run.folder, stdout=log, stderr=log))
    assert [process.wait() for process in runs] == [0, 0], (run.folder / "one.log").read_text()[-3000:]
    monkeypatch.chdir(run.folder)
    for name in ("one", "two"):
        assert "waiting for it to end" not in (run.folder / f"{name}.log").read_text()
        made = run.folder / name / "results"
        tables = list(made.rglob("*.parquet"))
        for path in tables:
            assert pq.read_table(path) == pq.read_table(finished.folder / "results" / path.relative_to(made)), path
        assert len(tables) > 40
        assert "Nothing to be done" in run.make("triplets", config=run.folder / f"{name}.yaml")
        status = CliRunner().invoke(app, ["status", "--results", f"{name}/results"]).stdout
        assert status.startswith(f"{name}/results: finished")


@pytest.mark.long
def test_raw_shards_that_were_ingested_before_a_kill_are_removed_and_files_from_the_future_are_named(run):
    run.make(ACCOUNTED, options=["--notemp"])
    raw, made = run.folder / "results/corpus/raw", run.folder / ACCOUNTED
    assert list(raw.rglob("*.gz"))
    made.unlink()
    run.make(ACCOUNTED, options=["--dry-run"])
    assert list(raw.rglob("*.gz"))

    manifest, later = run.folder / MANIFEST, time.time() + 3600
    content, before = manifest.read_bytes(), manifest.stat()
    os.utime(manifest, (later, later))
    result = run.snakemake("results/corpus/papers/0.parquet")
    said = result.stdout + result.stderr
    assert result.returncode == 1
    assert f"{MANIFEST} is of " in said
    assert "find results/corpus -newermt now -exec touch {} +" in said
    assert manifest.read_bytes() == content
    assert list(raw.rglob("*.gz"))

    os.utime(manifest, (before.st_atime, before.st_mtime))
    assert "raw/papers/0, which a killed run left" in run.make(ACCOUNTED)
    assert not (raw / "papers/0").exists()
    assert (run.folder / "results/corpus/ingested/papers/0.parquet").exists()
