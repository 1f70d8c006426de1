"""The whole pipeline, from the API to a report and a search, on a part of a release: `make rehearse SCALE=0.001`.

It runs experiments/whole.yaml in four buckets, and trains on all links. At SCALE 0.01 a bucket has two thirds as many
citations as one of the 256 that a whole release has. It writes what each stage and each rule took.
"""

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

import psutil
import yaml
from tests.benchmarks.made_release import write_release
from tests.benchmarks.measuring import Command, Cost, cocite, run, run_and_read, say
from tests.releases.server import serve

from cocite.tools.documentation import ROOT

KEPT = True
RELEASE, KEY = "2026-01-06", "a-key-of-the-rehearsal"
SHARDS = {"papers": 4, "abstracts": 4, "citations": 12}
BUCKETS, QUERIES = 4, 2000
MEMORY_MB = 4000


def main(folder: Path, scale: float = 0.001, cores: int = os.cpu_count() or 1) -> None:
    folder = folder.absolute() / f"rehearsal-{scale:g}"
    start = time.perf_counter()
    say(f"Release: {write_release(folder / 'release', scale, RELEASE, SHARDS)}, {time.perf_counter() - start:.0f} s")
    os.chdir(folder)
    os.environ["S2_API_KEY"] = KEY
    with serve(folder / "release", key=KEY, port=_port()) as api:
        Path("whole.yaml").write_text(yaml.safe_dump(configuration(api), sort_keys=False))
        say(f"Planning: {run([*_snakemake(cores), '--dry-run'])}")
        before = psutil.disk_usage(str(folder)).free
        say(f"Run: {_watched(_snakemake(cores), before)}")
        say(f"Planning when all is done: {run([*_snakemake(cores), '--dry-run'])}")
    say(f"Search: {run(cocite('search', 'a word wab', results='results/whole'))}")
    for line in table(Path("benchmarks/whole")):
        say(line)


def _port() -> int:
    """The port of the API that the run began with, which its jobs are told; 0 for a new run."""
    path = Path("whole.yaml")
    api = yaml.safe_load(path.read_text())["corpus"]["api"] if path.is_file() else ""
    return urlsplit(api).port or 0


def configuration(api: str) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load((ROOT / "experiments/whole.yaml").read_text())
    config["corpus"] |= {"api": api, "shards": SHARDS, "buckets": BUCKETS}
    config["queries"]["count"] = QUERIES
    del config["triplets"]["citations"]["share"]
    return config | {"release": RELEASE}


def _snakemake(cores: int) -> Command:
    program = str(Path(sys.executable).with_name("snakemake"))
    options = ["--cores", cores, "--resources", f"mem_mb={MEMORY_MB}", "--configfile", "whole.yaml"]
    return [
        program,
        "--snakefile",
        ROOT / "Snakefile",
        *options,
        "--replace-workflow-config",
        "--benchmark-extended",
        "all",
    ]


def _watched(command: Command, free: int) -> str:
    """Run a command; its cost, and how much of the disk was taken at most, as far as a look now and then shows it."""
    least, is_over = [free], Event()

    def watch() -> None:
        while not is_over.wait(2):
            least[0] = min(least[0], psutil.disk_usage(".").free)

    watcher = Thread(target=watch)
    watcher.start()
    try:
        cost: Cost = run_and_read(command)[0]
    finally:
        is_over.set()
        watcher.join()
    return f"{cost}, {(free - least[0]) / 1e9:.1f} GB of disk at most"


def table(benchmarks: Path) -> Iterator[str]:
    """What each stage and each of its rules took, from Snakemake's records of their jobs."""
    by_stage: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for path in benchmarks.rglob("*.jsonl"):
        for job in map(json.loads, path.open()):
            by_stage[path.relative_to(benchmarks).parts[0]][job["rule_name"]].append(job)
    yield "| stage or rule | jobs | CPU, s | longest, s | memory, MB | of its request | read, MB | written, MB |"
    yield "|---|---|---|---|---|---|---|---|"
    for stage, rules in sorted(by_stage.items()):
        yield _row(f"**{stage}**", [job for jobs in rules.values() for job in jobs])
        for rule, jobs in sorted(rules.items(), key=lambda each: -sum(_number(job["cpu_time"]) for job in each[1])):
            yield _row(rule, jobs)


def _row(name: str, jobs: list[dict[str, Any]]) -> str:
    of = {key: [_number(job[key]) for job in jobs] for key in ("cpu_time", "s", "io_in", "io_out")}
    share = max(peak_mb(job) / job["resources"]["mem_mb"] for job in jobs)
    cells = [len(jobs), sum(of["cpu_time"]), max(of["s"]), max(map(peak_mb, jobs))]
    written = [f"{cell:,.0f}" for cell in cells] + [f"{share:.0%}"]
    written += [f"{cell:,.0f}" for cell in (sum(of["io_in"]), sum(of["io_out"]))]
    return f"| {name} | {' | '.join(written)} |"


def peak_mb(job: dict[str, Any]) -> float:
    """The most memory that a job had, MB: Snakemake counts in MiB."""
    return _number(job["max_rss"]) * 2**20 / 1e6


def _number(value: Any) -> float:
    """A figure of a record; a job that ended at once has none."""
    return float(value) if isinstance(value, (int, float)) else 0.0
