"""A run of five steps on two cores, with the log that Snakemake writes of it."""

import json
import time
from pathlib import Path

import pytest
from tests.tools.builders import write_start

from cocite.config.started import Job, Start

STARTED = 4_000_000_000.0
"""Later than the files that a test writes, unless it says when they were written."""


def _job(number: int, rule: str, stage: str, after: list[int], **others) -> Job:
    fields = {"outputs": [f"results/{rule}"], "log": f"logs/{rule}.log", "benchmark": f"benchmarks/{rule}.jsonl"}
    fields |= {"of": "", "is_needed": True, "threads": 1, **others}
    return Job(number=number, rule=rule, stage=stage, after=after, **fields)


JOBS = [
    _job(4, "download", "corpus", [], is_needed=False),
    _job(3, "ingest", "corpus", []),
    _job(2, "train", "encoder", [3], of="cocite 1", threads=2),
    _job(1, "score", "evaluation", [2]),
    _job(5, "count", "evaluation", [3]),
]


def event(seconds: float, *lines: str) -> str:
    """Lines of Snakemake's log, so many seconds after the start."""
    return "\n".join([f"[{time.asctime(time.localtime(STARTED + seconds))}]", *lines]) + "\n"


def begun(seconds: float, number: int, rule: str) -> str:
    """What Snakemake's log says of a job that it starts."""
    return event(seconds, f"localrule {rule}:", "    input: a", f"    log: logs/{rule}.log", f"    jobid: {number}")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def start(folder):
    """A function that records the run, with such a log of Snakemake's."""

    def write(log: str = "", **others) -> Start:
        path = folder / "snakemake.log"
        path.write_text(log)
        fields = {"time": STARTED, "directory": str(folder), "results": "results", "log": str(path)}
        fields |= {"snakefile": str(folder / "Snakefile"), "configfiles": ["config.yaml"], "process_started": 1.0}
        return write_start(folder / "results", **{**fields, "jobs": JOBS, **others})

    return write


@pytest.fixture
def took(folder):
    """A function that writes down what a step took, in seconds."""

    def write(rule: str, seconds: float) -> None:
        path = folder / f"benchmarks/{rule}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"s": seconds, "cpu_time": 1.0}) + "\n")

    return write


@pytest.fixture
def logged(folder):
    """A function that writes the log of a step."""

    def write(rule: str, text: str) -> Path:
        path = folder / f"logs/{rule}.log"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return write
