"""One finished run of a small demo, for the tests that look at it or plan on top of it."""

import gzip
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.configurations import with_changes
from tests.hub import serve_hub
from tests.workflow.preloaded import snakemake

ROOT = Path(__file__).parents[2]

SMALL = {
    "run_seed": 1,
    "release": "2026-01-06",
    "precision": "float32",
    "corpus": {"source": "demo", "buckets": 2, "demo": {"papers": 700, "topics": 8, "shards": 2}},
    "queries": {"count": 150, "min_references": 5, "holdout": 40},
    "graphs": {"cocitation": {"signal": "cocitation"}, "citation": {"signal": "citation"}},
    "embeddings": {"cocitation-dot": {"graph": "cocitation", "dimension": 32, "epochs": 3, "neighbours": {"k": 100}}},
    "triplets": {
        "cocite": {
            **{"sampler": "neighbours", "embedding": "cocitation-dot"},
            **{"k_positive": 10, "k_negative": 80, "easy": 2},
        },
        "specter": {"sampler": "citations", "graph": "citation"},
    },
    "encoders": {"small": {"build": {"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000}, "max_length": 48}},
    "models": {
        "cocite": {"triplets": "cocite", "encoder": "small", "loss": "triplet", "lr": 3.0e-3, "epochs": 4},
        "specter": {"triplets": "specter", "encoder": "small", "loss": "infonce", "lr": 3.0e-3, "epochs": 2},
    },
    "benchmarks": {
        "holdout": {"kind": "holdout"},
        "scirepeval": {
            "kind": "scirepeval",
            "folder": "demo",
            "tasks": ["biomimicry", "pub_year", "relish", "paper_reviewer_matching_hard", "search"],
        },
    },
}
RECORDS = {
    "papers": {"corpusid": 1, "title": "On shards"},
    "abstracts": {"corpusid": 1, "abstract": "Text."},
    "citations": {"citingcorpusid": 1, "citedcorpusid": 2},
}
"""A record of each dataset."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A working folder in which Snakemake runs the workflow."""

    folder: Path

    def configure(self, config: dict[str, Any], name: str = "config.yaml") -> Path:
        path = self.folder / name
        path.write_text(yaml.safe_dump(config))
        return path

    def copy(self, folder: Path) -> "Run":
        """A copy of all that is in the folder, in a folder that does not exist yet."""
        return Run(folder=shutil.copytree(self.folder, folder))

    def command(self, *arguments: str, config: Path | None = None) -> list[str]:
        """The command that starts Snakemake here."""
        return [sys.executable, "-m", "snakemake", *self._options(config), *arguments]

    def snakemake(self, *arguments: str, config: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run that command, in a process that need not import Snakemake first."""
        return snakemake([*self._options(config), *arguments])

    def make(self, *targets: str, config: Path | None = None, options: Sequence[str] = ()) -> str:
        """Make targets; return what Snakemake says. It must succeed."""
        result = self.snakemake("--show-failed-logs", *options, "--", *targets, config=config)
        assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-5000:]
        return result.stdout + result.stderr

    def fetch(self, patch: pytest.MonkeyPatch, repositories: dict[str, Path], rule: str, *targets: str) -> None:
        """Run up to a rule that fetches from a hub that serves these folders, then make targets without the hub."""
        patch.setenv("HF_HOME", str(self.folder / "home"))
        patch.setenv("NO_PROXY", "*")
        patch.delenv("HF_HUB_OFFLINE", raising=False)  # tests that embed in this process have switched it on
        with serve_hub(repositories) as (url, _):
            patch.setenv("HF_ENDPOINT", url)
            self.make(*targets, options=["--until", rule])
        patch.setenv("HF_HUB_OFFLINE", "1")
        self.make(*targets)

    def _options(self, config: Path | None) -> list[str]:
        options = ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(self.folder), "--cores", "2"]
        options += ["--resources", "mem_mb=4000", "--configfile", str(config or self.folder / "config.yaml")]
        return [*options, "--replace-workflow-config"]


def write_release(folder: Path) -> None:
    """A release with one shard of each dataset, which holds its record."""
    for dataset, record in RECORDS.items():
        (folder / dataset).mkdir(parents=True)
        (folder / dataset / "0.gz").write_bytes(gzip.compress(json.dumps(record).encode() + b"\n"))


def edited(**entries):
    """The small configuration with some keys changed."""
    return with_changes(SMALL, **entries)


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job as a dry run prints it."""

    rule: str
    inputs: list[str]
    outputs: list[str]
    wildcards: dict[str, str]
    threads: int
    resources: dict[str, str]
    command: str
    """With one space between two words."""


@dataclass(frozen=True)
class Plan:
    """The jobs of a dry run, and all that it says."""

    jobs: list[Job]
    said: str

    def rules(self) -> set[str]:
        return {job.rule for job in self.jobs}

    def of(self, rule: str, **wildcards: str) -> list[Job]:
        """The jobs of a rule, of those with some wildcards."""
        return [job for job in self.jobs if job.rule == rule and wildcards.items() <= job.wildcards.items()]

    def one(self, rule: str, **wildcards: str) -> Job:
        [job] = self.of(rule, **wildcards)
        return job

    def outputs(self, *rules: str) -> list[str]:
        """All outputs of the jobs of some rules."""
        return [output for job in self.jobs if job.rule in rules for output in job.outputs]

    def commands(self, start: str) -> list[str]:
        """The commands that start so."""
        return [job.command for job in self.jobs if job.command.startswith(f"cocite {start} ")]


def planned(run: Run, config: dict | None = None, *targets: str, options: Sequence[str] = ()) -> Plan:
    """The jobs of a dry run with a configuration, or with that of the run."""
    file = None if config is None else run.configure(config, "edited.yaml")
    dry = ["--dry-run", "--printshellcmds", "--rerun-incomplete", *options]
    result = run.snakemake(*dry, "--", *(targets or ["all"]), config=file)
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-5000:]
    jobs = [_job(*block) for block in BLOCK.findall(result.stdout)]
    return Plan([job for job in jobs if job.outputs], said=result.stdout + result.stderr)


BLOCK = re.compile(
    r"^(?:local)?rule (\w+):\n((?:    .*\n)*)(?:Shell command: \n((?:\s+.*\n)*?)\s*\n(?=\[|\S))?", re.MULTILINE
)


def _job(rule: str, lines: str, command: str) -> Job:
    told = dict(line.strip().partition(": ")[::2] for line in lines.splitlines())
    names = ("input", "output", "wildcards", "resources")
    inputs, outputs, *pairs = (told[name].split(", ") if name in told else [] for name in names)
    wildcards, resources = (dict(each.split("=", 1) for each in listed) for listed in pairs)
    return Job(
        rule=rule,
        inputs=inputs,
        outputs=outputs,
        wildcards=wildcards,
        resources=resources,
        threads=int(told.get("threads", 1)),  # which Snakemake does not print
        command=" ".join(command.split()),
    )


def fresh_run(folder: Path) -> Run:
    """A working folder with the small configuration and nothing made yet."""
    run = Run(folder=folder)
    run.configure(SMALL)
    return run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A fresh run."""
    return fresh_run(tmp_path)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A working folder in which the small configuration ran to its end."""
    finished = fresh_run(tmp_path_factory.mktemp("finished"))
    finished.make("all")
    return finished


@pytest.fixture(scope="session")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """The jobs of the small configuration where nothing is made yet."""
    return planned(Run(folder=tmp_path_factory.mktemp("planned")), SMALL)
