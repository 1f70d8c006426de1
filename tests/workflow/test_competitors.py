"""Twelve collections and three competitors that nobody trains, in one run: a scoring job that is killed is the only one
that runs again."""

import os
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.evaluation.collections import write_collections
from tests.workflow.conftest import SMALL, Run

COMPETITORS = ("untrained_small-0", "bm25-0", "random-0")
KILLER = '''"""Kills a scoring job that is listed, once, as it puts one of its three tables in place."""

import os, signal, sys
from pathlib import Path

FOLDER = Path(__file__).parent
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
    listed = FOLDER / "listed" / scores.replace("/", "_")
    if listed.exists():
        listed.unlink()
        sys.addaudithook(killed(len(scores) % 3))
'''


def jobs_of(said: str) -> list[tuple[str, str]]:
    """The jobs of a run: the rule and the first output of each."""
    return re.findall(r"^(?:local)?rule (\w+):\n(?:    .*\n)*?    output: ([^,\n]*)", said, re.MULTILINE)


def scored(said: str) -> list[str]:
    return sorted(output for rule, output in jobs_of(said) if rule.startswith("score_"))


@pytest.fixture
def collections(tmp_path, monkeypatch) -> dict:
    """Ten collections in folders and two of held-out papers; every Python looks at the list of jobs to be killed."""
    brought = write_collections(tmp_path / "collections")
    brought["scirepeval"]["tasks"] = ["drsm", "relish"]  # its large tasks would have jobs of their own
    killer = tmp_path / "killer"
    (killer / "listed").mkdir(parents=True)
    (killer / "sitecustomize.py").write_text(KILLER)
    path = os.pathsep.join(filter(None, [str(killer), os.environ.get("PYTHONPATH")]))
    monkeypatch.setenv("PYTHONPATH", path)
    return brought | {"own": {"kind": "holdout"}, "by-aspect": {"kind": "aspects", "positives": 2, "linked": 2}}


def tables_of(run: Run, jobs: list[str]) -> dict[str, object]:
    paths = [job.replace("/scores/", f"/{kind}/") for job in jobs for kind in ("scores", "outcomes", "failures")]
    return {path: pq.read_table(run.folder / path) for path in paths}


def made_at(run: Run) -> dict[Path, int]:
    """When each table of a benchmark and of vectors was made."""
    tables = (run.folder / "results").rglob("*.parquet")
    return {path: path.stat().st_mtime_ns for path in tables if {"evaluation", "encoder", "baselines"} & {*path.parts}}


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_every_scoring_job_of_twelve_collections_can_be_killed_and_is_then_the_only_one_that_runs_again(
    run, collections
):
    kept = {key: SMALL[key] for key in ("release", "precision", "queries", "encoders")}
    corpus = {"source": "demo", "buckets": 1, "demo": {"papers": 700, "topics": 8, "shards": 1}}
    run.configure(kept | {"corpus": corpus, "benchmarks": collections, "maps": {}})
    jobs = [
        f"results/evaluation/{name}/scores/small/{competitor}.parquet"
        for name in sorted(collections)
        for competitor in COMPETITORS
        if (name, competitor) != ("s2and", "bm25-0")  # words rank, and do not tell authors apart
    ]
    assert len(jobs) == 12 * 3 - 1
    first, second = jobs[::2], jobs[1::2]

    killed = run_killing(run, first)
    assert scored(killed) == sorted(jobs)
    assert {job for job in jobs if not (run.folder / job).exists()} == set(first)
    before = made_at(run)
    again = run.make("all")
    assert scored(again) == sorted(first)
    assert not [rule for rule, _ in jobs_of(again) if rule.startswith(("prepare", "embed", "fetch", "build", "ingest"))]
    assert {path: when for path, when in made_at(run).items() if path in before} == before
    whole = tables_of(run, jobs)
    assert "Nothing to be done" in run.make("all", options=["--dry-run"])

    for job in second:
        (run.folder / job).unlink()
    run_killing(run, second)
    assert scored(run.make("evaluation")) == sorted(second)
    found = tables_of(run, jobs)
    assert [path for path, table in whole.items() if not found[path].equals(table)] == []
    values = pq.read_table(run.folder / "results/evaluation/litsearch/averages.parquet").to_pylist()
    assert {row["model"] for row in values} == {"untrained_small", "bm25", "random"}
    assert "litsearch_specific" in (run.folder / "results/report/index.html").read_text()


def run_killing(run: Run, jobs: list[str]) -> str:
    """Run with each of these jobs killed once; there is a file for each, as several are ended at a time."""
    listed = run.folder / "killer/listed"
    for job in jobs:
        (listed / job.replace("/", "_")).touch()
    killed = run.snakemake("--keep-going", "evaluation")
    assert killed.returncode == 1
    assert not [*listed.iterdir()]
    return killed.stderr
