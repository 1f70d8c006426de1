"""A cluster with Slurm: whether it answers, what it remembers of jobs, and whether the profile fits what it grants."""

import math
import re
import shutil
import subprocess
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cocite.people.doctor import TIMEOUT, Finding
from cocite.people.doctor.asked import Asked, asked

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


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The most that a partition grants to one job on one node."""

    minutes: float
    memory_mb: int
    threads: int


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
    yield from map(as_mapping, (written.get("default-resources"), *(written.get("set-resources") or {}).values()))


def _ask(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT).stdout


def read_limits(answered: str) -> dict[str, Limits]:
    """The limits of each partition's largest node, from the output of `sinfo --Node`."""
    found: dict[str, Limits] = {}
    for partition, time, processors, memory in LINE.findall(answered):
        before = found.get(partition, Limits(minutes=0, memory_mb=0, threads=0))
        found[partition] = Limits(
            minutes=max(before.minutes, in_minutes(time)),
            memory_mb=max(before.memory_mb, int(memory)),
            threads=max(before.threads, int(processors)),
        )
    return found


def in_minutes(time: str) -> float:
    """A Slurm time in minutes: `30:00`, `4:00:00`, `1-00:00:00`, `infinite`."""
    match = TIME.fullmatch(time.strip())
    if match is None:
        return math.inf
    parts = [int(part) for part in match["parts"].split(":")]
    if match["days"] is not None:  # days-hours, days-hours:minutes, days-hours:minutes:seconds
        hours, minutes, seconds = [*parts, 0, 0][:3]
        return int(match["days"]) * A_DAY + hours * 60 + minutes + seconds / 60
    seconds, minutes, hours = [*reversed(parts), 0, 0][:3]
    return hours * 60 + minutes + seconds / 60


def compare(limits: Mapping[str, Limits], asked: list[Asked], profile: Mapping[str, Any]) -> Iterator[Finding]:
    """The findings on each partition that the profile sends jobs to."""
    of_partition: dict[str, list[Asked]] = {}
    for one in asked:
        partition = str(_of_rule(profile, one.rule, "slurm_partition") or "")
        of_partition.setdefault(partition, []).append(_overwritten(one, profile))
    for partition, jobs in of_partition.items():
        if partition in limits:
            yield from _partition(partition, limits[partition], jobs)


def _partition(name: str, limits: Limits, jobs: list[Asked]) -> Iterator[Finding]:
    exceeded = False
    for kind, (key, unit) in WORDS.items():
        most = max(jobs, key=lambda job: getattr(job, kind))
        granted, wanted = getattr(limits, kind), getattr(most, kind)
        if wanted > granted:
            exceeded = True
            what = f"partition {name} grants {granted:.0f} {unit}, and {most.rule} asks for {wanted}"
            yield Finding("failed", what, f"set its {key} in the profile, or send the rule to another partition")
    if not exceeded and limits.minutes < A_DAY:
        what = f"partition {name} grants {limits.minutes:.0f} minutes, and jobs with a large input ask for up to a day"
        yield Finding("warning", what, "set their runtime in the profile where Slurm refuses them")
    elif not exceeded:
        yield Finding("ok", f"partition {name} grants what its rules ask for at least")


def _overwritten(one: Asked, profile: Mapping[str, Any]) -> Asked:
    """The request of a rule, as the profile overrides it."""
    threads = (profile.get("set-threads") or {}).get(one.rule, one.threads)
    return Asked(
        rule=one.rule,
        memory_mb=_number(_of_rule(profile, one.rule, "mem_mb", default=False), one.memory_mb),
        minutes=_number(_of_rule(profile, one.rule, "runtime", default=False), one.minutes),
        threads=_number(threads, one.threads),
    )


def _of_rule(profile: Mapping[str, Any], rule: str, key: str, *, default: bool = True) -> Any:
    """A resource of a rule in the profile, or else the one of all rules."""
    own = as_mapping((profile.get("set-resources") or {}).get(rule))
    common = as_mapping(profile.get("default-resources")) if default else {}
    return own.get(key, common.get(key))


def _number(given: Any, otherwise: int) -> int:
    return int(given) if str(given).isdigit() else otherwise


def as_mapping(resources: Any) -> Mapping[str, Any]:
    """Resources of a profile, which are a mapping or a list of `name=value`."""
    return dict(item.split("=", 1) for item in resources) if isinstance(resources, list) else resources or {}
