"""Which model of a run has the settings of a published one, and its values beside the published ones.

A published table is a CSV file in workflow/report/published. A row has the settings that define its model (the column
`settings`, a YAML mapping) and the model's name in the experiment that repeats it. A model with other settings is
another model, whatever its name.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import polars as pl
import yaml

from cocite.config.encoders import TITLE_AND_ABSTRACT
from cocite.config.lineage import encoder_under, sets_of
from cocite.config.runs import IN_SPACE, model_of, scored_models

PUBLISHED_TABLES = Path(__file__).parents[2] / "report" / "published"


def read_published(name: str) -> pl.DataFrame:
    """A published table, as text with as many digits as were published."""
    return pl.read_csv(PUBLISHED_TABLES / f"{name}.csv", infer_schema=False)


def beside_results(
    name: str,
    measures: Sequence[str],
    own: Callable[[str, str], str | None],
    configuration: Mapping[str, Any],
    further: Sequence[str],
) -> pl.DataFrame:
    """One row per published result of a table, then one per other model in `further`, with two columns per measure.

    `own` gives the value of a measure that a model of this run has, as text; none if it was not scored.
    """
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


def model_with_settings_of(row: Mapping[str, str], configuration: Mapping[str, Any]) -> str | None:
    """The model of a run, in the space of the published row, that has its settings; none if no model has.

    If several have, the one that is called as in the experiment, or else the first.
    """
    name, _, space = row["model"].partition(IN_SPACE)
    settings = yaml.safe_load(row["settings"])
    called = scored_models(configuration)
    found = [
        each
        for each in configuration["models"]
        if _has(traits(each, configuration), settings) and (not space or f"{each}{IN_SPACE}{space}" in called)
    ]
    model = name if name in found else next(iter(found), None)
    return model and (f"{model}{IN_SPACE}{space}" if space else model)


def _has(model: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    bases = model["base"]
    return all(
        any(base.startswith(value) for base in bases) if key == "base" else model.get(key) == value
        for key, value in settings.items()
    )


def traits(name: str, configuration: Mapping[str, Any]) -> dict[str, Any]:
    """What defines a model, as one flat mapping: the keys of its set of triplets, its losses, its encoder and so on.

    `base` has the names by which its encoder may be known, `after` the samplers of the model that it starts from.
    """
    models = configuration["models"]
    model = models[model_of(name)]
    encoder = configuration["encoders"][encoder_under(model_of(name), models)]
    entries = [_sampled(each, configuration) for each in sets_of(model)]
    terms = model.get("objectives") or [{"loss": model["loss"]}]
    before = model.get("from")
    return {
        **(entries[0] if len(entries) == 1 else {}),
        "sampler": " + ".join(sorted(str(entry["sampler"]) for entry in entries)),
        "losses": " + ".join(dict.fromkeys(map(_loss, terms))),
        "temperature": terms[0]["loss"].get("temperature"),
        "mixing": model.get("mixing") or ("in-batch" if len(entries) > 1 else None),
        "after": traits(before, configuration)["sampler"] if before else None,
        "trainable": model["trainable"]["kind"],
        "pooling": encoder.get("pooling"),
        "text": list(encoder.get("text", TITLE_AND_ABSTRACT)),
        "base": (
            encoder_under(model_of(name), models),
            PurePath(str(encoder.get("model", ""))).name.lower(),
        ),
    }


def _sampled(name: str, configuration: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a set of triplets, those of the set that it is a part of included."""
    entry = dict(configuration["triplets"][name])
    if of := entry.pop("of", None):
        base = _sampled(of if isinstance(of, str) else of[0], configuration)
        return {**base, **{key: value for key, value in entry.items() if key not in ("sampler", "group")}}
    if graph := _graph(entry, configuration):
        entry.setdefault("directed", graph.get("directed"))
    if isinstance(entry.get("easy_negatives"), Mapping):
        entry["easy_negatives"] = entry["easy_negatives"]["kind"]
    if isinstance(entry.get("layout"), Mapping):
        entry["sampler"] = entry["layout"]["kind"]
    return entry


def _graph(entry: Mapping[str, Any], configuration: Mapping[str, Any]) -> Mapping[str, Any]:
    """The graph that a set is sampled from, directly or through an embedding; empty if there is none."""
    embedding = configuration.get("embeddings", {}).get(entry.get("embedding"), {})
    graph: Mapping[str, Any] = configuration.get("graphs", {}).get(entry.get("graph") or embedding.get("graph"), {})
    return graph


def _loss(term: Mapping[str, Any]) -> str:
    weight = f"{term['weight']:g} " if term.get("weight") is not None else ""
    return f"{weight}{term['loss']['kind']}" + (" in aspects" if term.get("space") == "aspects" else "")
