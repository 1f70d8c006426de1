"""How much of the scores is popularity: scores of a ranking by citation counts, and recall by citation count."""

from collections.abc import Sequence

import polars as pl

from cocite.config.benchmarks.holdout import CITATION_CLASSES, MATCHED, MOST_CITED, OF_AN_AUTHOR, OF_KNOWN_AUTHORS
from cocite.config.configuration import Configuration
from cocite.config.tasks import Task
from cocite.report.labels import TASKS, metric_in_words, over_seeds, percent

FAMOUS = "answers of the 1% most cited"


def found_by_citations(found: pl.DataFrame) -> pl.DataFrame:
    """A row for each benchmark, task and model: its recall by class of citations, and its share of famous answers."""
    keys = ["benchmark", "task", "model", "citations"]
    recall = over_seeds(found.drop_nulls("recall").rename({"recall": "value"}), keys)
    share = over_seeds(found.filter(citations=MOST_CITED).drop_nulls("share").rename({"share": "value"}), keys)
    listed = found.select(keys[:-1]).unique(maintain_order=True).sort("benchmark", "task", maintain_order=True)
    rows = []
    for benchmark, task, model in listed.iter_rows():
        of_row = {"benchmark": benchmark, "task": task, "model": model}
        of_class = dict(recall.filter(**of_row).select("citations", "cell").iter_rows())
        shares = share.filter(**of_row)["cell"]
        rows.append(
            {
                **of_row,
                **{recall_of(each): of_class.get(each, "–") for each in CITATION_CLASSES},
                FAMOUS: shares[0] if len(shares) else "–",
            }
        )
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
        of_kind = {
            is_matched: _values(scores, name, benchmark, [t for t in ranked if t.name.endswith(MATCHED) == is_matched])
            for is_matched in (False, True)
        }
        if of_kind[False]:
            metric = metric_in_words(ranked[0].main_metric)
            matched = f"; with candidates that are cited as often, {of_kind[True]}" if of_kind[True] else ""
            of_random = f"On {benchmark}, a ranking by citation counts has a {metric} of {of_kind[False]}"
            sentences.append(f"{of_random}{matched}.")
    return sentences


def same_authors_in_words(omissions: pl.DataFrame, configuration: Configuration) -> list[str]:
    """A sentence for each hold-out of papers with known authors: how many relevant papers share one with their query.
    `omissions` is the table of all omissions and counts of the steps."""
    counts = {(step, reason): count for step, reason, count in omissions.select("step", "reason", "count").iter_rows()}
    sentences = []
    for benchmark, entry in configuration.benchmarks.items():
        known = {task.name: counts.get((benchmark, OF_KNOWN_AUTHORS.format(task.name)), 0) for task in entry.declared}
        shares = [
            f"{percent(counts.get((benchmark, OF_AN_AUTHOR.format(task)), 0) / of_task)} ({TASKS.get(task, task)})"
            for task, of_task in known.items()
            if of_task
        ]
        if shares:
            sentences.append(f"On {benchmark}, an author of the query wrote {_listed(shares)} of the relevant papers.")
    return sentences


def _values(scores: pl.DataFrame, model: str, benchmark: str, tasks: Sequence[Task]) -> str:
    """The main metric of some tasks, as text."""
    values = {
        task.name: scores.filter(model=model, benchmark=benchmark, task=task.name, metric=task.main_metric)["value"]
        for task in tasks
    }
    return _listed(
        [
            f"{value[0]:.1f} ({TASKS.get(task.removesuffix(MATCHED), task)})"
            for task, value in values.items()
            if len(value)
        ]
    )


def _listed(parts: Sequence[str]) -> str:
    """Parts of a sentence, with commas and an and."""
    *first, last = parts or [""]
    return f"{', '.join(first)} and {last}" if first else last
