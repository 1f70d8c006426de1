"""The systems to score, in display order: models as configured, untrained encoders, baselines.

A run is a system, such as a model in one of its spaces, with its training seed; untrained systems have seed 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from cocite.config.baseline import Baseline
from cocite.config.benchmark import SEARCH
from cocite.config.entries import one_of
from cocite.config.index import searches

METHODS = "cocite.baselines.methods"

if TYPE_CHECKING:
    from cocite.config.configuration import Configuration
    from cocite.config.models import Model

    AnyBaseline = Baseline
else:
    AnyBaseline = one_of(METHODS, "kind")

IN_SPACE = "_in_"  # joins the name of a model and that of one of its spaces or further poolings
AVERAGED = "_averaged"  # suffix of the name of a model whose weights are averaged over all seeds
UNTRAINED = "untrained_"  # prefix of the name of an encoder before fine-tuning
POINT = "_point-"  # joins the name of a baseline and the number of a point of its grid
MAPPED = 8  # default number of runs on a map: two rows of panels


def untrained(config: "Configuration") -> list[str]:
    """What the encoders are called as they are before fine-tuning."""
    return [f"{UNTRAINED}{name}" for name in config.encoders]


def scored_models(config: "Configuration") -> list[str]:
    """What the models are called: each as it is, in its further spaces, with further poolings, and averaged."""
    return [
        called
        for name, entry in config.models.items()
        for called in (*names_in_spaces(name, entry).values(), *repooled(name, entry), *_averaged(name, entry))
    ]


def names_in_spaces(model: str, entry: "Model") -> dict[str, str]:
    """What a model is called in each space in which it is scored, by the name of the space."""
    return {"encoder": model, **{space: f"{model}{IN_SPACE}{space}" for space in entry.spaces}}


def with_weights(config: "Configuration") -> list[str]:
    """What the models are called that have a folder of weights: as trained, with further poolings, and averaged."""
    models = config.models.items()
    return [
        *config.models,
        *(called for further in (repooled, _averaged) for each in models for called in further(*each)),
    ]


def repooled(model: str, entry: "Model") -> list[str]:
    """The names of a model with each further pooling."""
    return [f"{model}{IN_SPACE}{pooling}" for pooling in entry.poolings]


def _averaged(model: str, entry: "Model") -> list[str]:
    return [f"{model}{AVERAGED}"] if entry.averaged else []


def model_of(name: str) -> str:
    """The model that this is the name of, in whatever space, averaged or not."""
    return name.removesuffix(AVERAGED).partition(IN_SPACE)[0]


def training_seeds(config: "Configuration", name: str) -> Sequence[int]:
    """The training seeds of a model; only 0 if its weights are averaged over all seeds."""
    return (0,) if name.endswith(AVERAGED) else config.models[model_of(name)].seeds


def seeds_of_system(config: "Configuration", name: str) -> Sequence[int]:
    """The training seeds of what has this name; only 0 if it is not trained, or averaged over all seeds."""
    if name in config.baselines:
        return seeds_of(name, config.baselines)
    if name in config.indexes:
        return seeds_of_index(config, name)
    return training_seeds(config, name) if model_of(name) in config.models else (0,)


def _runs(config: "Configuration", names: Iterable[str]) -> list[str]:
    return [f"{name}-{seed}" for name in names for seed in seeds_of_system(config, name)]


def numbers_of_seeds(config: "Configuration") -> dict[str, int]:
    """With how many seeds each of what is scored was trained or drawn, by name; 0 for what depends on no seed. A mean
    of weights over all seeds counts as one, since no other one shows what other seeds would make of it."""
    others = {name: seeds_of_system(config, name) for name in (*untrained(config), *config.indexes, *config.baselines)}
    return {
        **{name: len(training_seeds(config, name)) for name in scored_models(config)},
        **{name: 0 if list(seeds) == [0] else len(seeds) for name, seeds in others.items()},
    }


def scored_in(config: "Configuration") -> str:
    """What encoders compute in when they embed the documents of benchmarks. By itself that is float32 on every machine,
    for models as for the encoders that they are compared with: bfloat16 moves the scores of small collections."""
    return "float32" if config.precision == "auto" else config.precision


def names_in_order(config: "Configuration") -> list[str]:
    """The names of all that are scored."""
    return [*scored_models(config), *untrained(config), *config.indexes, *config.baselines]


def runs_of(config: "Configuration", benchmark: str | None = None) -> list[str]:
    """All runs that are scored on a benchmark, or on any."""
    in_spaces = benchmark is None or config.benchmarks[benchmark].spaces
    models = scored_models(config) if in_spaces else with_weights(config)
    indexes, baselines = indexes_on(config, benchmark), baselines_on(config, benchmark)
    return _runs(config, [*models, *untrained(config), *indexes, *baselines])


def indexes_on(config: "Configuration", benchmark: str | None = None) -> list[str]:
    """The names of the indexes that are scored on a benchmark, or on any."""
    benchmarks = [config.benchmarks[name] for name in (config.benchmarks if benchmark is None else [benchmark])]
    if any(map(searches, benchmarks)):
        return list(config.indexes)
    # Screening learns its own ranking, and so only asks those that find papers.
    are_asked = any(each.screens for each in benchmarks)
    return [name for name, entry in config.indexes.items() if are_asked and entry.of is None]


def seeds_of_index(config: "Configuration", name: str) -> Sequence[int]:
    """The seeds of an index: those that all its models were trained with; 0 if none was trained."""
    trained = [config.models[model].seeds for model in _models_of_index(config, name) if model in config.models]
    return [seed for seed in trained[0] if all(seed in seeds for seeds in trained)] if trained else (0,)


def _models_of_index(config: "Configuration", name: str) -> Sequence[str]:
    entry = config.indexes[name]
    return entry.models if entry.of is None else config.indexes[entry.of].models


def encoders_of_index(config: "Configuration", name: str, seed: int) -> dict[str, tuple[str, int]]:
    """The name and seed of each run whose vectors an index searches, by its models and untrained encoders."""
    models = _models_of_index(config, name)
    return {model: (model, seed) if model in config.models else (f"{UNTRAINED}{model}", 0) for model in models}


def adapters_of(config: "Configuration", name: str) -> set[str]:
    """The adapters that a model or an untrained encoder has; one that has learned itself has lost those it had."""
    model = config.models.get(model_of(name))
    if model is None:
        return set(config.encoders[name.removeprefix(UNTRAINED)].adapters or ())
    if model.trainable.kind != "adapter":
        return set()
    base = config.base_encoder(model_of(name))  # empty in a circle
    return {*((config.encoders[base].adapters if base else None) or ()), model.trainable.name}


def scored_runs(config: "Configuration", benchmark: str) -> dict[str, list[str]]:
    """The runs that have scores on each suite of a benchmark."""
    runs, rank_alone = runs_of(config, benchmark), runs_that_rank_alone(config)
    # Spaces of models are maps of the vectors of a benchmark's documents, and cannot search the whole corpus.
    able = [name for name in baselines_on(config, None) if config.baselines[name].knows_all_papers]
    searching = {*_runs(config, [*with_weights(config), *untrained(config), *indexes_on(config), *able])}
    return {
        suite: [
            run
            for run in runs
            if (run not in rank_alone or any(task.is_by_words for task in tasks))
            and (suite != SEARCH or run in searching)
        ]
        for suite, tasks in config.benchmarks[benchmark].suites.items()
    }


def runs_that_rank_alone(config: "Configuration") -> list[str]:
    """The runs that only score rankings: indexes, and baselines that compare words."""
    alone = (name for name, entry in config.baselines.items() if entry.ranks_alone)
    return _runs(config, [*indexes_on(config), *alone])


def with_vectors(config: "Configuration", benchmark: str) -> list[str]:
    """The names of all that give the documents of a benchmark vectors."""
    return [*scored_models(config), *untrained(config), *baselines_with_vectors(config, benchmark)]


def mapped_runs(config: "Configuration", models: Sequence[str] | None = None) -> list[tuple[str, int]]:
    """The name and first seed of each run on a map: those of `models`, or some encoders and then models."""
    names = models or [*untrained(config)[: MAPPED // 2], *config.models][:MAPPED]
    return [(name, first_seed(config, name)) for name in names]


def first_seed(config: "Configuration", name: str) -> int:
    """The first training seed of what has this name; 0 for what is not trained."""
    return seeds_of_system(config, name)[0]


def baselines_on(config: "Configuration", benchmark: str | None) -> list[str]:
    """The names of the baselines that are scored on a benchmark, or on any."""
    asked = config.benchmarks if benchmark is None else [benchmark]
    about_held_out = any(config.benchmarks[name].made_by for name in asked)
    screened = {config.benchmarks[name].screens for name in asked}
    return [
        name
        for name, entry in config.baselines.items()
        if not entry.is_reported
        and (about_held_out or not entry.about_held_out)
        and (True in screened if entry.screens else not entry.ranks_alone or screened != {True})
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
        found |= {f"{name}{POINT}{number}": point for number, point in enumerate(entry.points)}
        if entry.trained_on and not entry.points:
            found[name] = entry
    return found


def baseline_of(name: str) -> str:
    """The baseline that something trained is, or is a point of the grid of."""
    return name.partition(POINT)[0]


def seeds_of(name: str, baselines: Mapping[str, Baseline]) -> Sequence[int]:
    """The training seeds of a baseline, or of the one that it is derived from; 0 if there are none."""
    entry = baselines[baseline_of(name)]
    if (seeds := getattr(entry, "seeds", None)) is not None:
        return seeds
    return (0,) if entry.under is None else seeds_of(entry.under, baselines)


def seed_under(name: str, seed: int, baselines: Mapping[str, Baseline]) -> int:
    """The seed of the baseline that another one with this seed is derived from; 0 if that one has no seeds."""
    under = baselines[baseline_of(name)].under
    return seed if under is not None and seed in seeds_of(under, baselines) else 0


def baselines_with_vectors(config: "Configuration", benchmark: str | None = None) -> list[str]:
    """The names of the baselines that have vectors, of those on a benchmark or on any."""
    return [name for name in baselines_on(config, benchmark) if not config.baselines[name].ranks_alone]


def beside_models(config: "Configuration") -> list[str]:
    """The names of indexes and baselines that figures show with models: all but chance, which is far away."""
    indexes = list(config.indexes) if indexes_on(config) else []
    return [*indexes, *(name for name in baselines_on(config, None) if not config.baselines[name].is_chance)]
