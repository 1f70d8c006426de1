"""The least that jobs ask for, read from the rules and, for trainings, from the configuration.

Most requests grow with the size of the input, which is not known before a run; their constant part is a number in the
rule.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

RULES = Path(__file__).parents[4] / "rules"
RULE = re.compile(
    r"^ *(?:rule (?P<rule>\w+)|use rule (?P<base>\w+) as (?P<use>\w+) with):\n(?P<body>.*?)(?=^ *(?:use )?rule |\Z)",
    flags=re.MULTILINE | re.DOTALL,
)
NUMBERS = {
    "memory_mb": re.compile(r"mem_mb=megabytes\((\d+)(?: if WITH_GPU else (\d+))?"),
    "minutes": re.compile(r"runtime=(?:minutes\()?(\d+)"),
    "threads": re.compile(r"threads: (\d+)(?: if WITH_GPU else (\d+))?"),
}

Request = dict[str, float]
"""What a job asks for, or a partition grants: `memory_mb`, `minutes` and `threads`."""
USUAL: Request = {"memory_mb": 0, "minutes": 0, "threads": 1}
"""The request of a rule that states no number."""
Configuration = Mapping[str, Any]

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


def rule_files() -> list[Path]:
    """The files that hold the rules: one for each stage, and those in the folder of a stage that has many."""
    return sorted(file for file in RULES.rglob("*.smk") if file.parent.name != "common")


def asked(config: Configuration) -> dict[str, Request]:
    """The least that the jobs of each rule ask for in their first attempt; 0 where it depends on the input alone.

    Rules that have no job with the configuration are left out.
    """
    text = "".join(path.read_text(encoding="utf-8") for path in rule_files())
    found: dict[str, Request] = {}
    for match in RULE.finditer(text):
        rule, base, use = match.group("rule", "base", "use")
        if not any(UNUSED[name](config) for name in (rule, base, use) if name in UNUSED):
            of_base = found[base] if base else USUAL
            found[rule or use] = of_base | _numbers(match["body"], gpu=config["gpu"])
    for entry in config["models"].values():
        numbers = found["train_encoder"]
        for name in NUMBERS.keys() & entry.keys():
            numbers[name] = max(numbers[name], entry[name])
    return found


def _numbers(body: str, *, gpu: bool) -> Request:
    """The requests that a rule states as numbers; there may be a second one for machines without a GPU."""
    found = {name: pattern.search(body) for name, pattern in NUMBERS.items()}
    return {name: int(match[1 if gpu else match.lastindex or 1]) for name, match in found.items() if match}
