"""Whether the files that a run is asked for by name are of its configuration.

Snakemake says of `results/corpus/papers/9.parquet` that no rule makes it, and goes on with a seed that no model has.
Here, each value in a path is compared with the configuration first, so that the message says which values there are;
a misspelt target or path is answered with the nearest that there is.
"""

import difflib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from cocite.config.baselines import baselines_of, seeds_of, trained_entries
from cocite.config.benchmarks import suites_of
from cocite.config.graphs import PAIRS
from cocite.config.release_folder import WORKS
from cocite.config.runs import mapped_runs, model_of, scored_models, training_seeds, untrained
from cocite.config.walks import ranking_of, rankings
from cocite.core.errors import InputError

WILDCARD = re.compile(r"\{(\w+)(?:,(?P<constraint>(?:[^{}]|\{[^{}]*\})*))?\}")
"""A wildcard in a pattern of Snakemake, with the regular expression that it must match, if there is one."""
IMPOSSIBLE = "(?!)"
MOST_NAMED = 12
CLOSE = 0.8
"""Similarity, of 1, from which a word is taken for a misspelt target."""
FLAGS = (
    *("-n", "--dry-run", "-f", "--force", "-F", "--forceall", "-k", "--keep-going", "-p", "--nolock"),
    *("--rerun-incomplete", "--replace-workflow-config"),
)
"""Options of Snakemake behind which a target can stand, as they take no value."""

Wildcards = Mapping[str, str]
"""Wildcard → value in a path."""
CHECKED = (
    "graph",
    "embedding",
    "triplets",
    "encoder",
    "benchmark",
    "map",
    "probe",
    "dataset",
    "pairs",
    "group",
    "model",
    "baseline",
    "suite",
    "seed",
    "part",
    "bucket",
)
"""Wildcards whose values are compared; names come before the numbers that depend on them."""


def check_targets(
    targets: Iterable[str],
    patterns: Iterable[str],
    config: Mapping[str, Any],
    *,
    results: Path,
    parts: Mapping[str, int],
) -> None:
    """Raise `InputError` for a target in the folder `results` with a value that the configuration does not have.

    `patterns` are the outputs of all rules, as Snakemake writes them; what none of them is like is left to Snakemake.
    `parts` is the number of jobs that share the shards of each dataset.
    """
    expressions = [_as_expression(pattern) for pattern in patterns if IMPOSSIBLE not in pattern]
    for target in targets:
        path = os.path.relpath(target)
        if not Path(path).is_relative_to(os.path.relpath(results)):
            continue
        matches = [match.groupdict() for expression in expressions if (match := expression.fullmatch(path))]
        faults = [_fault(wildcards, config, parts) for wildcards in matches]
        if faults and all(faults):
            raise InputError(f"{target} is not of this configuration: {min(filter(None, faults), key=len)}.")


def targets_of(arguments: Sequence[str]) -> list[str]:
    """What of a command line of Snakemake can be a target: words that are no option, no first value of one, no pair."""
    words = (word for before, word in pairwise(["", *arguments]) if before in FLAGS or not before.startswith("-"))
    return [word for word in words if word and not word.startswith("-") and not set("=:") & set(word)]


def check_spelling(targets: Iterable[str], rules: Iterable[str], patterns: Iterable[str], results: Path) -> None:
    """Raise `InputError` for a target that is no rule and no file, but is written much like a rule or a result."""
    patterns, known = list(patterns), {rule: rule for rule in rules}
    expressions = list(map(_as_expression, patterns))
    results_like = {WILDCARD.sub("0", pattern): WILDCARD.sub(r"{\1}", pattern) for pattern in patterns}
    for target in targets:
        path = os.path.relpath(target)
        if target in known or os.path.lexists(path) or any(expression.fullmatch(path) for expression in expressions):
            continue
        among = results_like if Path(path).is_relative_to(os.path.relpath(results)) else known
        if close := difflib.get_close_matches(re.sub(r"\d+", "0", path), among, n=1, cutoff=CLOSE):
            raise InputError(f"No rule makes {target}; did you mean {among[close[0]]}?")


