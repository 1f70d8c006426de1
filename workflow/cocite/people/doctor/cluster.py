"""A cluster with Slurm: whether it answers, what it remembers of jobs, and whether the profile fits it."""

import re
import shutil
import subprocess
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from cocite.people.doctor.asked import asked
from cocite.people.doctor.finding import Finding
from cocite.people.doctor.limits import FORMAT, as_mapping, compare, read_limits

PATIENCE = 20
"""Seconds that Slurm is waited for."""
PLACEHOLDERS = ("your-partition", "your-account", "your-gpu-partition")
"""What the delivered profile has in place of names that only the site knows."""
LONGEST_LOOK_AWAY = 180
"""Seconds that Snakemake may let pass from one look at its jobs to the next."""


def examine_cluster(profile: Path, config: Mapping[str, Any] | None = None) -> Iterator[Finding]:
    """The findings on Slurm, and on the profile for it; with a configuration, on what its jobs ask for as well."""
    partitions = yield from slurm()
    if partitions:
        yield from memory_of_jobs()
    written = yield from site(profile, partitions)
    if partitions and written and config:
        yield from grants(written, config)


def grants(profile: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether partitions grant what the rules ask for."""
    try:
        answered = _ask("sinfo", "--noheader", "--Node", f"--format={FORMAT}")
    except (subprocess.SubprocessError, OSError):
        yield Finding("warning", "sinfo does not tell what partitions grant", "ask those who run the cluster")
        return
    yield from compare(read_limits(answered), asked(config), profile)


def slurm() -> Generator[Finding, None, list[str]]:
    """Whether Slurm answers; returns the names of its partitions, none if it does not."""
    if shutil.which("sinfo") is None:
        yield Finding("failed", "no Slurm: sinfo is not on the PATH", "start from a login node of the cluster")
        return []
    try:
        answered = _ask("sinfo", "--noheader", "--format=%R")
    except (subprocess.SubprocessError, OSError) as error:
        reason = (getattr(error, "stderr", None) or str(error)).strip().partition("\n")[0]
        yield Finding("failed", f"Slurm does not answer: {reason}", "ask those who run the cluster")
        return []
    partitions = sorted(set(answered.split()))
    yield Finding("ok", f"Slurm answers, with the partitions {', '.join(partitions)}")
    return partitions


def memory_of_jobs() -> Iterator[Finding]:
    """Whether Slurm keeps accounts of jobs that have ended, or else remembers them until Snakemake looks."""
    try:
        told = dict(re.findall(r"^(\w+) *= *(.*)$", _ask("scontrol", "show", "config"), flags=re.MULTILINE))
    except (subprocess.SubprocessError, OSError):
        yield Finding("warning", "scontrol does not tell how long ended jobs are remembered", "see docs/slurm.md")
        return
    if not told.get("AccountingStorageType", "(null)").endswith(("none", "(null)")):
        yield Finding("ok", "Slurm keeps accounts of jobs")
        return
    to_do = "take slurm_account out of the profile, and add --slurm-status-command squeue (docs/slurm.md)"
    yield Finding("warning", "Slurm keeps no accounts of jobs", to_do)
    age = re.match(r"\d+", told.get("MinJobAge", ""))
    if age and int(age[0]) < LONGEST_LOOK_AWAY:
        what = f"Slurm forgets jobs {age[0]} seconds after their end, and Snakemake would wait for them for ever"
        yield Finding("failed", what, "ask those who run the cluster for a MinJobAge of 300")


def site(profile: Path, partitions: list[str]) -> Generator[Finding, None, Mapping[str, Any]]:
    """Whether the profile names an account, and partitions that there are; returns what is written in it."""
    file = profile / "config.yaml"
    if not file.is_file():
        yield Finding("failed", f"{file} does not exist", "--profile names a folder, such as slurm")
        return {}
    try:
        written = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        settings = list(_resources(written))
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError, TypeError, ValueError):
        yield Finding("failed", f"{file} is no profile", "compare it with profiles/slurm/config.yaml")
        return {}
    if not any("slurm_partition" in resources for resources in settings):
        yield Finding("warning", f"{file} names no partition", "Slurm takes its default, or refuses all jobs")
    for entry in ("slurm_partition", "slurm_account"):
        for name in sorted({str(resources[entry]) for resources in settings if entry in resources}):
            if name in PLACEHOLDERS:
                yield Finding("failed", f"{file}: {entry} is still {name}", "set it to what your site has")
            elif entry == "slurm_partition" and partitions and name not in partitions:
                yield Finding("failed", f"{file}: no partition {name}", f"take one of {', '.join(partitions)}")
            else:
                yield Finding("ok", f"{file}: {entry} {name}")
    return dict(written)


def _resources(written: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What jobs ask for: all of them, then those of each rule."""
    yield from map(as_mapping, (written.get("default-resources"), *(written.get("set-resources") or {}).values()))


def _ask(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
