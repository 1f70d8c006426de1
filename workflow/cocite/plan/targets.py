"""Whether the files that a run is asked for by name are of its configuration.

For `results/corpus/papers/9.parquet`, Snakemake reports only that no rule makes it, and it accepts seeds that no model
has. Here, each value in a path is first compared with the configuration, so that the message lists the valid values;
for a misspelt target or path it suggests the nearest one.
"""

import difflib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cocite.config.release_folder import WORKS
from cocite.config.runs import model_of, names_in_order, runs_of, seeds_of, seeds_of_index, training_seeds
from cocite.core.errors import InputError
from cocite.plan.recorded import NAMES, names_of

if TYPE_CHECKING:
    from cocite.plan.plan import Plan

WILDCARD = re.compile(r"\{(\w+)(?:,(?P<constraint>(?:[^{}]|\{[^{}]*\})*))?\}")
"""A wildcard in a pattern of Snakemake, with the regular expression that it must match, if there is one."""
IMPOSSIBLE = "(?!)"
MOST_NAMED = 12
CLOSE = 0.8  # similarity, of 1, from which a word is taken for a misspelt target
FLAGS = (
    *("-n", "--dry-run", "-f", "--force", "-F", "--forceall", "-k", "--keep-going", "-p", "--nolock"),
    *("--rerun-incomplete", "--replace-workflow-config"),
)
"""Options of Snakemake without a value, after which a target can follow."""
CHECKED = (
    *("graph", "embedding", "triplets", "encoder", "benchmark", "map", "probe", "dataset", "pairs", "group"),
    *("model", "system", "index", "baseline", "suite", "seed", "part", "bucket"),
)
"""Wildcards whose values are compared; names come before the numbers that depend on them."""
NUMBERED = {"bucket", "part"}  # those that number the files of one table
LAST_NUMBER = re.compile(r"\{(bucket|part),[^{}]*\}\.parquet$")  # the end of a pattern of such files


def check_targets(targets: Iterable[str], patterns: Iterable[str], plan: "Plan") -> None:
    """Raise `InputError` for a target in the folder of results with a value that the configuration does not have.
    `patterns` are the outputs of all rules; what none of them is like is left to Snakemake."""
    expressions = _expressions(pattern for pattern in patterns if IMPOSSIBLE not in pattern)
    for target in targets:
        path = os.path.relpath(target)
        if Path(path).is_relative_to(os.path.relpath(plan.results)) and (faults := _faults(path, expressions, plan)):
            said = min((fault for _, fault in faults), key=len)
            raise InputError(f"{target} is not of this configuration: {said}.")


def surplus_files(patterns: Sequence[str], plan: "Plan") -> list[Path]:
    """Files of an earlier run with more buckets or parts: tables are read by folder, and would have rows twice."""
    expressions = _expressions(pattern for pattern in patterns if IMPOSSIBLE not in pattern)
    numbered = (WILDCARD.sub("*", os.path.relpath(each)) for each in patterns if LAST_NUMBER.search(each))
    files = dict.fromkeys(file for pattern in numbered for file in Path().glob(pattern))
    return [file for file in files if any(name in NUMBERED for name, _ in _faults(str(file), expressions, plan))]


def targets_of(arguments: Sequence[str]) -> list[str]:
    """What of a command line of Snakemake can be a target: words that are no option, no first value of one, no pair."""
    words = (word for before, word in pairwise(["", *arguments]) if before in FLAGS or not before.startswith("-"))
    return [word for word in words if word and not word.startswith("-") and not set("=:") & set(word)]


def check_spelling(targets: Iterable[str], rules: Iterable[str], patterns: Iterable[str], results: Path) -> None:
    """Raise `InputError` for a target that is no rule and no file, but is written much like a rule or a result."""
    patterns, known = list(patterns), {rule: rule for rule in rules}
    expressions = _expressions(patterns)
    results_like = {WILDCARD.sub("0", pattern): WILDCARD.sub(r"{\1}", pattern) for pattern in patterns}
    for target in targets:
        path = os.path.relpath(target)
        if target in known or os.path.lexists(path) or any(each.fullmatch(path) for each in expressions):
            continue
        among = results_like if Path(path).is_relative_to(os.path.relpath(results)) else known
        if close := difflib.get_close_matches(re.sub(r"\d+", "0", path), among, n=1, cutoff=CLOSE):
            raise InputError(f"No rule makes {target}; did you mean {among[close[0]]}?")


