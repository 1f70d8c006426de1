"""The report's tables of scores, as text: by format, by task, what was not scored, and models compared with each other.

Numbers are means, with the standard deviation behind ± if there are several seeds. Recall by citation count and the
scores of a ranking by citation counts tell how much of the scores is popularity.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from cocite.config.benchmarks.holdout import CITATION_CLASSES, MATCHED, MOST_CITED, OF_AN_AUTHOR, OF_KNOWN_AUTHORS
from cocite.config.configuration import Configuration
from cocite.config.encoders import TITLE_AND_ABSTRACT
from cocite.config.entries import Entry
from cocite.config.runs import names_in_order, repooled, untrained
from cocite.config.tasks import BOTH, FORMATS, without_unions
from cocite.core.tables.files import verified_files
from cocite.core.tables.places import path_of
from cocite.report.labels import TASKS, loss_of, measure, metric_in_words, over_seeds, over_seeds_of_one, sets_in_words

Curves = Mapping[str, pl.DataFrame]
OF_DIFFICULTY = {"k_positive": "k⁺", "k_negative": "k⁻"}
OF_DIFFICULTY |= {"distance_positive": "positives within", "distance_negative": "hard negatives within"}
OF_SEARCHES = {"unfindable": "judged relevant, but not in the collection", "copies": "documents that repeat a text"}
QUERIES = "number of queries"
FAMOUS = "answers of the 1% most cited"


def models_by_format(scores: pl.DataFrame, configuration: Configuration) -> pl.DataFrame:
    """One row per model or baseline, one column per benchmark and format (or task of the hold-out). A format is the
    mean over its tasks by the first metric of each, since other metrics have other scales. Models come as configured,
    then the untrained encoders and the baselines. A mean over fewer tasks than others shows their number."""
    labelled, keys = _labelled(scores, configuration.benchmarks), ["model", "column"]
    runs = labelled.group_by(*keys, "seed", "evaluation_seed").agg(pl.mean("value"), tasks=pl.n_unique("task"))
    counted = runs.with_columns(pl.col("tasks").max().over("column").alias("most"))
    least = counted.group_by(keys).agg(pl.col("tasks").min(), pl.col("most").first())
    partial = pl.format("{} ({} of {} tasks)", "cell", "tasks", "most")
    cell = pl.when(pl.col("tasks") < pl.col("most")).then(partial).otherwise("cell")
    cells = over_seeds(runs, keys).join(least, on=keys).select(*keys, cell=cell)
    wide = cells.pivot("column", index="model", values="cell").fill_null("–")
    # Benchmarks as configured, formats in the order of the literature.
    order = {"benchmark": list(configuration.benchmarks), "format": list(dict.fromkeys(FORMATS.values()))}
    ranks = [pl.col(name).replace_strict(values, range(len(values))) for name, values in order.items()]
    columns = labelled.sort(*ranks, "task", "metric", "mode")["column"].unique(maintain_order=True)
    return _in_order(wide, configuration).select("model", *columns)


def failures(found: pl.DataFrame) -> pl.DataFrame:
    """One row per benchmark, task, model and seed without a score because the data make one impossible."""
    order = ["benchmark", "task", "model", "seed", "reason"]
    return found.select(order).sort(order).with_columns(pl.col("seed").cast(pl.String))


def tasks(scores: pl.DataFrame, configuration: Configuration) -> dict[str, pl.DataFrame]:
    """For each benchmark that has scores, one row per model and one column per metric of a task."""
    keys = ["benchmark", "task", "metric", "mode"]
    cells = over_seeds(scores, [*keys, "model"]).sort(keys)
    names = pl.struct("task", "metric", "mode").map_elements(lambda names: measure(**names), return_dtype=pl.String)
    tables = {}
    for benchmark in configuration.benchmarks:
        named = cells.filter(benchmark=benchmark).select("model", "cell", measure=names)
        if len(named):
            wide = named.pivot("measure", index="model", values="cell", maintain_order=True).fill_null("–")
            tables[benchmark] = _in_order(wide, configuration)
    return tables


def by_year(found: pl.DataFrame, configuration: Configuration) -> pl.DataFrame:
    """For each hold-out by time and task, the number of queries of each year, and the score of each model on them."""
    metric = pl.col("metric").map_elements(metric_in_words, return_dtype=pl.String)
    task = pl.format("{}, {}", pl.col("task").replace(TASKS), metric)
    named = found.with_columns(pl.col("year").cast(pl.String), task=task)
    keys = ["benchmark", "task", "model", "year"]
    counts = named.with_columns(model=pl.lit(QUERIES)).group_by(keys).agg(cell=pl.col("queries").max().cast(pl.String))
    cells = pl.concat([counts, over_seeds(named, keys)]).sort("year")
    names = [QUERIES, *names_in_order(configuration)]
    rank = pl.col("model").replace_strict(names, range(len(names)))
    return cells.pivot("year", index=keys[:-1], values="cell").fill_null("–").sort("benchmark", "task", rank)


def incomplete(scores: pl.DataFrame) -> pl.DataFrame:
    """One row per task with documents without a vector, queries without a score, or a search with a blind spot."""
    of_searches = [name for name in OF_SEARCHES if name in scores.columns and scores[name].fill_null(0).sum() > 0]
    counts = ["missing", "unscored", *of_searches]
    of = ["documents", *counts, *(["searched"] if of_searches else [])]
    counted = scores.group_by("benchmark", "task").agg(pl.col(of).max())
    rows = counted.filter(pl.any_horizontal(pl.col(counts) > 0)).sort("benchmark", "task")
    cells = {
        "missing": pl.format("{} of {}", "missing", "documents").alias("documents without a vector"),
        "unscored": pl.col("unscored").cast(pl.String).alias("left out of the score"),
        "unfindable": pl.col("unfindable").cast(pl.String).fill_null("–").alias(OF_SEARCHES["unfindable"]),
        "copies": pl.format("{} of {}", "copies", "searched").fill_null("–").alias(OF_SEARCHES["copies"]),
    }
    return rows.select("benchmark", "task", *(cells[name] for name in counts))


def empty_fields(results: Path, configuration: Configuration) -> pl.DataFrame:
    """One row per benchmark and field that is read and that none of its documents has; short queries do not count."""
    named = dict(zip(untrained(configuration), configuration.encoders, strict=True))
    named |= {name: configuration.base_encoder(name) for name in configuration.models}
    readers: dict[str, list[str]] = {name: ["everything that reads texts"] for name in TITLE_AND_ABSTRACT}
    for name, encoder in named.items():
        for field in configuration.encoders[encoder].further:
            readers.setdefault(field, []).append(name)
    further = [field for field in readers if field not in TITLE_AND_ABSTRACT]
    rows = []
    for benchmark in configuration.benchmarks:
        filled = _filled(results, "documents", benchmark, TITLE_AND_ABSTRACT)
        documents = filled["documents"]
        if further:
            filled |= _filled(results, "document_fields", benchmark, further)
        rows += [
            {"benchmark": benchmark, "field": field, "documents": documents, "read by": ", ".join(of)}
            for field, of in readers.items()
            if documents and not filled[field]
        ]
    schema = {"benchmark": pl.String, "field": pl.String, "documents": pl.Int64, "read by": pl.String}
    return pl.DataFrame(rows, schema=schema)


def losses(scores: pl.DataFrame, curves: Curves, configuration: Configuration) -> pl.DataFrame:
    """Models that differ in their loss only; accuracy is the share of validation triplets in order."""
    differing, known = {}, {}
    for name, entry in configuration.models.items():
        differing[name] = (entry.loss, entry.objectives), _without(entry, ["loss", "objectives"])
        encoder = configuration.base_encoder(name)
        known[name] = {"loss": loss_of(entry), "triplets": sets_in_words(entry), "encoder": encoder}
    return _side_by_side(differing, known, scores, curves, configuration)


def difficulties(scores: pl.DataFrame, curves: Curves, configuration: Configuration) -> pl.DataFrame:
    """Models whose triplets differ only in the bands of positives and hard negatives (nearer ones are harder)."""
    sets = {name: entry.triplets for name, entry in configuration.models.items() if entry.triplets is not None}
    bands: dict[str, Any] = {name: configuration.triplets[triplets] for name, triplets in sets.items()}
    there = [key for key in OF_DIFFICULTY if any(getattr(entry, key, None) is not None for entry in bands.values())]
    differing, known = {}, {}
    for name, band in bands.items():
        rest = _without(band, OF_DIFFICULTY), _without(configuration.models[name], ["triplets"])
        differing[name] = band, rest
        limits = {key: getattr(band, key, None) for key in there}
        limits |= {key: "–".join(map(str, limit)) for key, limit in limits.items() if isinstance(limit, tuple)}
        shown = {OF_DIFFICULTY[key]: "–" if limit is None else str(limit) for key, limit in limits.items()}
        known[name] = {"triplets": sets[name], **shown}
    return _side_by_side(differing, known, scores, curves, configuration)


def _labelled(scores: pl.DataFrame, benchmarks: Mapping[str, Any]) -> pl.DataFrame:
    """The scores that are shown, with the column of each, which names the mode if there are two."""
    is_holdout = pl.col("benchmark").is_in([name for name, entry in benchmarks.items() if entry.made_by])
    mode = pl.when(pl.col("mode") == BOTH).then(pl.lit("")).otherwise(pl.format(" ({})", "mode"))
    metric = pl.col("metric").map_elements(metric_in_words, return_dtype=pl.String)
    of_task = pl.format("{}: {}, {}", "benchmark", pl.col("task").replace(TASKS), metric)
    of_format = pl.format("{}: {}{}", "benchmark", "format", mode)
    column = pl.when(is_holdout).then(of_task).otherwise(of_format)
    tasks = {name: without_unions(entry.scored_tasks) for name, entry in benchmarks.items()}
    shown = {(name, task.name): task for name, of_benchmark in tasks.items() for task in of_benchmark}
    keys = ["benchmark", "task", "metric"]
    measured = []
    for benchmark, name, by in scores.select(keys).unique().iter_rows():
        if (task := shown.get((benchmark, name))) and (benchmarks[benchmark].made_by or task.is_main(by)):
            measured.append((benchmark, name, by))
    found = pl.DataFrame(measured, schema=dict.fromkeys(keys, pl.String), orient="row")
    return scores.join(found, on=keys, maintain_order="left").with_columns(column=column)


def _in_order(frame: pl.DataFrame, configuration: Configuration) -> pl.DataFrame:
    names = pl.DataFrame({"model": names_in_order(configuration)}, schema={"model": pl.String})
    return names.join(frame, on="model", how="inner", maintain_order="left")


def _side_by_side(
    differing: Mapping[str, tuple[Any, Any]],
    known: Mapping[str, Mapping[str, str]],
    scores: pl.DataFrame,
    curves: Curves,
    configuration: Configuration,
) -> pl.DataFrame:
    """Models that differ from another one in one property (`differing` has it, and the rest of each model's entry)."""
    rows = [
        {"model": called, **known[name], "validation accuracy": _best_accuracy(curves[name]) if called == name else "–"}
        for name, (thing, rest) in differing.items()
        if any(thing != other and rest == others for other, others in differing.values())
        for called in (name, *repooled(name, configuration.models[name]))
    ]
    if not rows:
        return pl.DataFrame(schema=["model", "validation accuracy"])
    return pl.DataFrame(rows).join(models_by_format(scores, configuration), on="model", maintain_order="left")


def _without(entry: Entry, keys: Any) -> dict[str, Any]:
    return {key: value for key, value in vars(entry).items() if key not in keys}


def _best_accuracy(curve: pl.DataFrame) -> str:
    """Accuracy, %, of the states that were kept, those of the least validation loss, over the seeds of a model."""
    validation = curve.filter(pl.col("metric").str.starts_with("validation_"))
    wide = validation.pivot("metric", index=["seed", "step"], values="value")
    kept = wide.sort("validation_loss", "step").group_by("seed").first()
    return over_seeds_of_one(kept.select("seed", value=100 * pl.col("validation_accuracy"), evaluation_seed=pl.lit(0)))


def _filled(results: Path, table: str, benchmark: str, fields: Sequence[str]) -> dict[str, int]:
    """The number of `documents` of a benchmark that are no short queries, and of those with each of some fields."""
    rows = pl.scan_parquet(verified_files(path_of(results, table, benchmark=benchmark), table))
    columns = rows.collect_schema()
    if "is_query" in columns:
        rows = rows.filter(~pl.col("is_query").fill_null(value=False))
    counts = {name: pl.col(name).count() for name in fields}
    counts |= {name: (pl.col(name) != "").sum() for name in fields if columns[name] == pl.String}
    counts |= {name: (pl.col(name).list.len() > 0).sum() for name in fields if columns[name] == pl.List}
    return rows.select(documents=pl.len(), **counts).collect(engine="streaming").row(0, named=True)


def found_by_citations(found: pl.DataFrame) -> pl.DataFrame:
    """A row for each benchmark, task and model: its recall by class of citations, and its share of famous answers."""
    keys = ["benchmark", "task", "model", "citations"]
    recall = over_seeds(found.drop_nulls("recall").rename({"recall": "value"}), keys)
    share = over_seeds(found.filter(citations=MOST_CITED).drop_nulls("share").rename({"share": "value"}), keys)
    listed = found.select(keys[:-1]).unique(maintain_order=True).sort("benchmark", "task", maintain_order=True)
    rows = []
    for of_row in listed.iter_rows(named=True):
        of_class = dict(recall.filter(**of_row).select("citations", "cell").iter_rows())
        recalls = {recall_of(each): of_class.get(each, "–") for each in CITATION_CLASSES}
        rows.append({**of_row, **recalls, FAMOUS: next(iter(share.filter(**of_row)["cell"]), "–")})
    return pl.DataFrame(rows, schema=["benchmark", "task", "model", *map(recall_of, CITATION_CLASSES), FAMOUS])


def recall_of(citations: str) -> str:
    """The name of the recall of a class of papers."""
    return f"cited {citations} times"


def popularity_in_words(scores: pl.DataFrame, configuration: Configuration) -> list[str]:
    """A sentence for each hold-out: the scores of citation counts, with random and with matched candidates."""
    [name] = [each for each, entry in configuration.baselines.items() if entry.about_held_out][:1] or [""]
    sentences = []
    for benchmark, entry in configuration.benchmarks.items():
        ranked = [task for task in entry.scored_tasks if task.kind == "ranking"] if entry.made_by else []
        of_kind: dict[bool, list[str]] = {False: [], True: []}
        for task in ranked:
            found = scores.filter(model=name, benchmark=benchmark, task=task.name, metric=task.main_metric)["value"]
            asked = task.name.removesuffix(MATCHED)
            is_matched = task.name.endswith(MATCHED)
            of_kind[is_matched] += [f"{value:.1f} ({TASKS.get(asked, task.name)})" for value in found[:1]]
        if of_kind[False]:
            metric = metric_in_words(ranked[0].main_metric)
            said = f"On {benchmark}, a ranking by citation counts has a {metric} of {_listed(of_kind[False])}"
            matched = f"; with candidates that are cited as often, {_listed(of_kind[True])}" if of_kind[True] else ""
            sentences.append(f"{said}{matched}.")
    return sentences


def same_authors_in_words(omissions: pl.DataFrame, configuration: Configuration) -> list[str]:
    """A sentence for each hold-out of papers with known authors: how many relevant ones share one with their query."""
    counts = {(step, reason): count for step, reason, count in omissions.select("step", "reason", "count").iter_rows()}
    sentences = []
    for benchmark, entry in configuration.benchmarks.items():
        known = {task.name: counts.get((benchmark, OF_KNOWN_AUTHORS.format(task.name)), 0) for task in entry.declared}
        shares = [
            f"{counts.get((benchmark, OF_AN_AUTHOR.format(task)), 0) / of_task:.1%} ({TASKS.get(task, task)})"
            for task, of_task in known.items()
            if of_task
        ]
        if shares:
            sentences.append(f"On {benchmark}, an author of the query wrote {_listed(shares)} of the relevant papers.")
    return sentences


def _listed(parts: Sequence[str]) -> str:
    """Parts of a sentence, with commas and an and."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
