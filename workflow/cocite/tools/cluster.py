"""What jobs ask for, and a cluster with Slurm: whether it answers, what it remembers, and whether it grants that.

Most requests grow with the size of the input, which is not known before a run; their constant part is a number in the
rule. Trainings ask for what the configuration says.
"""

import math
import re
import shutil
import subprocess
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

TIMEOUT = 20
"""Seconds to wait for an answer of the API or of Slurm."""
RULES = Path(__file__).parents[3] / "rules"
RULE = re.compile(
    r"^ *(?:rule (?P<rule>\w+)|use rule (?P<base>\w+) as (?P<use>\w+) with):\n(?P<body>.*?)(?=^ *(?:use )?rule |\Z)",
    flags=re.MULTILINE | re.DOTALL,
)
NUMBERS = {
    "memory_mb": re.compile(r"mem_mb=megabytes\((\d+)(?: if plan\.with_gpu else (\d+))?"),
    "minutes": re.compile(r"runtime=(?:minutes\()?(\d+)"),
    "threads": re.compile(r"threads: (\d+)(?: if plan\.with_gpu else (\d+))?"),
}

Configuration = Mapping[str, Any]
Request = dict[str, float]
"""What a job asks for, or a partition grants: `memory_mb`, `minutes` and `threads`."""
USUAL: Request = {"memory_mb": 0, "minutes": 0, "threads": 1}
"""The request of a rule that states no number."""

UNUSED: Mapping[str, Callable[[Configuration], bool]] = {
    "fetch_triplets": lambda config: config["queries"]["from"] != "triplets",
    "fetch_benchmark": lambda config: not any("hub" in entry for entry in config["benchmarks"].values()),
    "download_shards": lambda config: config["corpus"]["source"] in ("directory", "table"),
    "ingest": lambda config: config["corpus"]["source"] in ("openalex", "table"),
    "ingest_tables": lambda config: config["corpus"]["source"] != "table",
    "ingest_works": lambda config: config["corpus"]["source"] != "openalex",
    "reuse_works": lambda config: config["corpus"]["source"] != "openalex" or "base" not in config["corpus"],
    "list_names": lambda config: config["corpus"].get("ids") != "string",
    "number_ids": lambda config: config["corpus"].get("ids") != "string",
    "number_names": lambda config: config["corpus"].get("ids") != "string",
    "train_encoder": lambda config: not config["models"],
    "embed_documents": lambda config: not config["encoders"],
}
"""Rules with large requests → whether they have no job with a configuration."""
PLACEHOLDERS = ("your-partition", "your-account", "your-gpu-partition")
"""The names in the delivered profile that a site has to replace."""
FORMAT = "%R|%l|%c|%m"
"""The columns of `sinfo`, a line for each node: partition, time limit, processors, memory in MB."""
LINE = re.compile(r"^([^|]+)\|([^|]+)\|(\d+)\+?\|(\d+)\+?$", flags=re.MULTILINE)
TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<parts>\d+(?::\d+){0,2})")
A_DAY = 24 * 60
WORDS = {"minutes": ("runtime", "minutes"), "memory_mb": ("mem_mb", "MB of memory"), "threads": ("threads", "threads")}
"""Kind of resource → its key in a profile, and its unit in words."""


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's report."""

    verdict: Literal["ok", "warning", "failed"]
    what: str
    """What was checked, with the result."""
    to_do: str = ""

    def __str__(self) -> str:
        """The line that is printed."""
        return " — ".join(part for part in (f"{self.verdict:7}", self.what, self.to_do) if part)


def rule_files() -> list[Path]:
    """The files that hold the rules."""
    return sorted(RULES.rglob("*.smk"))


