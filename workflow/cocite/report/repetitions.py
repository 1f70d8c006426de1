"""Published results of models that this run may repeat, with the values of this run.

A published table is a CSV file in workflow/report/published. A row has the settings that define its model (the column
`settings`, a YAML mapping) and the model's name in the experiment that repeats it: experiments/aspects.yaml,
objectives.yaml or ablations.yaml. A model with other settings is another model, whatever its name.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import polars as pl
import yaml

from cocite.config.benchmarks.beir import PUBLISHED, task_of
from cocite.config.configuration import Configuration
from cocite.config.encoders import TITLE_AND_ABSTRACT
from cocite.config.entries import as_json
from cocite.config.models import Term
from cocite.config.runs import IN_SPACE, beside_models, model_of, scored_models, untrained
from cocite.config.tasks import BOTH
from cocite.report.labels import mean_cell, over_seeds_of_one
from cocite.report.published import read_published

SCIDOCS = "SciDocs"
MEASURES: Mapping[str, tuple[str, str, str]] = {
    SCIDOCS: ("scidocs", "all", "all"),
    "SciRepEval": ("scirepeval", "all", "all"),
    "MDCR MAP": ("mdcr", "metric", "map"),
    "MDCR nDCG": ("mdcr", "metric", "ndcg"),
    "MDCR recall@5": ("mdcr", "metric", "recall_5"),
}
"""The kind of benchmark and the average that each of SciAspect's measures is."""
BEIR, ICLR = "BEIR nDCG@10", "ICLR2022 nDCG@10"
SEARCHES = {BEIR: [task_of(dataset).name for dataset in PUBLISHED], ICLR: [task_of("iclr2022").name]}
"""The tasks that a measure of objectives is the plain mean over."""
FORMATS: Mapping[str, tuple[str, ...]] = {
    "CLS": ("mag", "mesh"),
    "USR": ("scidocs_view", "scidocs_read"),
    "CITE": ("scidocs_cite", "scidocs_cocite"),
    "REC": ("recomm",),
}
"""The tasks of SPECTER's formats: classification, user activity, citations, recommendation."""
VALUES = {"CLS": 2, "USR": 4, "CITE": 4, "REC": 2}
"""The number of values of each of them: all metrics of its tasks."""

NOTHING = pl.DataFrame(schema=["published result"])


def sciaspect(averages: pl.DataFrame, configuration: Configuration) -> pl.DataFrame:
    """The matrix of SciAspect (2023): its published results, then further models of this kind in each of their spaces.
    Ours are on the first benchmark of each kind. Empty without such a model or without any of the benchmarks."""
    sampler = {name: entry.sampler for name, entry in configuration.triplets.items()}
    samplers = {name: {sampler[of] for of in entry.learns_from} for name, entry in configuration.models.items()}
    learns = [name for name, of_model in samplers.items() if of_model <= {"aspects", "undirected"}]  # as SciAspect's
    shown = [name for name in scored_models(configuration) if model_of(name) in learns]
    benchmarks = {kind: _first_of_kind(kind, configuration) for kind, *_ in MEASURES.values()}
    if not shown or not any(benchmarks.values()):
        return NOTHING

    def own(measure: str, model: str) -> str | None:
        kind, *average = MEASURES[measure]
        return _average(averages, benchmarks[kind], model, *average)

    return _with_published_results("aspects", list(MEASURES), own, configuration, shown)


def objectives(scores: pl.DataFrame, averages: pl.DataFrame, configuration: Configuration) -> pl.DataFrame:
    """Several objectives (Parisot and Zavrel, 2022): the published results, then the other models of this run. A task
    that several benchmarks have counts in the first of them. Empty if none has any of the tasks."""
    reported = {task for tasks in SEARCHES.values() for task in tasks}
    first = {
        task.name: name
        for name, entry in reversed(configuration.benchmarks.items())
        for task in entry.scored_tasks
        if task.name in reported
    }
    if not first:
        return NOTHING
    shown = [*configuration.models, *untrained(configuration), *beside_models(configuration)]
    frame = pl.DataFrame(list(first.items()), schema=["task", "benchmark"], orient="row")
    found = scores.filter(metric="ndcg_cut_10").join(frame, on=["task", "benchmark"])
    scidocs = _first_of_kind("scidocs", configuration)

    def own(measure: str, model: str) -> str | None:
        if measure == SCIDOCS:
            return _average(averages, scidocs, model)
        tasks = SEARCHES[measure]
        of_model = found.filter(pl.col("model") == model, pl.col("task").is_in(tasks))
        return _of(of_model, of_model["task"].n_unique(), len(tasks), "datasets")

    return _with_published_results("objectives", (BEIR, SCIDOCS, ICLR), own, configuration, shown)


def ablations(scores: pl.DataFrame, averages: pl.DataFrame, configuration: Configuration) -> pl.DataFrame:
    """The ablations of SPECTER (2020) and SciNCL (2022): the published results, then the other models of this run.
    Empty if no model has the settings of a published one, or SciDocs in its own layout is not among the benchmarks."""
    scidocs = _first_of_kind("scidocs", configuration)
    published = read_published("ablations").rows(named=True)
    if not scidocs or not any(model_with_settings_of(row, configuration) for row in published):
        return NOTHING

    def own(measure: str, model: str) -> str | None:
        if measure == SCIDOCS:
            return _average(averages, scidocs, model)
        found = scores.filter(pl.col("task").is_in(FORMATS[measure]), benchmark=scidocs, model=model)
        modes = sorted(set(found["mode"]) - {BOTH})[:1]  # compat comes before correct
        found = found.filter(pl.col("mode").is_in([*modes, BOTH]))
        return _of(found, found.select("task", "metric").n_unique(), VALUES[measure], "values")

    further = [*configuration.models, *untrained(configuration)]
    return _with_published_results("ablations", (*FORMATS, SCIDOCS), own, configuration, further)


