"""The scores of a run as the library mteb writes its results, so that its tools read them.

A folder `results/<owner>__<model>/seed-<seed>/` has a file of JSON for each task, and `model_meta.json`. A task that is
one of mteb's has the name that it has there; any other is called `CoCite-<benchmark>-<task>`, which none is there.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from cocite import __version__
from cocite.config.benchmarks import declared
from cocite.config.configuration import Configuration, recorded_configuration
from cocite.config.mteb import META, SPLIT, SUBSET, is_same_test, name_in_mteb
from cocite.config.origins import generated_benchmarks
from cocite.config.runs import UNTRAINED, model_of, untrained
from cocite.config.stale import PROVENANCE, configured_in
from cocite.config.tasks import BOTH
from cocite.config.triplets import oracle_models
from cocite.core.atomic import atomic_path, read_json, write_json
from cocite.core.errors import InputError
from cocite.core.tables import TABLES
from cocite.core.tables.files import read_table
from cocite.core.tables.places import files_by_place

OWN = "CoCite"
"""What the names of tasks begin with that are not mteb's."""
OWNERS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
OWNER = "cocite"
"""Who the models are said to be of: mteb's names of models have an owner before a slash."""
UNKNOWN_REVISION = "no_revision_available"
"""What mteb writes where it knows no revision: the files of a folder have none."""
LANGUAGES = ["eng-Latn"]
NOT_SAID = (
    *("loader", "release_date", "n_parameters", "memory_usage_mb", "max_tokens", "embed_dim", "open_weights"),
    *("public_training_code", "public_training_data", "reference", "similarity_fn_name", "use_instructions"),
    "training_datasets",
)
"""What mteb asks about a model that a run does not know."""
KEYS = ["model", "seed", "benchmark", "task", "mode"]

Provenance = Mapping[str, Any]


class Result(NamedTuple):
    """The scores of a run on a task: a row for each metric, values × 100."""

    benchmark: str
    task: str
    mode: str
    is_of_mteb: bool
    """Whether it can be the test that mteb makes under that task."""
    split: str
    values: Mapping[str, float]


def provenance_for(results: Path, output: Path) -> Provenance:
    """The provenance of a finished run, of which something is written into a new folder.

    Raises `InputError` where the folder exists already, or the run is not at its end.
    """
    if output.exists():
        raise InputError(f"{output} exists already; name another folder.")
    if not (results / PROVENANCE).is_file():
        raise InputError(f"{results} has no {PROVENANCE}, which a run writes for its report; finish the run first.")
    provenance: Provenance = read_json(results / PROVENANCE)
    return provenance


def base_model(name: str, configuration: Configuration) -> str | None:
    """The model of the hub that a model was trained from; None where it came from elsewhere."""
    is_trained = model_of(name) in configuration.models
    encoder = configuration.base_encoder(model_of(name)) if is_trained else name.removeprefix(UNTRAINED)
    entry = configuration.encoders[encoder]
    return entry.model if entry.revision is not None else None


def scores_of(
    results: Path, provenance: Provenance, run: tuple[str, int] | None = None
) -> tuple[pl.DataFrame, dict[str, list[str]]]:
    """The scores that can be shown to others, averaged over evaluation seeds: of a model and seed, or of all runs.

    What is left out comes with them, by its reason: models that have learned from the answers of benchmarks, and
    benchmarks of generated documents.
    """
    configuration = recorded_configuration(provenance["configuration"])
    places = files_by_place(results, TABLES["scores"], configured_in(configuration))
    paths = [*chain.from_iterable(places.values())]
    if not paths:
        return pl.DataFrame(schema=dict.fromkeys(KEYS, pl.String)), {}
    found = pl.DataFrame(read_table(paths, "scores"))
    if run is not None:
        found = found.filter(model=run[0], seed=run[1])
    oracles = [name for name in found["model"].unique() if model_of(name) in oracle_models(configuration)]
    generated = generated_benchmarks(provenance)
    omitted = {
        "of models that have learned from the answers of benchmarks": sorted(oracles),
        "on generated documents": [name for name in generated if name in found["benchmark"]],
    }
    kept = found.filter(~pl.col("model").is_in(oracles), ~pl.col("benchmark").is_in(generated))
    asked = pl.col("scored") + pl.col("unscored")
    counts = asked.first().alias("queries"), pl.first("searched")
    means = kept.group_by(*KEYS, "metric").agg(pl.mean("value"), *counts)
    return means.sort(*KEYS, "metric"), {reason: names for reason, names in omitted.items() if names}


