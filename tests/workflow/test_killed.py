"""What is killed, or stops for its time, is run again and goes on, and ends with the tables of what was not."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from tests.evaluation.collections import write_collections
from tests.workflow.conftest import SMALL, Run, fresh_run

from cocite.core.atomic import read_json

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

KILLS = 10


def start(run: Run) -> subprocess.Popen[bytes]:
    """Start a run in a process group of its own; it appends what it says to its log."""
    with (run.folder / "snakemake.log").open("a") as log:
        command = run.command("--show-failed-logs", "all")
        return subprocess.Popen(command, cwd=run.folder, stdout=log, stderr=log, start_new_session=True)


def said(run: Run) -> str:
    return (run.folder / "snakemake.log").read_text()


def finish(run: Run) -> dict[str, object]:
    """Run to the end; return the tables, but for what each rule's jobs took, which differs from run to run."""
    assert start(run).wait() == 0, said(run)[-5000:]
    results = run.folder / "results"
    found = {str(path.relative_to(results)): pq.read_table(path) for path in results.rglob("*.parquet")}
    del found["report/costs.parquet"]
    return found


def test_the_tables_are_the_same_after_ten_kills(tmp_path):
    """Kills are spread evenly over the jobs of a run, earlier starts included, the last of them among its last jobs."""
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    whole, killed = fresh_run(tmp_path / "whole"), fresh_run(tmp_path / "killed")
    expected = finish(whole)
    random = np.random.default_rng(int(os.environ.get("COCITE_KILL_SEED", "1")))
    for kill in range(KILLS):
        process = start(killed)
        while said(killed).count("Finished jobid") < said(whole).count("Finished jobid") * (kill + 1) // (KILLS + 2):
            assert process.poll() is None, said(killed)[-5000:]
            time.sleep(0.02)
        time.sleep(random.uniform(0, 1))
        assert process.poll() is None, "the run ended before it was killed"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    found = finish(killed)
    assert found.keys() == expected.keys()
    assert [name for name in expected if not found[name].equals(expected[name])] == []


COMPETITORS = ("untrained_small-0", "bm25-0", "popularity-0", "random-0")
KILLER = '''"""Kills a scoring job that is listed, once, as it puts one of its three tables in place."""

import os, signal, sys
from pathlib import Path

COMMAND = Path("/proc/self/cmdline").read_bytes().decode().split("\\0")


def killed(place):
    """Whether to kill the job before it puts its next table in place."""
    put = []

    def watch(event, arguments):
        if event == "os.rename" and str(arguments[1]).endswith(".parquet"):
            put.append(arguments[1])
            if len(put) > place:
                os.kill(os.getpid(), signal.SIGKILL)

    return watch


if "score" in COMMAND and "--scores" in COMMAND:
    scores = COMMAND[COMMAND.index("--scores") + 1]
    listed = Path(__file__).parent / "listed" / scores.replace("/", "_")
    if listed.exists():
        listed.unlink()
        sys.addaudithook(killed(len(scores) % 3))
'''


def score(run: Run, target: str, *options: str, killed: list[str]) -> list[str]:
    """Run up to a target, with jobs that are killed once each; return the first outputs of all scoring jobs."""
    for job in killed:  # a file for each, as several are ended at a time
        (run.folder / "killer/listed" / job.replace("/", "_")).touch()
    result = run.snakemake(*options, target)
    assert result.returncode == bool(killed), result.stderr[-3000:]
    assert not [*(run.folder / "killer/listed").iterdir()]
    jobs = re.findall(r"^(?:local)?rule (\w+):\n(?:    .*\n)*?    output: ([^,\n]*)", result.stderr, re.M)
    if not killed:
        assert not [rule for rule, _ in jobs if rule.startswith(("prepare", "embed", "fetch", "build", "ingest"))]
    return sorted(output for rule, output in jobs if rule.startswith("score_"))


