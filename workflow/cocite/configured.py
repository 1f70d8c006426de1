"""Whether a configuration has what a file of the results is of: entries that were renamed leave files behind."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cocite.benchmarks import suites_of
from cocite.files import read_json
from cocite.runs import runs_of

PROVENANCE = "provenance.json"
SECTIONS = {"graph": "graphs", "embedding": "embeddings", "triplets": "triplets", "benchmark": "benchmarks"}
"""Where the configuration has what a path tells."""
STEPS = {
    "graph": ("graphs", r"-[a-z]+-\d+"),
    "biggraph": ("embeddings", ""),
    "neighbours": ("embeddings", r"_\d+"),
    "triplets": ("triplets", ""),
    "evaluation": ("benchmarks", ""),
}
"""Where it has what the steps of a stage are of, and what follows its name in theirs."""


def configuration_of(results: Path) -> Mapping[str, Any] | None:
    """The configuration of the last run in this folder; none before there was one."""
    path = results / PROVENANCE
    return read_json(path)["configuration"] if path.is_file() else None


def is_configured(told: Mapping[str, str], config: Mapping[str, Any]) -> bool:
    """Whether the configuration has all that a path tells: a graph, a benchmark and its suite, a model and its seed."""
    if "step" in told:
        return _is_step(told["stage"], told["step"], config)
    if any(told[name] not in config[section] for name, section in SECTIONS.items() if name in told):
        return False
    if "suite" in told and told["suite"] not in suites_of(config["benchmarks"][told["benchmark"]]):
        return False
    if "group" in told and told["group"] not in [entry["group"] for entry in config["triplets"].values()]:
        return False
    return "model" not in told or f"{told['model']}-{told['seed']}" in runs_of(config)


def _is_step(stage: str, step: str, config: Mapping[str, Any]) -> bool:
    if stage == "corpus":
        from_triplets, has_base = config["queries"]["from"] == "triplets", "base" in config["corpus"]
        return {"read": from_triplets, "update": has_base}.get(step.partition("-")[0], True)
    section, number = STEPS[stage]
    return any(re.fullmatch(re.escape(name) + number, step) for name in config[section])
