"""What the partitions of a cluster grant, beside what the rules ask for there."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cocite.people.doctor.asked import Asked
from cocite.people.doctor.finding import Finding

FORMAT = "%R|%l|%c|%m"
"""What `sinfo` is asked for of each node: partition, time limit, processors, memory in MB."""
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


def read_limits(answered: str) -> dict[str, Limits]:
    """The limits of each partition, from what `sinfo --Node` answers; those of its largest node."""
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
    """A time of Slurm in minutes: `30:00`, `4:00:00`, `1-00:00:00`, `infinite`."""
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
            yield Finding("failed", what, f"set its {key} in the profile, or send it to another partition")
    if not exceeded and limits.minutes < A_DAY:
        what = f"partition {name} grants {limits.minutes:.0f} minutes, and long jobs ask for up to a day by their input"
        yield Finding("warning", what, "set their runtime in the profile where Slurm refuses them")
    elif not exceeded:
        yield Finding("ok", f"partition {name} grants what its rules ask for at least")


def _overwritten(one: Asked, profile: Mapping[str, Any]) -> Asked:
    """What a rule asks for with the profile."""
    threads = (profile.get("set-threads") or {}).get(one.rule, one.threads)
    return Asked(
        rule=one.rule,
        memory_mb=_number(_of_rule(profile, one.rule, "mem_mb", default=False), one.memory_mb),
        minutes=_number(_of_rule(profile, one.rule, "runtime", default=False), one.minutes),
        threads=_number(threads, one.threads),
    )


def _of_rule(profile: Mapping[str, Any], rule: str, key: str, *, default: bool = True) -> Any:
    """A resource as the profile sets it for a rule, or else for all rules."""
    own = as_mapping((profile.get("set-resources") or {}).get(rule))
    common = as_mapping(profile.get("default-resources")) if default else {}
    return own.get(key, common.get(key))


def _number(given: Any, otherwise: int) -> int:
    return int(given) if str(given).isdigit() else otherwise


def as_mapping(resources: Any) -> Mapping[str, Any]:
    """Resources of a profile, which stand there as a mapping or as a list of `name=value`."""
    return dict(item.split("=", 1) for item in resources) if isinstance(resources, list) else resources or {}