def _first_of_kind(kind: str, configuration: Configuration) -> str:
    return next((name for name, entry in configuration.benchmarks.items() if entry.kind == kind), "")


def _average(averages: pl.DataFrame, benchmark: str, model: str, over: str = "all", average: str = "all") -> str | None:
    """Mean and deviation of an average, and the number of its values if some are lacking."""
    found = averages.filter(benchmark=benchmark, model=model, over=over, average=average)
    if found.is_empty():
        return None
    first = found.sort("mode").row(0, named=True)  # compat comes before correct.
    cell = mean_cell(first["mean"], first["deviation"])
    lacks = first["expected"] is not None and first["values"] < first["expected"]
    return f"{cell} ({first['values']} of {first['expected']} values)" if lacks else cell


def _of(scores: pl.DataFrame, number: int, expected: int, what: str) -> str | None:
    """The plain mean of some scores of a model, and their number if some are lacking; none without any."""
    if scores.is_empty():
        return None
    cell = over_seeds_of_one(scores)
    return cell if number == expected else f"{cell} ({number} of {expected} {what})"


def _with_published_results(
    name: str,
    measures: Sequence[str],
    own: Callable[[str, str], str | None],
    configuration: Configuration,
    further: Sequence[str],
) -> pl.DataFrame:
    """A row per published result, then one per other model in `further`; `own` gives the measures of this run's."""
    published = read_published(name).rows(named=True)
    models = [model_with_settings_of(row, configuration) for row in published]
    others = [model for model in further if model not in models]
    rows = []
    for row, model in (*zip(published, models, strict=True), *(({}, other) for other in others)):
        cells = {"published result": row.get("name"), "reference": row.get("reference"), "model": model}
        for measure in measures:
            cells |= {measure: row.get(measure), f"{measure}, ours": own(measure, model) if model else None}
        rows.append(cells)
    return pl.DataFrame(rows, schema=dict.fromkeys(rows[0], pl.String)).fill_null("–")


def model_with_settings_of(row: Mapping[str, str], configuration: Configuration) -> str | None:
    """The model of a run, in the space of the published row, with its settings; of several, the one with its name."""
    space = row["model"].partition(IN_SPACE)[2]
    settings = yaml.safe_load(row["settings"])
    base, found = settings.pop("base", ""), []
    for model in configuration.models:
        own = traits(model, configuration)
        is_based = any(each.startswith(base) for each in own["base"])
        if is_based and all(own.get(key) == value for key, value in settings.items()):
            found.append(f"{model}{IN_SPACE}{space}" if space else model)
    scored = scored_models(configuration)
    found = [each for each in found if not space or each in scored]
    return row["model"] if row["model"] in found else next(iter(found), None)


def traits(name: str, configuration: Configuration) -> dict[str, Any]:
    """The settings that define a model, as one flat mapping: of its set of triplets, its losses, its encoder and so on.
    `base` has the names by which its encoder may be known, `after` the samplers of the model that it starts from."""
    model, base = configuration.models[name], configuration.base_encoder(name)
    encoder = configuration.encoders[base]
    entries = [_sampled(each, configuration) for each in model.learns_from]
    terms = model.objectives or [Term.model_construct(loss=model.loss)]
    return {
        **(entries[0] if len(entries) == 1 else {}),
        "sampler": " + ".join(sorted(str(entry["sampler"]) for entry in entries)),
        "losses": " + ".join(dict.fromkeys(map(_loss, terms))),
        "temperature": getattr(terms[0].loss, "temperature", None),
        "mixing": model.mixing or ("in-batch" if len(entries) > 1 else None),
        "after": traits(model_of(model.from_), configuration)["sampler"] if model.from_ else None,
        "trainable": model.trainable.kind,
        "pooling": encoder.known_pooling,
        "text": list(encoder.text or TITLE_AND_ABSTRACT),
        "base": (base, PurePath(encoder.model or "").name.lower()),
    }


def _sampled(name: str, configuration: Configuration) -> dict[str, Any]:
    """The keys of a set of triplets, including those of the set that it is a part of."""
    entry = as_json(configuration.triplets[name])
    if of := entry.pop("of", None):
        base = _sampled(of if isinstance(of, str) else of[0], configuration)
        return {**base, **{key: value for key, value in entry.items() if key not in ("sampler", "group")}}
    embedding = configuration.embeddings.get(entry.get("embedding"))
    if graph := configuration.graphs.get(entry.get("graph") or (embedding.graph if embedding else "")):
        entry.setdefault("directed", getattr(graph, "directed", None))
    for key, of_kind in (("easy_negatives", "easy_negatives"), ("layout", "sampler")):
        if isinstance(entry.get(key), Mapping):
            entry[of_kind] = entry[key]["kind"]
    return entry


def _loss(term: Term) -> str:
    weight = f"{term.weight:g} " if term.weight is not None else ""
    return f"{weight}{term.loss.kind}" + (" in aspects" if term.space == "aspects" else "")
