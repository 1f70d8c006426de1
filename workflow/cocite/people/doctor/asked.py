"""The least that jobs ask for, read from the rules and, for trainings, from the configuration.

Most requests grow with the size of the input, which is not known before a run; their constant part is a number in the
rule.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RULES = Path(__file__).parents[4] / "rules"
RULE = re.compile(
    r"^ *(?:rule (?P<rule>\w+)|use rule (?P<base>\w+) as (?P<use>\w+) with):\n(?P<body>.*?)(?=^ *(?:use )?rule |\Z)",
    flags=re.MULTILINE | re.DOTALL,
)
NUMBERS = {
    "memory_mb": re.compile(r'mem_mb=megabytes\((\d+)(?: if config\["gpu"\] else (\d+))?'),
    "minutes": re.compile(r"runtime=(?:minutes\()?(\d+)"),
    "threads": re.compile(r"threads: (\d+)"),
}

USUAL = {"memory_mb": 0, "minutes": 0, "threads": 1}
"""The request of a rule that states no number."""
Configuration = Mapping[str, Any]

UNUSED: Mapping[str, Callable[[Configuration], bool]] = {
    "fetch_triplets": lambda config: config["queries"]["from"] != "triplets",
    "fetch_benchmark": lambda config: not any("hub" in entry for entry in config["benchmarks"].values()),
    "download_shards": lambda config: config["corpus"]["source"] == "directory",
    "train_encoder": lambda config: not config["models"],
    "embed_documents": lambda config: not config["encoders"],
}
"""Rules with large requests → whether they have no job with a configuration."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The least that the jobs of a rule ask for in their first attempt; 0 where it depends on the input alone."""

    rule: str
    memory_mb: int
    minutes: int
    threads: int


def asked(config: Configuration) -> list[Asked]:
    """The requests of all rules that have jobs with a configuration."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(RULES.glob("*.smk")))
    found: dict[str, dict[str, int]] = {}
    for match in RULE.finditer(text):
        if _is_unused(match["rule"] or match["base"], config):
            continue
        of_base = found[match["base"]] if match["base"] else USUAL
        found[match["rule"] or match["use"]] = of_base | _numbers(match["body"], gpu=config["gpu"])
    for entry in config["models"].values():
        numbers = found["train_encoder"]
        for name in NUMBERS.keys() & entry.keys():
            numbers[name] = max(numbers[name], entry[name])
    return [Asked(rule=rule, **numbers) for rule, numbers in found.items() if not _is_unused(rule, config)]


def _numbers(body: str, *, gpu: bool) -> dict[str, int]:
    """The requests that a rule states as numbers."""
    found = {name: pattern.search(body) for name, pattern in NUMBERS.items()}
    return {name: _number(match, gpu=gpu) for name, match in found.items() if match}


def _number(match: re.Match[str], *, gpu: bool) -> int:
    with_gpu, *without = (int(group) for group in match.groups() if group is not None)
    return with_gpu if gpu or not without else without[0]


def _is_unused(rule: str, config: Configuration) -> bool:
    return rule in UNUSED and UNUSED[rule](config)