def _as_expression(pattern: str) -> re.Pattern[str]:
    """A pattern with wildcards as a regular expression that takes any value for them."""
    expression, end, seen = "", 0, set()
    pattern = os.path.relpath(pattern)
    for match in WILDCARD.finditer(pattern):
        name = match[1]
        expression += re.escape(pattern[end : match.start()])
        expression += f"(?P={name})" if name in seen else f"(?P<{name}>[^/]+)"
        end = match.end()
        seen.add(name)
    return re.compile(expression + re.escape(pattern[end:]))


def _mapped(wildcards: Wildcards, config: Mapping[str, Any]) -> list[tuple[str, int]]:
    """What is on a map, each with its seed."""
    return mapped_runs(config, config["maps"][wildcards["map"]].get("models"))


def _fault(wildcards: Wildcards, config: Mapping[str, Any], parts: Mapping[str, int]) -> str:
    """What is wrong with the first value that the configuration does not have; empty where it has all."""
    for name in CHECKED:
        if name in wildcards:
            found, key = _values(name, wildcards, config, parts)
            values = list(map(str, found))
            if wildcards[name] not in values:
                return f"{name} is {wildcards[name]}, but {key} {_allows(values)}"
    return ""


def _allows(values: Sequence[str]) -> str:
    if not values:
        return "has none"
    if len(values) > MOST_NAMED:
        return f"allows {', '.join(values[:2])} and so on to {values[-1]}"
    return f"allows {', '.join(values)}"


def _values(
    name: str, wildcards: Wildcards, config: Mapping[str, Any], parts: Mapping[str, int]
) -> tuple[Iterable[Any], str]:
    """The values that a wildcard can have beside the others, and the key of the configuration that says so."""
    match name:
        case "embedding":
            return rankings(config), "embeddings or walks" if config.get("walks") else "embeddings"
        case "graph" | "encoder" | "benchmark" | "map" | "probe":
            return config[f"{name}s"], f"{name}s"
        case "triplets":
            return config["triplets"], "triplets"
        case "dataset":
            return parts, "a release"
        case "pairs":
            signal = config["graphs"][wildcards["graph"]]["signal"]
            return [PAIRS[signal]] if signal in PAIRS else [], f"graphs.{wildcards['graph']}.signal"
        case "group":
            return dict.fromkeys(entry["group"] for entry in config["triplets"].values()), "triplets"
        case "model" if "map" in wildcards:
            return [model for model, _ in _mapped(wildcards, config)], f"maps.{wildcards['map']}.models"
        case "model":
            return [*scored_models(config), *untrained(config)], "models"
        case "baseline":
            return {**baselines_of(config), **trained_entries(config)}, "baselines"
        case "suite":
            return suites_of(config["benchmarks"][wildcards["benchmark"]]), f"benchmarks.{wildcards['benchmark']}"
        case "seed" if "map" in wildcards:
            return [dict(_mapped(wildcards, config))[wildcards["model"]]], f"the map {wildcards['map']}"
        case "seed" if "baseline" in wildcards:
            return seeds_of(wildcards["baseline"], config), f"baselines.{wildcards['baseline']}.seeds"
        case "seed" if (model := model_of(wildcards["model"])) in config["models"]:
            return training_seeds(config, wildcards["model"]), f"models.{model}.seeds"
        case "seed":
            return [0], "an untrained model"
        case "part" if "dataset" in wildcards:
            return range(parts[wildcards["dataset"]]), f"the number of shards of {wildcards['dataset']}"
        case "part":
            return range(parts[WORKS]), "corpus.jobs"
        case "bucket" if "embedding" in wildcards:
            key, ranking = ranking_of(wildcards["embedding"], config)
            return range(ranking["shards"]), f"{key}.shards"
        case _:
            return range(config["corpus"]["buckets"]), "corpus.buckets"
