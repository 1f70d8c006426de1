"""Whether a configuration has what a file of the results is of: entries that were renamed leave files behind."""

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from cocite.config.baselines import reported_on
from cocite.config.configuration import Configuration, recorded_configuration
from cocite.config.runs import mapped_runs, runs_of
from cocite.config.yaml_files import written_configuration
from cocite.core.atomic import read_json
from cocite.core.errors import InputError

STARTED_WITH = "configuration.yaml"
"""The resolved configuration of the run that was started last in a folder of results; it can be run as it stands."""
PROVENANCE = "provenance.json"
"""What a run writes down for its report; it holds the configuration, too, and older folders have nothing else."""
OF_DOCUMENTS = "_documents"
"""How the names of the corpus's steps end that are about a benchmark's documents; the benchmark stands before it."""
STEPS = {
    "graph": ("graph", r"-[a-z]+-\d+"),
    "embeddings": ("embedding", ""),
    "neighbours": ("embedding", r"_\d+"),
    "triplets": ("triplets", ""),
    "evaluation": ("benchmark", ""),
}
"""What the steps of a stage are of, and what follows its name in theirs."""
NAMES = ("graph", "embedding", "triplets", "benchmark", "map", "probe", "suite", "group")
"""What a path tells that has a name in the configuration."""


def configuration_of(results: Path) -> Configuration | None:
    """The configuration of the last run in this folder; none before there was one. Raises `InputError` if the file that
    should hold it cannot be read."""
    values = recorded_values(results)
    return None if values is None else recorded_configuration(values)


def recorded_values(results: Path) -> Mapping[str, Any] | None:
    """The same as plain values, whatever version recorded them."""
    for path, read in ((results / STARTED_WITH, written_configuration), (results / PROVENANCE, _of_provenance)):
        if path.is_file():
            try:
                configuration = read(path)
            except InputError as error:
                raise InputError(f"{error} Delete it, and the next run writes it again.") from None
            if isinstance(configuration, dict) and configuration:
                return configuration
            raise InputError(f"{path} holds no configuration; delete it, and the next run writes it again.")
    return None


def names_of(what: str, benchmark: str, config: Configuration) -> Collection[str]:
    """What the entries of a kind are called that a path can tell: graphs, embeddings, …, the suites of a benchmark."""
    match what:
        case "embedding":
            return [*config.embeddings, *config.walks]
        case "suite":
            return config.benchmarks[benchmark].suites
        case "group":
            return sorted({entry.group for entry in config.triplets.values()})
        case _:
            names: Mapping[str, Any] = getattr(config, what if what == "triplets" else f"{what}s")
            return names


def is_configured(wildcards: Mapping[str, str], config: Configuration) -> bool:
    """Whether the configuration has all that a path tells: a graph, a benchmark and its suite, a model and its seed."""
    if "step" in wildcards:
        return _is_step(wildcards["stage"], wildcards["step"], config)
    benchmark = wildcards.get("benchmark")
    if any(wildcards[what] not in names_of(what, benchmark or "", config) for what in NAMES if what in wildcards):
        return False
    scored = wildcards.get("model") or wildcards.get("baseline")
    if scored is None:
        return True
    if "seed" not in wildcards:
        return scored in reported_on(config, wildcards["benchmark"])
    if "map" in wildcards:
        return (scored, int(wildcards["seed"])) in mapped_runs(config, config.maps[wildcards["map"]].models)
    return f"{scored}-{wildcards['seed']}" in runs_of(config, benchmark)


def configured_in(config: Configuration | None) -> Callable[[Mapping[str, str]], bool]:
    """Whether this configuration has what a path tells, for `files_by_place`; without one, everything is kept."""
    return lambda wildcards: config is None or is_configured(wildcards, config)


def _of_provenance(path: Path) -> Any:
    held = read_json(path)
    return held.get("configuration") if isinstance(held, dict) else None


def _is_step(stage: str, step: str, config: Configuration) -> bool:
    if stage == "corpus":
        if step.endswith(OF_DOCUMENTS):
            return step.removesuffix(OF_DOCUMENTS) in config.benchmarks
        base, match = (getattr(config.corpus, key, None) is not None for key in ("base", "match"))
        known = {"read": config.queries.from_ == "triplets", "update": base, "match": match}
        return known.get(step.partition("-")[0], True)
    if stage == "evaluation" and "_" in step:
        benchmark, _, baseline = step.partition("_")
        return benchmark in config.benchmarks and baseline in reported_on(config, benchmark)
    what, number = STEPS[stage]
    names = names_of(what, "", config)
    if stage == "graph" and re.search(r"-(citations|contexts)-\d+$", step):
        names = [name for name in names if getattr(config.graphs[name], "citations", None)]
    return any(re.fullmatch(re.escape(name) + number, step) for name in names)