def export_results(results: Path, output: Path, owner: str) -> tuple[int, dict[str, list[str]]]:
    """Write the results of all runs into a new folder; return how many, and what is left out by its reason.

    Raises `InputError` where the folder exists, the run is not at its end, or there is nothing to write.
    """
    if not OWNERS.fullmatch(owner):
        raise InputError(f"--owner is {owner!r}; it must be of letters, digits, dots, hyphens and underscores.")
    provenance = provenance_for(results, output)
    scores, omitted = scores_of(results, provenance)
    if scores.is_empty():
        without = "; ".join(f"those {reason} are not written" for reason in omitted)
        raise InputError(f"{results} has no scores that can be written{f' ({without})' if without else ''}.")
    with atomic_path(output) as folder:
        return write_mteb(scores, provenance, folder, owner=owner), omitted


def write_mteb(
    scores: pl.DataFrame, provenance: Provenance, folder: Path, *, owner: str = OWNER, licence: str | None = None
) -> int:
    """Write the results of each run in these scores below a folder; return the number of tasks, over all runs."""
    configuration = recorded_configuration(provenance["configuration"])
    written = 0
    for (model, seed), of_run in scores.group_by("model", "seed", maintain_order=True):
        of_model = folder / "results" / f"{owner}__{model}" / f"seed-{seed}"
        write_json(of_model / META, _meta(str(model), seed, owner, licence, configuration))
        for name, result in _named(_results(of_run, configuration.benchmarks)):
            write_json(of_model / f"{name}.json", _as_json(name, result))
            written += 1
    return written


def _results(scores: pl.DataFrame, benchmarks: Mapping[str, Any]) -> Iterator[Result]:
    """The results of a run, in the order in which the benchmarks are configured."""
    parts = scores.partition_by("benchmark", "task", "mode", as_dict=True)
    for name, task, mode in sorted(parts, key=lambda of: list(benchmarks).index(of[0])):
        rows = parts[name, task, mode]
        values = dict(rows.select("metric", "value").iter_rows())
        entry, in_mteb = benchmarks[name], declared(task).mteb
        is_same = in_mteb is not None and is_same_test(in_mteb, entry, rows["queries"][0], rows["searched"][0])
        yield Result(name, task, mode, is_same, getattr(entry, "split", SPLIT), values)


def _named(results: Iterator[Result]) -> Iterator[tuple[str, Result]]:
    """Each result with the name of its task; of two benchmarks with a task of mteb, the first configured has its name.

    A sample of a collection, another split, or what leaves out judgements is not mteb's task.
    """
    taken = set()
    for result in results:
        in_mteb = declared(result.task).mteb
        if in_mteb and in_mteb.name not in taken and result.is_of_mteb:
            taken.add(in_mteb.name)
            yield in_mteb.name, result
        else:
            mode = "" if result.mode == BOTH else f"-{result.mode}"
            yield f"{OWN}-{result.benchmark}-{result.task}{mode}", result


def _as_json(name: str, result: Result) -> dict[str, Any]:
    """A result in mteb's layout, from 0 to 1; `mteb_version` is null, since mteb did not measure it."""
    values = {name_in_mteb(metric): round(value / 100, 6) for metric, value in result.values.items()}
    [leading] = filter(declared(result.task).is_main, result.values)
    scores = {**values, "main_score": values[name_in_mteb(leading)]}
    return {
        "dataset_revision": UNKNOWN_REVISION,
        "task_name": name,
        "mteb_version": None,
        "scores": {result.split: [{**scores, "hf_subset": SUBSET, "languages": LANGUAGES}]},
        "evaluation_time": None,
        "kg_co2_emissions": None,
        "measured_by": f"CoCite {__version__}",
    }


def _meta(model: str, seed: Any, owner: str, licence: str | None, configuration: Configuration) -> dict[str, Any]:
    """What mteb knows of a model; null where nothing is said."""
    has_encoder = model_of(model) in configuration.models or model in untrained(configuration)
    return {
        "name": f"{owner}/{model}",
        "revision": f"seed-{seed}",
        "adapted_from": base_model(model, configuration) if has_encoder else None,
        "framework": ["Sentence Transformers", "PyTorch"] if has_encoder else [],
        "license": licence,
        "languages": LANGUAGES,
        **dict.fromkeys(NOT_SAID),
    }
