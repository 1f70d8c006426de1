"""A cluster with Slurm: whether it answers, what it remembers of jobs, and whether the profile fits what it grants."""

import math
import re
import shutil
import subprocess
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from cocite.tools.doctor import TIMEOUT, Finding
from cocite.tools.doctor.asked import Request, asked

PLACEHOLDERS = ("your-partition", "your-account", "your-gpu-partition")
"""The names in the delivered profile that a site has to replace."""
LONGEST_INTERVAL = 180
"""Seconds that may pass between two checks of Snakemake on its jobs."""
FORMAT = "%R|%l|%c|%m"
"""The columns of `sinfo`, a line for each node: partition, time limit, processors, memory in MB."""
LINE = re.compile(r"^([^|]+)\|([^|]+)\|(\d+)\+?\|(\d+)\+?$", flags=re.MULTILINE)
TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<parts>\d+(?::\d+){0,2})")
A_DAY = 24 * 60
WORDS = {"minutes": ("runtime", "minutes"), "memory_mb": ("mem_mb", "MB of memory"), "threads": ("threads", "threads")}
"""Kind of resource → its key in a profile, and its unit in words."""


def examine_cluster(profile: Path, config: Mapping[str, Any] | None = None) -> Iterator[Finding]:
    """The findings on Slurm and on its profile; with a configuration, also on what its jobs ask for."""
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
        yield Finding("warning", "sinfo does not say what partitions grant", "ask the cluster's administrators")
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
        yield Finding("failed", f"Slurm does not answer: {reason}", "ask the cluster's administrators")
        return []
    partitions = sorted(set(answered.split()))
    yield Finding("ok", f"Slurm answers, with the partitions {', '.join(partitions)}")
    return partitions


def memory_of_jobs() -> Iterator[Finding]:
    """Whether Slurm keeps accounts of ended jobs, or at least remembers them until Snakemake checks."""
    try:
        settings = dict(re.findall(r"^(\w+) *= *(.*)$", _ask("scontrol", "show", "config"), flags=re.MULTILINE))
    except (subprocess.SubprocessError, OSError):
        yield Finding("warning", "scontrol does not say how long Slurm remembers ended jobs", "see docs/slurm.md")
        return
    if not settings.get("AccountingStorageType", "(null)").endswith(("none", "(null)")):
        yield Finding("ok", "Slurm keeps accounts of jobs")
        return
    to_do = "remove slurm_account from the profile, and add --slurm-status-command squeue (docs/slurm.md)"
    yield Finding("warning", "Slurm keeps no accounts of jobs", to_do)
    age = re.match(r"\d+", settings.get("MinJobAge", ""))
    if age and int(age[0]) < LONGEST_INTERVAL:
        what = f"Slurm forgets jobs {age[0]} seconds after their end, so Snakemake may wait for them forever"
        yield Finding("failed", what, "ask the cluster's administrators for a MinJobAge of 300")


def site(profile: Path, partitions: list[str]) -> Generator[Finding, None, Mapping[str, Any]]:
    """Whether the profile names an account and existing partitions; returns the content of the profile."""
    file = profile / "config.yaml"
    if not file.is_file():
        yield Finding("failed", f"{file} does not exist", "give --profile a folder, such as slurm")
        return {}
    try:
        written = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        settings = list(_resources(written))
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError, TypeError, ValueError):
        yield Finding("failed", f"{file} is not a profile", "compare it with profiles/slurm/config.yaml")
        return {}
    if not any("slurm_partition" in resources for resources in settings):
        yield Finding("warning", f"{file} names no partition", "Slurm uses its default partition, or refuses all jobs")
    for entry in ("slurm_partition", "slurm_account"):
        for name in sorted({str(resources[entry]) for resources in settings if entry in resources}):
            if name in PLACEHOLDERS:
                yield Finding("failed", f"{file}: {entry} is still {name}", "set it to the name at your site")
            elif entry == "slurm_partition" and partitions and name not in partitions:
                yield Finding("failed", f"{file}: no partition {name}", f"use one of {', '.join(partitions)}")
            else:
                yield Finding("ok", f"{file}: {entry} {name}")
    return dict(written)


def _resources(written: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The resources of a profile: of all rules, then of each."""
    yield from map(_as_mapping, (written.get("default-resources"), *(written.get("set-resources") or {}).values()))


def _ask(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT).stdout


def read_limits(answered: str) -> dict[str, Request]:
    """The most that each partition grants to one job on its largest node, from the output of `sinfo --Node`."""
    found: dict[str, Request] = {}
    for partition, time, processors, memory in LINE.findall(answered):
        node = {"minutes": in_minutes(time), "memory_mb": int(memory), "threads": int(processors)}
        before = found.setdefault(partition, node)
        found[partition] = {kind: max(before[kind], node[kind]) for kind in node}
    return found


def in_minutes(time: str) -> float:
    """A Slurm time in minutes: `30:00`, `4:00:00`, `1-00:00:00`, `infinite`."""
    match = TIME.fullmatch(time.strip())
    if match is None:
        return math.inf
    parts = [int(part) for part in match["parts"].split(":")]
    if match["days"] is None:  # seconds come last; behind days, hours come first
        parts = [0] * (3 - len(parts)) + parts
    hours, minutes, seconds = [*parts, 0, 0][:3]
    return int(match["days"] or 0) * A_DAY + hours * 60 + minutes + seconds / 60


def compare(
    limits: Mapping[str, Request], asked: Mapping[str, Request], profile: Mapping[str, Any]
) -> Iterator[Finding]:
    """The findings on each partition that the profile sends jobs to."""
    of_partition: dict[str, dict[str, Request]] = {}
    of_all = _as_mapping(profile.get("default-resources"))
    for rule, request in asked.items():
        own = _as_mapping((profile.get("set-resources") or {}).get(rule))
        partition = str(own.get("slurm_partition", of_all.get("slurm_partition", "")))
        written = {**own, "threads": (profile.get("set-threads") or {}).get(rule)}
        overridden = {kind: int(written[key]) for kind, (key, _) in WORDS.items() if str(written.get(key)).isdigit()}
        of_partition.setdefault(partition, {})[rule] = request | overridden
    for partition, jobs in of_partition.items():
        if partition in limits:
            yield from _partition(partition, limits[partition], jobs)


def _partition(name: str, limits: Request, jobs: Mapping[str, Request]) -> Iterator[Finding]:
    exceeded = False
    for kind, (key, unit) in WORDS.items():
        most = max(jobs, key=lambda rule: jobs[rule][kind])
        if jobs[most][kind] > limits[kind]:
            exceeded = True
            what = f"partition {name} grants {limits[kind]:.0f} {unit}, and {most} asks for {jobs[most][kind]}"
            yield Finding("failed", what, f"set its {key} in the profile, or send the rule to another partition")
    if not exceeded and limits["minutes"] < A_DAY:
        what = (
            f"partition {name} grants {limits['minutes']:.0f} minutes, and jobs with a large input ask for up to a day"
        )
        yield Finding("warning", what, "set their runtime in the profile where Slurm refuses them")
    elif not exceeded:
        yield Finding("ok", f"partition {name} grants what its rules ask for at least")


def _as_mapping(resources: Any) -> Mapping[str, Any]:
    """Resources of a profile, which are a mapping or a list of `name=value`."""
    return dict(item.split("=", 1) for item in resources) if isinstance(resources, list) else resources or {}
