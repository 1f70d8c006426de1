"""The section `baselines`: what models are compared with, each found by its kind."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cocite.config.baseline import Baseline
from cocite.config.plugins import one_of, plugins

METHODS = "cocite.baselines.methods"

if TYPE_CHECKING:
    from cocite.config.configuration import Configuration

    AnyBaseline = Baseline
else:
    AnyBaseline = one_of(METHODS, "kind")

POINT = "_point-"
"""What stands between the name of a baseline and the number of a point of its grid."""
USUAL = ("bm25", "popularity", "random")
"""The kinds of baselines, each under its own name, that are scored where the configuration names none."""


def usual_baselines() -> dict[str, Baseline]:
    """The baselines of a configuration without the section."""
    kinds: Any = plugins(METHODS, "kind")
    return {kind: kinds[kind](kind=kind) for kind in USUAL}


def baselines_on(config: "Configuration", benchmark: str | None) -> list[str]:
    """The names of the baselines that are scored on a benchmark, or on any."""
    asked = config.benchmarks if benchmark is None else [benchmark]
    about_held_out = any(config.benchmarks[name].made_by for name in asked)
    return [
        name
        for name, entry in config.baselines.items()
        if not entry.is_reported
        and (about_held_out or not entry.about_held_out)
        and (benchmark is None or benchmark in (entry.has_only or [benchmark]))
    ]


def reported_on(config: "Configuration", benchmark: str) -> list[str]:
    """The names of the baselines with scores that others reported, on a benchmark that has tasks of mteb."""
    has_tasks = any(task.mteb for task in config.benchmarks[benchmark].scored_tasks)
    return [name for name, entry in config.baselines.items() if has_tasks and entry.is_reported]


def trained_entries(baselines: Mapping[str, Baseline]) -> dict[str, Baseline]:
    """What is trained, by name: baselines, and of those with a grid each of its points, as `<name>_point-<number>`."""
    found: dict[str, Baseline] = {}
    for name, entry in baselines.items():
        if points := entry.points:
            found |= {f"{name}{POINT}{number}": point for number, point in enumerate(points)}
        elif entry.trained_on:
            found[name] = entry
    return found


def baseline_of(name: str) -> str:
    """The baseline that something trained is, or is a point of the grid of."""
    return name.partition(POINT)[0]


def seeds_of(name: str, baselines: Mapping[str, Baseline]) -> Sequence[int]:
    """The seeds that a baseline is trained with, or those of the one that it stands on; 0 if there are none."""
    entry = baselines[baseline_of(name)]
    seeds: Sequence[int] | None = getattr(entry, "seeds", None)
    if seeds is not None:
        return seeds
    return (0,) if entry.under is None else seeds_of(entry.under, baselines)


def seed_under(name: str, seed: int, baselines: Mapping[str, Baseline]) -> int:
    """The seed of the baseline that another one with this seed stands on; 0 if that one has no seeds."""
    under = baselines[baseline_of(name)].under
    return seed if under is not None and seed in seeds_of(under, baselines) else 0


def baselines_with_vectors(config: "Configuration") -> list[str]:
    """The names of the baselines that have vectors."""
    return [name for name in baselines_on(config, None) if not config.baselines[name].ranks_alone]


def that_rank_alone(config: "Configuration") -> list[str]:
    """The names of the baselines that rank documents and do nothing else."""
    return [name for name, entry in config.baselines.items() if entry.ranks_alone]


def beside_models(config: "Configuration") -> list[str]:
    """The names of the baselines that figures show with models: all that are scored but chance, which is far away."""
    return [name for name in baselines_on(config, None) if not config.baselines[name].is_chance]
