"""Twelve collections and three competitors that nobody trains, in one run: a scoring job that is killed is the only one
that runs again."""

import os
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from tests.evaluation.collections import write_collections
from tests.workflow.conftest import Run

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

COMPETITORS = ("untrained_small-0", "bm25-0", "popularity-0", "random-0")
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


def scoring_jobs(collections) -> list[str]:
    """The table scores of each competitor on each collection; words rank, and do not tell authors apart."""
    return [
        f"results/evaluation/{name}/scores/small/{competitor}.parquet"
        for name in sorted(collections)
        for competitor in COMPETITORS
        if (name, competitor) != ("s2and", "bm25-0")
        and (competitor != "popularity-0" or collections[name]["kind"] in ("holdout", "aspects"))
    ]


def list_jobs(jobs: list[str], listed: Path) -> None:
    """Have each of these jobs killed once; a file for each, as several are ended at a time."""
    for job in jobs:
        (listed / job.replace("/", "_")).touch()


def ran(result) -> dict[str, list[str]]:
    """The jobs of a run: rule → its first outputs."""
    jobs: dict[str, list[str]] = {}
    for rule, outputs in re.findall(r"^(?:local)?rule (\w+):\n(?:    .*\n)*?    output: (.*)$", result.stderr, re.M):
        jobs.setdefault(rule, []).append(outputs.split(", ")[0])
    return jobs


def scored_again(jobs: dict[str, list[str]]) -> list[str]:
    return sorted(output for rule, outputs in jobs.items() if rule.startswith("score_") for output in outputs)


@pytest.fixture
def configured(tmp_path, monkeypatch) -> Run:
    """A run of ten collections in folders and two of held-out papers, with no model, graph or set of triplets."""
    run = Run(folder=tmp_path)
    brought = write_collections(tmp_path / "collections")
    brought["scirepeval"]["tasks"] = ["drsm", "relish"]  # its large tasks would have jobs of their own
    of_corpus = {"own": {"kind": "holdout"}, "by-aspect": {"kind": "aspects", "positives": 2, "linked": 2}}
    run.configure(
        {
            "release": "2026-01-06",
            "precision": "float32",
            "corpus": {"source": "demo", "buckets": 1, "demo": {"papers": 700, "topics": 8, "shards": 1}},
            "queries": {"count": 150, "min_references": 5, "holdout": 40},
            "encoders": {"small": {"build": {"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000}}},
            "benchmarks": brought | of_corpus,
            "maps": {},
        }
    )
    killer = tmp_path / "killer"
    killer.mkdir()
    (killer / "sitecustomize.py").write_text(KILLER)
    (killer / "listed").mkdir()
    path = os.pathsep.join(filter(None, [str(killer), os.environ.get("PYTHONPATH")]))
    monkeypatch.setenv("PYTHONPATH", path)
    return run


def tables_of(run: Run, jobs: list[str]) -> dict[str, object]:
    kinds = ("scores", "outcomes", "failures")
    paths = [job.replace("/scores/", f"/{kind}/") for job in jobs for kind in kinds]
    return {path: pq.read_table(run.folder / path) for path in paths}


def made_at(run: Run) -> dict[Path, int]:
    """When each table of a benchmark and of vectors was made."""
    tables = (run.folder / "results").rglob("*.parquet")
    return {path: path.stat().st_mtime_ns for path in tables if {"evaluation", "encoder", "baselines"} & {*path.parts}}


def test_every_scoring_job_of_twelve_collections_can_be_killed_and_is_then_the_only_one_that_runs_again(configured):
    run = configured
    listed = run.folder / "killer/listed"
    config = run.folder / "config.yaml"
    jobs = scoring_jobs(yaml.safe_load(config.read_text())["benchmarks"])
    assert len(jobs) == 12 * 3 - 1 + 2
    first, second = jobs[::2], jobs[1::2]

    list_jobs(first, listed)
    killed = run.snakemake("--keep-going", "evaluation")
    assert killed.returncode == 1
    assert not [*listed.iterdir()]
    assert scored_again(ran(killed)) == sorted(jobs)
    assert {job for job in jobs if not (run.folder / job).exists()} == set(first)

    before = made_at(run)
    again = run.snakemake("all")
    assert again.returncode == 0, again.stderr[-3000:]
    assert scored_again(ran(again)) == sorted(first)
    assert not [rule for rule in ran(again) if rule.startswith(("prepare", "embed", "fetch", "build", "ingest"))]
    assert {path: when for path, when in made_at(run).items() if path in before} == before
    whole = tables_of(run, jobs)
    assert "Nothing to be done" in run.snakemake("--dry-run", "all").stdout

    for job in second:
        (run.folder / job).unlink()
    list_jobs(second, listed)
    assert run.snakemake("--keep-going", "evaluation").returncode == 1
    assert not [*listed.iterdir()]
    again = run.snakemake("evaluation")
    assert again.returncode == 0, again.stderr[-3000:]
    assert scored_again(ran(again)) == sorted(second)
    found = tables_of(run, jobs)
    assert [path for path, table in whole.items() if not found[path].equals(table)] == []
    values = pq.read_table(run.folder / "results/evaluation/litsearch/averages.parquet").to_pylist()
    assert {row["model"] for row in values} == {"untrained_small", "bm25", "random"}
    assert "litsearch_specific" in (run.folder / "results/report/index.html").read_text()
