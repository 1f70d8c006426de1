"""The scores of a run as the library mteb writes its results, so that its tools read them.

A folder `results/<owner>__<model>/seed-<seed>/` has a file of JSON for each task, and `model_meta.json`. Only tasks of
mteb are written, and only if mteb would score the same queries, documents and judgements.
"""

import re
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from cocite import __version__
from cocite.config.benchmarks import declared
from cocite.config.configuration import Configuration, recorded_configuration
from cocite.config.origins import generated_benchmarks
from cocite.config.runs import UNTRAINED, model_of, untrained
from cocite.config.sampler import oracle_models
from cocite.config.tasks import META, SPLIT, SUBSET, is_same_test, name_in_mteb
from cocite.core.atomic import atomic_path, read_object, write_json
from cocite.core.errors import InputError
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import read_table
from cocite.core.tables.places import files_by_place
from cocite.plan.recorded import PROVENANCE, configured_in

OTHERS = "on tasks that mteb does not have, or not with these queries, documents and judgements, or that come twice"
OWNERS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
OWNER = "cocite"
"""The usual owner of the models, which stands before a slash in mteb's names."""
LANGUAGES = ["eng-Latn"]
NOT_SAID = (
    *("loader", "release_date", "n_parameters", "memory_usage_mb", "max_tokens", "embed_dim", "open_weights"),
    *("public_training_code", "public_training_data", "reference", "similarity_fn_name", "use_instructions"),
    "training_datasets",
)
"""The fields of mteb about a model that a run does not know."""
KEYS = ["model", "seed", "benchmark", "task", "mode"]
Provenance = Mapping[str, Any]


def provenance_for(results: Path, output: Path) -> Provenance:
    """The provenance of a finished run. Raises `InputError` if the output exists, or the run is not finished."""
    if output.exists():
        raise InputError(f"{output} exists already; name another folder.")
    if not (results / PROVENANCE).is_file():
        raise InputError(f"{results} has no {PROVENANCE}, which a run writes for its report; finish the run first.")
    return read_object(results / PROVENANCE)


def base_model(name: str, configuration: Configuration) -> str | None:
    """The model of the hub that a model was trained from; None if it came from elsewhere."""
    is_trained = model_of(name) in configuration.models
    encoder = configuration.base_encoder(model_of(name)) if is_trained else name.removeprefix(UNTRAINED)
    entry = configuration.encoders[encoder]
    return entry.model if entry.revision is not None else None


def scores_of(
    results: Path, provenance: Provenance, run: tuple[str, int] | None = None
) -> tuple[pl.DataFrame, dict[str, list[str]]]:
    """The scores that can be published, averaged over evaluation seeds, of a model and seed or of all runs; and the
    names of models and benchmarks that are left out, by reason."""
    configuration = recorded_configuration(provenance["configuration"])
    places = files_by_place(results, TABLES["scores"], configured_in(configuration))
    paths = [*chain.from_iterable(places.values())]
    found = pl.DataFrame(read_table(paths, "scores") if paths else empty_schema(TABLES["scores"]).empty_table())
    found = found if run is None else found.filter(model=run[0], seed=run[1])
    oracles = [name for name in found["model"].unique() if model_of(name) in oracle_models(configuration)]
    generated = generated_benchmarks(provenance)
    omitted = {
        "of models that have learned from the answers of benchmarks": sorted(oracles),
        "on generated documents": [name for name in generated if name in found["benchmark"]],
    }
    kept = found.filter(~pl.col("model").is_in(oracles), ~pl.col("benchmark").is_in(generated))
    queries = (pl.col("scored") + pl.col("unscored")).first().alias("queries")
    means = kept.group_by(*KEYS, "metric").agg(pl.mean("value"), queries, pl.first("searched"))
    return means.sort(*KEYS, "metric"), {reason: names for reason, names in omitted.items() if names}


def export_results(results: Path, output: Path, owner: str) -> tuple[int, dict[str, list[str]]]:
    """Write the results of all runs into a new folder; return their number, and the names left out by reason. Raises
    `InputError` if the folder exists, the run is not finished, or there is nothing to write."""
    if not OWNERS.fullmatch(owner):
        raise InputError(f"--owner is {owner!r}; it must be of letters, digits, dots, hyphens and underscores.")
    provenance = provenance_for(results, output)
    scores, omitted = scores_of(results, provenance)
    with atomic_path(output) as folder:
        folder.mkdir()
        written, others = write_mteb(scores, provenance, folder, owner=owner)
        omitted |= {OTHERS: others} if others else {}
        if not written:
            without = "; ".join(f"those {reason} are not written" for reason in omitted)
            raise InputError(f"{results} has no scores that can be written{f' ({without})' if without else ''}.")
    return written, omitted


def write_mteb(
    scores: pl.DataFrame, provenance: Provenance, folder: Path, *, owner: str = OWNER, licence: str | None = None
) -> tuple[int, list[str]]:
    """Write the results of each run in these scores on the tasks of mteb below a folder; return their number, over all
    runs, and the tasks that mteb does not have, or not as they were scored."""
    configuration = recorded_configuration(provenance["configuration"])
    benchmarks, written, others = configuration.benchmarks, 0, set[str]()
    for (model, seed), of_run in scores.group_by("model", "seed", maintain_order=True):
        name, of_model = str(model), folder / "results" / f"{owner}__{model}" / f"seed-{seed}"
        has_encoder = model_of(name) in configuration.models or name in untrained(configuration)
        meta = {
            "name": f"{owner}/{name}",
            "revision": f"seed-{seed}",
            "adapted_from": base_model(name, configuration) if has_encoder else None,
            "framework": ["Sentence Transformers", "PyTorch"] if has_encoder else [],
            "license": licence,
            "languages": LANGUAGES,
            **dict.fromkeys(NOT_SAID),
        }
        parts, taken = of_run.partition_by("benchmark", "task", as_dict=True), set[str]()
        for benchmark, task in sorted(parts, key=lambda of: list(benchmarks).index(of[0])):
            rows, known = parts[benchmark, task], declared(task)
            sizes = rows["queries"][0], rows["searched"][0]
            is_same = known.mteb and is_same_test(known.mteb, benchmarks[benchmark], *sizes)
            if known.mteb is None or not is_same or known.mteb.name in taken:  # by an earlier benchmark
                others.add(f"{benchmark}/{task}")
                continue
            taken.add(known.mteb.name)
            values = {metric: round(value / 100, 6) for metric, value in rows.select("metric", "value").iter_rows()}
            [leading] = filter(known.is_main, values)
            scored = {name_in_mteb(metric): value for metric, value in values.items()} | {"main_score": values[leading]}
            result = {
                "dataset_revision": "no_revision_available",  # the files of a folder have none
                "task_name": known.mteb.name,
                "scores": {SPLIT: [{**scored, "hf_subset": SUBSET, "languages": LANGUAGES}]},
                "measured_by": f"CoCite {__version__}",
                **dict.fromkeys(["mteb_version", "evaluation_time", "kg_co2_emissions"]),  # mteb did not measure it
            }
            write_json(of_model / META, meta)
            write_json(of_model / f"{known.mteb.name}.json", result)
            written += 1
    return written, sorted(others)
