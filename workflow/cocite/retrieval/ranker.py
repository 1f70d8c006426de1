"""How an index ranks what it finds: its weights, and how much it prefers well-known papers.

Weights are learned by logistic regression on the held-out papers that choose between settings. The balanced setting
raises the scores of rarely cited papers just so far that as many are found as by any list alone. This is chosen on the
same papers, whose scores come from weights that the other half of them was fitted on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray

from cocite.config.benchmarks.holdout import SEARCHED
from cocite.config.index import Ranking
from cocite.config.settings import GivenAsJson
from cocite.core.atomic import write_json
from cocite.core.options import Output
from cocite.core.progress import report
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import read_table, write_table
from cocite.core.written_ids import Ids, look_up
from cocite.retrieval.weights import (
    RARE_CLASSES,
    Known,
    Numbers,
    classes_of,
    given,
    is_of_text,
    learned,
    raised,
    shipped,
)

LEAST_QUERIES = 25
"""Queries that weights are learned from; with fewer, the shipped ones rank."""
STEPS = np.arange(0, 3.01, 0.125)
"""What the scores of a class of rarely cited papers can be raised by, in deviations of the score."""
STEP_OF_LESS = 0.5
"""What they are raised by in addition if little-known papers are preferred."""
FIRST = 20
RECALLS = ("recall", "recall_never", "recall_seldom")
"""Columns of recall: of all papers, and of those that training sees cited never, and once to three times."""


def rank_candidates(
    candidates: Annotated[Path, typer.Argument(help="Table candidates.")],
    *,
    tables: Annotated[Path, typer.Option(help="Folder of the tables of the hold-out.")],
    settings: GivenAsJson[Ranking],
    models: Annotated[str, typer.Option(help="Names of the models whose cosines these are, with commas between them.")],
    weights: Annotated[Path, typer.Option(help="The weights, written as JSON.")],
    selection: Annotated[Path, typer.Option(help="Table selection_scores, written.")],
    output: Output,
) -> None:
    """Learn how candidates are ranked, choose how much citations count, and score the candidates of the others."""
    known = Known.of(read_table(candidates, "candidates"), models.split(","))
    is_found, split = (known.table[name].to_numpy() for name in ("is_found", "split"))
    selected = known.where((split == "selection") & is_found)
    popularity = read_table(tables / "popularity.parquet", "popularity")
    relevant = Relevant.of(selected, read_table(tables / "searches.parquet", "searches"), popularity)
    fitting = selected if len(selected.table) else known.where(is_found)
    of_pairs = selected.ids("query"), selected.ids("paper")
    columns = dict(zip(known.names, selected.values.T, strict=True))
    lists = {name: np.nan_to_num(column, nan=-1) for name, column in columns.items() if is_of_text(name)}
    least = np.max([relevant.recall(is_first(*of_pairs, of)) for of in lists.values()], axis=0)
    facts: dict[str, Any] = {"known": settings.known, "queries": 0, "corpora": []}
    is_cited = relevant.is_cited(len(selected.table))
    queries = len(np.unique(selected.ids("query")[is_cited]))
    if settings.rank == "learned" and queries < LEAST_QUERIES:
        found = f"{queries} held-out papers choose between settings and find a cited paper"
        remedy = "Hold out more papers, or raise `selection` of the benchmark."
        report(f"{found}; weights are learned from {LEAST_QUERIES} or more. {remedy}")
        fitted, balanced, facts["corpora"] = shipped(fitting)
        scores, deviation = fitted.scores(selected), fitted.deviation(fitting)
        report(f"Weights that were learned on {' and '.join(facts['corpora'])} rank instead.")
    else:
        if settings.rank == "learned":
            fitted, facts["queries"] = learned(selected, is_cited), queries
            scores = _cross_fitted(selected, is_cited)
        else:
            fitted = given(fitting, settings.rank)
            scores = fitted.scores(selected)
        deviation = fitted.deviation(fitting)
        balanced = deviation * _balanced(selected, scores / deviation, relevant, least)
    offsets = {"more": 0 * balanced, "balanced": balanced, "less": balanced + STEP_OF_LESS * deviation}
    rankings = {f"index, {name}": raised(scores, selected.classes(), of) for name, of in offsets.items()}
    rows = [
        {**row, "ranking": name, "chosen": name == f"index, {settings.known}"}
        for name, of in (lists | rankings).items()
        for row in relevant.by_task(is_first(*of_pairs, of))
    ]
    rows.sort(key=lambda row: (row["task"], row["ranking"]))
    write_table(selection, "selection_scores", pa.Table.from_pylist(rows, empty_schema(TABLES["selection_scores"])))
    write_json(weights, fitted.as_json(offsets, **facts))
    tested = known.where(split == "test")
    scored = raised(fitted.scores(tested), tested.classes(), offsets[settings.known])
    answers = tested.table.select(["query", "paper", "is_found"])
    write_table(output, "answers", answers.append_column("score", pa.array(scored.astype(np.float32))))


@dataclass(frozen=True)
class Relevant:
    """What the held-out papers that choose between settings search for, in order."""

    tasks: Sequence[str]
    """The task of each search; a search is a query of a task."""
    searches: Ids
    """The search of each relevant paper."""
    classes: Ids
    """Its class of citations."""
    places: Ids
    """Its place among the candidates; -1 if it is none."""

    @classmethod
    def of(cls, candidates: Known, searches: pa.Table, popularity: pa.Table) -> "Relevant":
        """What the table searches lists for those that choose."""
        rows = searches.filter(pc.equal(searches["split"], "selection"))
        tasks, queries, papers = (rows[name].to_pylist() for name in ("task", "query", "paper"))
        numbers = {search: at for at, search in enumerate(sorted(set(zip(tasks, queries, strict=True))))}
        pairs = zip(candidates.ids("query").tolist(), candidates.ids("paper").tolist(), strict=True)
        place_of = {pair: at for at, pair in enumerate(pairs)}
        at, _ = look_up(popularity["corpusid"].to_numpy(), rows["paper"].to_numpy())
        return cls(
            [task for task, _ in numbers],
            np.array([numbers[search] for search in zip(tasks, queries, strict=True)], np.int64),
            classes_of(popularity["citations"].to_numpy()[at]),
            np.array([place_of.get(pair, -1) for pair in zip(queries, papers, strict=True)], np.int64),
        )

    def among(self, kept: NDArray[np.bool_]) -> "Relevant":
        """The same among some of the candidates."""
        places = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
        return replace(self, places=places[self.places])

    def is_cited(self, candidates: int) -> NDArray[np.bool_]:
        """Which candidates are cited by their query. Co-cited papers teach to prefer what everybody cites, and find
        neither more of themselves nor more of the others."""
        is_of_task = np.array([task == f"cite{SEARCHED}" for task in self.tasks], np.bool_)[self.searches]
        is_cited = np.zeros(candidates, np.bool_)
        is_cited[self.places[is_of_task & (self.places >= 0)]] = True
        return is_cited

    def recalls(self, first: NDArray[np.bool_]) -> Numbers:
        """The share × 100 among the first of each search, of all papers and each rarely cited class; NaN for none."""
        is_hit, classes = np.append(first, False)[self.places], range(len(RARE_CLASSES))
        columns = []
        for is_of in (np.ones(len(is_hit), np.bool_), *(self.classes == each for each in classes)):
            hits, papers = (np.bincount(self.searches, of, len(self.tasks)) for of in (is_hit & is_of, is_of))
            columns.append(np.where(papers > 0, 100 * hits / np.clip(papers, 1, FIRST), np.nan))
        return np.stack(columns, axis=1)

    def recall(self, first: NDArray[np.bool_]) -> Numbers:
        """The means over all searches; 0 without any."""
        recalls = self.recalls(first)
        means: Numbers = np.nansum(recalls, axis=0) / np.maximum(np.sum(~np.isnan(recalls), axis=0), 1)
        return means

    def by_task(self, first: NDArray[np.bool_]) -> list[dict[str, Any]]:
        """Rows of the table selection_scores."""
        recalls, rows = self.recalls(first), []
        for task in sorted(set(self.tasks)):
            of_task = recalls[[each == task for each in self.tasks]]
            known = (column[~np.isnan(column)] for column in of_task.T)
            means = [float(column.mean()) if len(column) else None for column in known]
            rows.append({"task": task, **dict(zip(RECALLS, means, strict=True)), "queries": len(of_task)})
        return rows


def is_first(groups: Ids, papers: Ids, scores: Numbers) -> NDArray[np.bool_]:
    """Which candidates are among the first of their group."""
    order = np.lexsort((papers, -scores, groups))
    rank = np.arange(len(order)) - np.searchsorted(groups[order], groups[order])
    first = np.zeros(len(order), np.bool_)
    first[order[rank < FIRST]] = True
    return first


def _cross_fitted(selected: Known, is_cited: NDArray[np.bool_]) -> Numbers:
    """The scores of queries that choose between settings, by weights learned on the other half of them."""
    scores, is_second = np.zeros(len(selected.table)), np.unique(selected.ids("query"), return_inverse=True)[1] % 2 == 1
    for half in (is_second, ~is_second):
        scores[half] = learned(selected.where(~half), is_cited[~half]).scores(selected.where(half))
    return scores


def _balanced(selected: Known, scores: Numbers, relevant: Relevant, least: Numbers) -> Numbers:
    """What scores of rarely cited papers are raised by: of all that leave no class of them below the least recall, that
    with the most recall of all papers; or else that with the least that is missing."""
    queries, papers, classes = selected.ids("query"), selected.ids("paper"), selected.classes()
    of_class = np.unique(queries, return_inverse=True)[1] * (1 + len(RARE_CLASSES)) + classes
    kept = is_first(of_class, papers, scores)  # no others can be among the first
    queries, papers, classes, relevant = queries[kept], papers[kept], classes[kept], relevant.among(kept)
    scores = scores[kept]

    def merit(steps: tuple[float, ...]) -> tuple[float, float]:
        recall = relevant.recall(is_first(queries, papers, raised(scores, classes, steps)))
        return -float(np.maximum(least - recall, 0)[1:].sum()), float(recall[0])

    return np.array(max(product(STEPS, repeat=len(RARE_CLASSES)), key=merit))
