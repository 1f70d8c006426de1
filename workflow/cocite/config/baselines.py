"""The section `baselines`: what models are compared with, each found by its kind."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cocite.config.baseline import Baseline, points_of
from cocite.config.benchmarks import tasks_of
from cocite.config.plugins import one_of, plugins

METHODS = "cocite.baselines.methods"

if TYPE_CHECKING:
    AnyBaseline = Baseline
else:
    AnyBaseline = one_of(METHODS, "kind")

POINT = "_point-"
"""What stands between the name of a baseline and the number of a point of its grid."""
USUAL = ("bm25", "random")
"""The kinds of baselines, each under its own name, that are scored where the configuration names none."""


def usual_baselines() -> dict[str, Baseline]:
    """The baselines of a configuration without the section."""
    kinds: Any = plugins(METHODS, "kind")
    return {kind: kinds[kind](kind=kind) for kind in USUAL}


def baselines_of(config: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """The baselines of a resolved configuration; one that was recorded before there was the section has the usual."""
    given: Mapping[str, Mapping[str, Any]] = config.get("baselines", {kind: {"kind": kind} for kind in USUAL})
    return given


def baselines_on(config: Mapping[str, Any], benchmark: str | None) -> list[str]:
    """The names of the baselines that are scored on a benchmark, or on any."""
    return [
        name
        for name, entry in baselines_of(config).items()
        if not kind_of(entry).is_reported and (benchmark is None or benchmark in entry.get("benchmarks", [benchmark]))
    ]


def reported_on(config: Mapping[str, Any], benchmark: str) -> list[str]:
    """The names of the baselines with scores that others reported, on a benchmark that has tasks of mteb."""
    has_tasks = any(task.mteb for task in tasks_of(config["benchmarks"][benchmark]))
    return [name for name, entry in baselines_of(config).items() if has_tasks and kind_of(entry).is_reported]


def trained_entries(config: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What is trained, by name: baselines, and of those with a grid each of its points, as `<name>_point-<number>`."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, entry in baselines_of(config).items():
        if kind_of(entry).trained_on and "grid" in entry:
            found |= {f"{name}{POINT}{number}": point for number, point in enumerate(points_of(entry))}
        elif kind_of(entry).trained_on:
            found[name] = entry
    return found


def baseline_of(name: str) -> str:
    """The baseline that something trained is, or is a point of the grid of."""
    return name.partition(POINT)[0]


def kind_of(entry: Mapping[str, Any]) -> type[Baseline]:
    """The class of a resolved entry."""
    kinds: Any = plugins(METHODS, "kind")
    kind: type[Baseline] = kinds[entry["kind"]]
    return kind


def seeds_of(name: str, config: Mapping[str, Any]) -> Sequence[int]:
    """The seeds that a baseline is trained with, or those of the one that it stands on; 0 where there are none."""
    baselines = baselines_of(config)
    entry = baselines[baseline_of(name)]
    if "seeds" in entry:
        seeds: Sequence[int] = entry["seeds"]
        return seeds
    return seeds_of(entry["of"], config) if "of" in entry else [0]


def seed_under(name: str, seed: int, config: Mapping[str, Any]) -> int:
    """The seed of the baseline that another one with this seed stands on; 0 where that one has no seeds."""
    return seed if seed in seeds_of(baselines_of(config)[baseline_of(name)]["of"], config) else 0


def baselines_with_vectors(config: Mapping[str, Any]) -> list[str]:
    """The names of the baselines that have vectors."""
    return [name for name in baselines_on(config, None) if not kind_of(baselines_of(config)[name]).ranks_alone]


def that_rank_alone(config: Mapping[str, Any]) -> list[str]:
    """The names of the baselines that rank documents and do nothing else."""
    return [name for name, entry in baselines_of(config).items() if kind_of(entry).ranks_alone]


def beside_models(config: Mapping[str, Any]) -> list[str]:
    """The names of the baselines that figures show beside models: all that are scored but chance, which is far away."""
    return [name for name in baselines_on(config, None) if not kind_of(baselines_of(config)[name]).is_chance]