@pytest.fixture
def competing(tmp_path, monkeypatch) -> Run:
    """A run of ten collections in folders and two of held-out papers, with no model, graph or set of triplets."""
    run = Run(folder=tmp_path)
    brought = write_collections(tmp_path / "collections")
    brought["scirepeval"]["tasks"] = ["drsm", "relish"]  # its large tasks would have jobs of their own
    of_corpus = {"own": {"kind": "holdout"}, "by-aspect": {"kind": "aspects", "positives": 2, "linked": 2}}
    small = {key: SMALL[key] for key in ("release", "precision", "queries", "encoders")}
    corpus = {"source": "demo", "buckets": 1, "demo": {**SMALL["corpus"]["demo"], "shards": 1}}
    run.configure(small | {"corpus": corpus, "benchmarks": brought | of_corpus, "maps": {}})
    (tmp_path / "killer/listed").mkdir(parents=True)
    (tmp_path / "killer/sitecustomize.py").write_text(KILLER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "killer"), prepend=os.pathsep)
    return run


def tables_of(run: Run, jobs: list[str]) -> dict[str, object]:
    kinds = ("scores", "outcomes", "failures")
    paths = [job.replace("/scores/", f"/{kind}/") for job in jobs for kind in kinds]
    return {path: pq.read_table(run.folder / path) for path in paths}


def made_at(run: Run) -> dict[Path, int]:
    """When each table of a benchmark and of vectors was made."""
    tables = (run.folder / "results").rglob("*.parquet")
    return {path: path.stat().st_mtime_ns for path in tables if {"evaluation", "encoder", "baselines"} & {*path.parts}}


def test_every_scoring_job_of_twelve_collections_can_be_killed_and_is_then_the_only_one_that_runs_again(competing):
    run = competing
    collections = yaml.safe_load((run.folder / "config.yaml").read_text())["benchmarks"]
    jobs = [
        f"results/evaluation/{name}/scores/small/{competitor}.parquet"
        for name in sorted(collections)
        for competitor in COMPETITORS
        if (name, competitor) != ("s2and", "bm25-0")  # words rank, and do not tell authors apart
        and (competitor != "popularity-0" or collections[name]["kind"] in ("holdout", "aspects"))
    ]
    assert len(jobs) == 12 * 3 - 1 + 2
    first, second = jobs[::2], jobs[1::2]
    assert score(run, "evaluation", "--keep-going", killed=first) == sorted(jobs)
    assert {job for job in jobs if not (run.folder / job).exists()} == set(first)

    before = made_at(run)
    assert score(run, "all", killed=[]) == sorted(first)
    assert {path: when for path, when in made_at(run).items() if path in before} == before
    whole = tables_of(run, jobs)
    assert "Nothing to be done" in run.snakemake("--dry-run", "all").stdout

    for job in second:
        (run.folder / job).unlink()
    score(run, "evaluation", "--keep-going", killed=second)
    assert score(run, "evaluation", killed=[]) == sorted(second)
    found = tables_of(run, jobs)
    assert [path for path, table in whole.items() if not found[path].equals(table)] == []
    values = pq.read_table(run.folder / "results/evaluation/litsearch/averages.parquet").to_pylist()
    assert {row["model"] for row in values} == {"untrained_small", "bm25", "random"}
    assert "litsearch_specific" in (run.folder / "results/report/index.html").read_text()


TRAINED, STEPS = "encoder/cocite/seed-1", 3


@pytest.mark.parametrize(("environment", "restarts"), [({"SLURM_JOB_ID": "1"}, STEPS - 1), ({}, 0)])
def test_a_training_that_stops_for_its_time_is_retried_in_jobs_of_slurm_and_runs_to_its_end_elsewhere(
    finished, tmp_path, environment, restarts
):
    """A training of three steps, in jobs of no time at all."""
    run = finished.copy(tmp_path / "run")
    trained = read_json(run.folder / "results" / TRAINED / "settings.json")["triplets"]["training"]
    models = {"cocite": {**SMALL["models"]["cocite"], "epochs": 1, "batch_size": -(-trained // STEPS)}}
    log = run.folder / "logs" / TRAINED / "train.log"
    log.unlink()
    command = run.command(
        *("--retries", "5", "--forcerun", "train_encoder", "--set-resources", "train_encoder:runtime=0"),
        *("--allowed-rules", "train_encoder", "--", f"results/{TRAINED}/model"),
        config=run.configure({**SMALL, "models": models}, "three-steps.yaml"),
    )
    ended = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stderr.count("Trying to restart job") == restarts
    assert ("Going on after step 2 of 3." in log.read_text()) == bool(restarts)
    assert restarts or "Going on" not in log.read_text()
