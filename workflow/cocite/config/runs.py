"""Who is scored, in the order that people read: models as configured, untrained encoders, baselines.

A run is a model in one of its spaces, or what stands in for one, and its training seed; what is not trained has the
seed 0.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from cocite.config.baselines import baselines_of, baselines_on, seeds_of, that_rank_alone
from cocite.config.lineage import encoder_under
from cocite.config.tasks import Task

IN_SPACE = "_in_"
"""What is between the name of a model and that of one of its spaces, or of a further pooling."""
AVERAGED = "_averaged"
"""What follows the name of a model where the mean of its weights over all seeds stands in for it."""
MAPPED = 8
"""Runs that a map shows unless it names some: as many as two rows of panels hold."""


def untrained(config: Mapping[str, Any]) -> list[str]:
    """What the encoders are called as they are before fine-tuning."""
    return [f"untrained_{name}" for name in config["encoders"]]


def scored_models(config: Mapping[str, Any]) -> list[str]:
    """What the models are called: each as it is, in its further spaces, with further poolings, and averaged."""
    return [
        called
        for name, entry in config["models"].items()
        for called in (
            *names_in_spaces(name, entry).values(),
            *repooled(name, entry),
            *averages({"models": {name: entry}}),
        )
    ]


def averages(config: Mapping[str, Any]) -> list[str]:
    """What the models are called whose weights are averaged over their seeds."""
    return [f"{name}{AVERAGED}" for name, entry in config["models"].items() if entry.get("averaged")]


def names_in_spaces(model: str, entry: Mapping[str, Any]) -> dict[str, str]:
    """What a model is called in each space in which it is scored, by the name of the space."""
    return {"encoder": model, **{space: f"{model}{IN_SPACE}{space}" for space in entry.get("spaces", ())}}


def with_weights(config: Mapping[str, Any]) -> list[str]:
    """What the models are called that have a folder of weights: as trained, with further poolings, and averaged."""
    models = config["models"]
    return [*models, *(each for name, entry in models.items() for each in repooled(name, entry)), *averages(config)]


def repooled(model: str, entry: Mapping[str, Any]) -> list[str]:
    """The names of a model with each further pooling."""
    return [f"{model}{IN_SPACE}{pooling}" for pooling in entry.get("poolings", ())]


def model_of(name: str) -> str:
    """The model that this is the name of, in whatever space, averaged or not."""
    return name.removesuffix(AVERAGED).partition(IN_SPACE)[0]


def training_seeds(config: Mapping[str, Any], name: str) -> Sequence[int]:
    """The training seeds of a model; 0 stands for all of them where it is averaged."""
    seeds: Sequence[int] = config["models"][model_of(name)]["seeds"]
    return (0,) if name.endswith(AVERAGED) else seeds


def numbers_of_seeds(config: Mapping[str, Any]) -> dict[str, int]:
    """With how many seeds each of what is scored was trained or drawn, by name; 0 for what depends on no seed.

    A mean of weights over all seeds counts as one, since no other one shows what other seeds would make of it.
    """
    baselines = {name: seeds_of(name, config) for name in baselines_of(config)}
    return {
        **{name: len(training_seeds(config, name)) for name in scored_models(config)},
        **dict.fromkeys(untrained(config), 0),
        **{name: 0 if list(seeds) == [0] else len(seeds) for name, seeds in baselines.items()},
    }


def scored_in(config: Mapping[str, Any]) -> str:
    """What encoders compute in when they embed the documents of benchmarks.

    By itself that is float32 on every machine, for models as for the encoders that they are compared with: bfloat16
    moves the scores of small collections.
    """
    precision: str = config["precision"]
    return "float32" if precision == "auto" else precision


def names_in_order(config: Mapping[str, Any]) -> list[str]:
    """The names of all that are scored."""
    return [*scored_models(config), *untrained(config), *baselines_of(config)]


def runs_of(config: Mapping[str, Any], benchmark: str | None = None) -> list[str]:
    """All runs that are scored on a benchmark, or on any."""
    in_spaces = benchmark is None or config["benchmarks"][benchmark].get("spaces", True)
    names = scored_models(config) if in_spaces else with_weights(config)
    trained = [f"{name}-{seed}" for name in names for seed in training_seeds(config, name)]
    return [
        *trained,
        *(f"{name}-0" for name in untrained(config)),
        *baseline_runs(config, baselines_on(config, benchmark)),
    ]


def baseline_runs(config: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """The runs of some baselines."""
    return [f"{name}-{seed}" for name in names for seed in seeds_of(name, config)]


def runs_that_rank_alone(config: Mapping[str, Any]) -> list[str]:
    """The runs that have scores on rankings alone: what compares words does nothing else."""
    return baseline_runs(config, that_rank_alone(config))


def adapters_of(config: Mapping[str, Any], name: str) -> set[str]:
    """The adapters that a model or an untrained encoder has; one that has learned itself has lost those it had."""
    if model_of(name) not in config["models"]:
        return set(config["encoders"][name.removeprefix("untrained_")].get("adapters", {}))
    model = config["models"][model_of(name)]
    if model["trainable"]["kind"] != "adapter":
        return set()
    encoder = encoder_under(model_of(name), config["models"])
    return {*config["encoders"][encoder].get("adapters", {}), model["trainable"]["name"]}


def scored_runs(
    suites: Mapping[str, Sequence[Task]], runs: Iterable[str], rank_alone: Collection[str]
) -> list[tuple[str, str]]:
    """Each suite of a benchmark with the runs that have scores on it; `rank_alone` are those that do nothing else."""
    return [
        (suite, run)
        for suite, tasks in suites.items()
        for run in runs
        if run not in rank_alone or any(task.is_ranking for task in tasks)
    ]


def with_vectors(config: Mapping[str, Any], benchmark: str) -> list[str]:
    """The names of all that give the documents of a benchmark vectors."""
    baselines = set(baselines_on(config, benchmark)).difference(that_rank_alone(config))
    return [*scored_models(config), *untrained(config), *filter(baselines.__contains__, baselines_of(config))]


def mapped_runs(config: Mapping[str, Any], models: Sequence[str] | None = None) -> list[tuple[str, int]]:
    """The name and first seed of each run on a map: those that it names, or some encoders and then models."""
    names = models or [*untrained(config)[: MAPPED // 2], *config["models"]][:MAPPED]
    return [(name, first_seed(config, name)) for name in names]


def first_seed(config: Mapping[str, Any], name: str) -> int:
    """The first training seed of what has this name; 0 for what is not trained."""
    if name in baselines_of(config):
        return int(seeds_of(name, config)[0])
    return int(training_seeds(config, name)[0]) if model_of(name) in config["models"] else 0
