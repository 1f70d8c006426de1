"""Whether a configuration has what a file of the results is of: entries that were renamed leave files behind."""

import re
from collections.abc import Callable, Mapping, Sequence
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
SECTIONS = {
    "graph": ("graphs",),
    "embedding": ("embeddings", "walks"),
    "triplets": ("triplets",),
    "benchmark": ("benchmarks",),
    "map": ("maps",),
    "probe": ("probes",),
}
"""Where the configuration has what a path tells, in one of these sections."""
OF_DOCUMENTS = "_documents"
"""How the names of the corpus's steps end that are about a benchmark's documents; the benchmark stands before it."""
STEPS = {
    "graph": (("graphs",), r"-[a-z]+-\d+"),
    "embeddings": (("embeddings",), ""),
    "neighbours": (("embeddings", "walks"), r"_\d+"),
    "triplets": (("triplets",), ""),
    "evaluation": (("benchmarks",), ""),
}
"""Where it has what the steps of a stage are of, and what follows its name in theirs."""


def configuration_of(results: Path) -> Configuration | None:
    """The configuration of the last run in this folder; none before there was one.

    Raises `InputError` if the file that should hold it cannot be read.
    """
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
            if configuration:
                return configuration
            raise InputError(f"{path} holds no configuration; delete it, and the next run writes it again.")
    return None


def is_configured(wildcards: Mapping[str, str], config: Configuration) -> bool:
    """Whether the configuration has all that a path tells: a graph, a benchmark and its suite, a model and its seed."""
    if "step" in wildcards:
        return _is_step(wildcards["stage"], wildcards["step"], config)
    if any(wildcards[name] not in _names(sections, config) for name, sections in SECTIONS.items() if name in wildcards):
        return False
    if "suite" in wildcards and wildcards["suite"] not in config.benchmarks[wildcards["benchmark"]].suites:
        return False
    if "group" in wildcards and wildcards["group"] not in [entry.group for entry in config.triplets.values()]:
        return False
    scored = wildcards.get("model") or wildcards.get("baseline")
    if scored is None:
        return True
    if "seed" not in wildcards:
        return scored in reported_on(config, wildcards["benchmark"])
    if "map" in wildcards:
        asked = mapped_runs(config, config.maps[wildcards["map"]].models)
        return (wildcards["model"], int(wildcards["seed"])) in asked
    return f"{scored}-{wildcards['seed']}" in runs_of(config, wildcards.get("benchmark"))


def configured_in(config: Configuration | None) -> Callable[[Mapping[str, str]], bool]:
    """Whether this configuration has what a path tells, for `files_by_place`; without one, everything is kept."""
    return lambda wildcards: config is None or is_configured(wildcards, config)


def _of_provenance(path: Path) -> Mapping[str, Any] | None:
    held = read_json(path)
    configuration = held.get("configuration") if isinstance(held, dict) else None
    return configuration if isinstance(configuration, dict) else None


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
    sections, number = STEPS[stage]
    return any(re.fullmatch(re.escape(name) + number, step) for name in _names(sections, config))


def _names(sections: Sequence[str], config: Configuration) -> list[str]:
    """The names of all entries of some sections."""
    return [name for section in sections for name in getattr(config, section)]