def least_requests(config: Configuration) -> dict[str, Request]:
    """The least that the jobs of each rule with jobs ask for at first; 0 where it depends on the input alone."""
    text = "".join(path.read_text(encoding="utf-8") for path in rule_files())
    found: dict[str, Request] = {}
    for match in RULE.finditer(text):
        rule, base, use = match.group("rule", "base", "use")
        if not any(UNUSED[name](config) for name in (rule, base, use) if name in UNUSED):
            numbers: Request = {}
            for name, pattern in NUMBERS.items():
                if stated := pattern.search(match["body"]):  # perhaps with a second number, for machines without a GPU
                    numbers[name] = int(stated[1 if config["gpu"] else stated.lastindex or 1])
            found[rule or use] = (found[base] if base else USUAL) | numbers
    for entry in config["models"].values():
        largest = found["train_encoder"]
        for name in NUMBERS.keys() & entry.keys():
            largest[name] = max(largest[name], entry[name])
    return found


def examine_cluster(profile: Path, config: Configuration | None = None) -> Iterator[Finding]:
    """The findings on Slurm and on its profile; with a configuration, also on what its jobs ask for."""
    partitions = yield from slurm()
    if partitions:
        yield from memory_of_jobs()
    written = yield from site(profile, partitions)
    if partitions and written and config:
        try:
            answered = _ask("sinfo", "--noheader", "--Node", f"--format={FORMAT}")
        except (subprocess.SubprocessError, OSError):
            yield Finding("warning", "sinfo does not say what partitions grant", "ask the cluster's administrators")
        else:
            yield from compare(read_limits(answered), least_requests(config), written)


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
    if age and int(age[0]) < 180:  # seconds that may pass between two checks of Snakemake on its jobs
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
        of_all = (written.get("default-resources"), written.get("set-threads"))
        settings = [*map(_as_mapping, (*of_all, *(written.get("set-resources") or {}).values()))]
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
    if (match := TIME.fullmatch(time.strip())) is None:
        return math.inf
    parts = [int(part) for part in match["parts"].split(":")]
    # Seconds come last; behind days, hours come first.
    hours, minutes, seconds = [0, 0, *parts][-3:] if match["days"] is None else [*parts, 0, 0][:3]
    return int(match["days"] or 0) * A_DAY + hours * 60 + minutes + seconds / 60


def compare(
    limits: Mapping[str, Request], requests: Mapping[str, Request], profile: Mapping[str, Any]
) -> Iterator[Finding]:
    """The findings on each partition that the profile sends jobs to."""
    of_partition: dict[str, dict[str, Request]] = {}
    of_all = _as_mapping(profile.get("default-resources"))
    for rule, request in requests.items():
        own = _as_mapping((profile.get("set-resources") or {}).get(rule))
        partition = str(own.get("slurm_partition", of_all.get("slurm_partition", "")))
        written = {**own, "threads": _as_mapping(profile.get("set-threads")).get(rule)}
        overridden = {kind: int(written[key]) for kind, (key, _) in WORDS.items() if str(written.get(key)).isdigit()}
        of_partition.setdefault(partition, {})[rule] = request | overridden
    for name in of_partition.keys() & limits.keys():
        granted, jobs, exceeded = limits[name], of_partition[name], False
        for kind, (key, unit) in WORDS.items():
            rule, most = max(((rule, jobs[rule][kind]) for rule in jobs), key=lambda job: job[1])
            if most > granted[kind]:
                exceeded = True
                what = f"partition {name} grants {granted[kind]:.0f} {unit}, and {rule} asks for {most}"
                yield Finding("failed", what, f"set its {key} in the profile, or send the rule to another partition")
        if not exceeded and granted["minutes"] < A_DAY:
            what = f"{granted['minutes']:.0f} minutes, and jobs with a large input ask for up to a day"
            to_do = "set their runtime in the profile where Slurm refuses them"
            yield Finding("warning", f"partition {name} grants {what}", to_do)
        elif not exceeded:
            yield Finding("ok", f"partition {name} grants what its rules ask for at least")


def _as_mapping(resources: Any) -> Mapping[str, Any]:
    """Resources of a profile, which are a mapping, a text `name=value`, or a list of such texts."""
    items = [resources] if isinstance(resources, str) else resources or {}
    return dict(item.split("=", 1) for item in items) if isinstance(items, list) else dict(items)