def _expressions(patterns: Iterable[str]) -> list[re.Pattern[str]]:
    """Patterns with wildcards as regular expressions that take any value for them."""
    expressions = []
    for pattern in map(os.path.relpath, patterns):
        expression, end, seen = "", 0, set()
        for match in WILDCARD.finditer(pattern):
            name = match[1]
            expression += re.escape(pattern[end : match.start()])
            expression += f"(?P={name})" if name in seen else f"(?P<{name}>[^/]+)"
            end = match.end()
            seen.add(name)
        expressions.append(re.compile(expression + re.escape(pattern[end:])))
    return expressions


def _faults(path: str, expressions: Iterable[re.Pattern[str]], plan: "Plan") -> list[tuple[str, str]]:
    """For each pattern that a path is like, the first wildcard with a value that the configuration does not have, and
    what is wrong with it; nothing if the path is right by one of them."""
    faults = []
    for match in filter(None, (expression.fullmatch(path) for expression in expressions)):
        wildcards = match.groupdict()
        for name in filter(wildcards.__contains__, CHECKED):
            found, key = _values(name, wildcards, plan)
            values = list(map(str, found))
            if wildcards[name] not in values:
                few = ", ".join(values if len(values) <= MOST_NAMED else values[:2])
                more = "" if len(values) <= MOST_NAMED else f" and so on to {values[-1]}"
                allows = f"allows {few}{more}" if values else "has none"
                faults.append((name, f"{name} is {wildcards[name]}, but {key} {allows}"))
                break
        else:
            return []
    return faults


def _values(name: str, wildcards: Mapping[str, str], plan: "Plan") -> tuple[Iterable[Any], str]:
    """The values that a wildcard can have given the others, and the key of the configuration that defines them."""
    config = plan.config
    match name:
        case "suite":
            return names_of(name, wildcards["benchmark"], config), f"benchmarks.{wildcards['benchmark']}"
        case _ if name in (*NAMES, "encoder"):
            sections = {"triplets": "triplets", "group": "triplets", "index": "indexes"}
            sections |= {"embedding": "embeddings or walks"} if config.walks else {}
            return names_of(name, "", config), sections.get(name, f"{name}s")
        case "dataset":
            return plan.corpus.parts, "a release"
        case "pairs":
            table = plan.graph.pairs.get(wildcards["graph"])
            return [table] if table else [], f"graphs.{wildcards['graph']}.signal"
        case "model" if "map" in wildcards:
            return dict(plan.report.runs_on_map(wildcards["map"])), f"maps.{wildcards['map']}.models"
        case "model":
            return plan.evaluation.scored, "models"
        case "system":
            return names_in_order(config), "models, encoders, indexes and baselines together"
        case "baseline":
            return plan.baselines.entries, "baselines"
        case "seed" if "map" in wildcards:
            return [dict(plan.report.runs_on_map(wildcards["map"]))[wildcards["model"]]], f"the map {wildcards['map']}"
        case "seed" if "system" in wildcards:
            system, runs = wildcards["system"], (run.rpartition("-") for run in runs_of(config))
            return [seed for name, _, seed in runs if name == system], f"the seeds of {system}"
        case "seed" if "baseline" in wildcards:
            return seeds_of(wildcards["baseline"], config.baselines), f"baselines.{wildcards['baseline']}.seeds"
        case "seed" if "index" in wildcards:
            return seeds_of_index(config, wildcards["index"]), f"the models of indexes.{wildcards['index']}"
        case "seed" if (model := model_of(wildcards["model"])) in config.models:
            return training_seeds(config, wildcards["model"]), f"models.{model}.seeds"
        case "seed":
            return [0], "an untrained model"
        case "part" if "dataset" in wildcards:
            parts = plan.corpus.all_parts[wildcards["dataset"]]
            return parts, f"the number of shards of {wildcards['dataset']}"
        case "part":
            return plan.corpus.all_parts[WORKS], "corpus.jobs"
        case "bucket" if "embedding" in wildcards:
            section = "walks" if wildcards["embedding"] in config.walks else "embeddings"
            inner = "" if section == "walks" else ".neighbours"
            key = f"{section}.{wildcards['embedding']}{inner}.query_jobs"
            return plan.neighbours.shards(wildcards["embedding"]), key
        case _:
            return plan.bucket_numbers, "corpus.buckets"
