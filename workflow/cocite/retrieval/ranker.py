"""How an index ranks what it finds: its weights, and how much it prefers well-known papers.

Weights are learned by logistic regression on the held-out papers that choose between settings, of what is known of a
paper, standardised; what is not known counts as the mean, and papers without links have a weight of their own. Cosines
and words are standardised within a query, and count by their ranks as well. The balanced setting raises the scores of
rarely cited papers just so far that as many are found as by any list alone. This is chosen on the same papers, whose
scores come from weights that the other half of them was fitted on.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray

from cocite.config.benchmarks.holdout import CITATION_CLASSES, SEARCHED
from cocite.config.index import CITATIONS, SIGNALS, VOTES, WORDS, Ranking
from cocite.config.settings import GivenAsJson
from cocite.core.atomic import read_json, write_json
from cocite.core.options import Output
from cocite.core.progress import report
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import read_table, vectors_of, write_table
from cocite.core.written_ids import Ids, look_up
from cocite.retrieval.search import KNOWN, OF_TEXTS, RANK, reciprocal_ranks, standardised, within_query
from cocite.retrieval.search import VOTES as VOTES_OF_HITS

COSINE = "cosine"
UNLINKED = "without links"
AGE = "age"
"""log(1 + years) by which a paper is older than the newest one."""
OF_VOTES = tuple(VOTES_OF_HITS)
RARE_CLASSES = ("0", "1-3")
"""The classes of citations that have an offset, from the first on."""
SHIPPED = Path(__file__).with_name("shipped_weights.json")
"""Weights and offsets that `python -m tests.retrieval.shipped` makes from runs."""
LEAST_QUERIES = 25
"""Queries that weights are learned from; with fewer, the shipped ones rank."""
STEPS = np.arange(0, 3.01, 0.125)
"""What the scores of a class of rarely cited papers can be raised by, in deviations of the score."""
STEP_OF_LESS = 0.5
"""What they are raised by in addition if little-known papers are preferred."""
FIRST = 20
RECALLS = ("recall", "recall_never", "recall_seldom")
"""Columns of recall: of all papers, and of those that training sees cited never, and once to three times."""

Numbers = NDArray[np.float64]


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
    is_found, split = known.table["is_found"].to_numpy(), known.table["split"]
    selected = known.where(pc.equal(split, "selection").to_numpy() & is_found)
    popularity = read_table(tables / "popularity.parquet", "popularity")
    relevant = Relevant.of(selected, read_table(tables / "searches.parquet", "searches"), popularity)
    fitting = selected if len(selected.table) else known.where(is_found)
    of_pairs = selected.ids("query"), selected.ids("paper")
    lists = selected.lists()
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
            # Each half of the queries is scored by weights that the other half was fitted on.
            scores = np.zeros(len(selected.table))
            is_second = np.unique(selected.ids("query"), return_inverse=True)[1] % 2 == 1
            for half in (is_second, ~is_second):
                scores[half] = learned(selected.where(~half), is_cited[~half]).scores(selected.where(half))
        else:
            fitted = given(fitting, settings.rank)
            scores = fitted.scores(selected)
        deviation = fitted.deviation(fitting)
        balanced = deviation * _balanced(selected, scores / deviation, relevant, least)
    steps = (0 * balanced, balanced, balanced + STEP_OF_LESS * deviation)
    offsets = dict(zip(KNOWN, steps, strict=True))
    rankings = {f"index, {name}": raised(scores, selected.classes(), of) for name, of in offsets.items()}
    rows = [
        {**row, "ranking": name, "chosen": name == f"index, {settings.known}"}
        for name, of in (lists | rankings).items()
        for row in relevant.by_task(is_first(*of_pairs, of))
    ]
    rows.sort(key=lambda row: (row["task"], row["ranking"]))
    write_table(selection, "selection_scores", pa.Table.from_pylist(rows, empty_schema(TABLES["selection_scores"])))
    write_json(weights, fitted.as_json(offsets, **facts))
    tested = known.where(pc.equal(split, "test").to_numpy())
    scored = raised(fitted.scores(tested), tested.classes(), offsets[settings.known])
    answers = tested.table.select(["query", "paper", "is_found"])
    write_table(output, "answers", answers.append_column("score", pa.array(scored.astype(np.float32))))


@dataclass(frozen=True)
class Known:
    """What is known of some candidates, in the order of the table."""

    table: pa.Table
    names: Sequence[str]
    values: Numbers
    """Candidates × what is known by these names; NaN for what is not."""

    @classmethod
    def of(cls, table: pa.Table, models: Sequence[str]) -> "Known":
        """What the table candidates says."""
        columns = {name: table[name].to_numpy() for name in (WORDS, *OF_VOTES)}
        columns[CITATIONS] = np.log1p(table["citations"].to_numpy())
        columns[UNLINKED] = np.isnan(columns[OF_VOTES[0]].astype(np.float64))
        columns[AGE] = np.log1p(table["age"].to_numpy().astype(np.float64))
        values = np.column_stack([vectors_of(table, "cosines"), *columns.values()]).astype(np.float64)
        names = [*(f"{COSINE} {model}" for model in models), *columns]
        starts, is_found = np.unique(table["query"].to_numpy(), return_index=True)[1][1:], table["is_found"].to_numpy()
        of_queries = zip(np.split(values, starts), np.split(is_found, starts), strict=True)
        values = np.concatenate([within_query(of, names, found) for of, found in of_queries])
        return cls(table, [*names, *(f"{RANK}{name}" for name in filter(OF_TEXTS.fullmatch, names))], values)

    def where(self, kept: NDArray[np.bool_]) -> "Known":
        """Some of the candidates."""
        return Known(self.table.filter(pa.array(kept)), self.names, self.values[kept])

    def lists(self) -> dict[str, Numbers]:
        """The columns that compare texts, so that each can rank alone; −∞ for what is not known."""
        columns = zip(self.names, np.nan_to_num(self.values, nan=-np.inf).T, strict=True)
        return {name: column for name, column in columns if OF_TEXTS.fullmatch(name)}

    def ids(self, name: str) -> Ids:
        """The queries or the papers."""
        return self.table[name].to_numpy()

    def classes(self) -> Ids:
        """The class of citations of each paper."""
        return classes_of(self.table["citations"].to_numpy())


@dataclass(frozen=True)
class Weights:
    """What ranks: the weights of what is known, after it is standardised or turned into reciprocal ranks."""

    rank: str
    names: Sequence[str]
    means: Numbers
    deviations: Numbers
    weights: Numbers

    def scores(self, known: Known) -> Numbers:
        """The score of each candidate, without an offset."""
        if self.rank == "reciprocal":  # among those that are found for a query
            starts = np.unique(known.ids("query"), return_index=True)[1][1:]
            found = np.split(known.table["is_found"].to_numpy(), starts)
            values = np.concatenate([*map(reciprocal_ranks, np.split(known.values, starts), found)])
        else:
            values = standardised(known.values, self.means, self.deviations)
        return values @ self.weights

    def deviation(self, known: Known) -> float:
        """The deviation of the scores of candidates; 1 for none."""
        return float(np.std(self.scores(known))) or 1.0 if len(known.table) else 1.0

    def as_json(self, offsets: Mapping[str, Numbers], **facts: Any) -> dict[str, Any]:
        """A small table, from which numpy alone can rank by each setting of `known`."""
        columns = zip(self.names, self.means.tolist(), self.deviations.tolist(), self.weights.tolist(), strict=True)
        rows = [dict(zip(("name", "mean", "deviation", "weight"), row, strict=True)) for row in columns]
        of_classes = [
            {"from": first, "to": last, **{setting: float(of[at]) for setting, of in offsets.items()}}
            for at, (first, last) in enumerate(CITATION_CLASSES[name] for name in RARE_CLASSES)
        ]
        return {"rank": self.rank, "weights": rows, "offsets": of_classes, **facts}


def classes_of(citations: Ids) -> Ids:
    """The classes of papers by their citations: the places in `RARE_CLASSES`, or the next number for all others."""
    return np.searchsorted([CITATION_CLASSES[name][1] for name in RARE_CLASSES], citations)


def raised(scores: Numbers, classes: Ids, offsets: Sequence[float] | Numbers) -> Numbers:
    """Scores, higher by the offset of the class of each paper."""
    return scores + np.append(offsets, 0)[classes]


def scale_of(known: Known, rank: Any) -> tuple[Numbers, Numbers]:
    """The means and deviations that standardise what is known; what is all alike keeps its scale."""
    means, deviations = np.zeros(len(known.names)), np.ones(len(known.names))
    for at, column in enumerate(known.values.T if rank != "reciprocal" else ()):
        if len(there := column[~np.isnan(column)]) and there.std() > 0:
            means[at], deviations[at] = there.mean(), there.std()
    return means, deviations


def learned(known: Known, is_relevant: NDArray[np.bool_]) -> Weights:
    """The weights of a logistic regression."""
    from sklearn.linear_model import LogisticRegression

    means, deviations = scale_of(known, "learned")
    standard = standardised(known.values, means, deviations)
    fitted = LogisticRegression(tol=1e-8, max_iter=1000).fit(standard, is_relevant)
    return Weights("learned", known.names, means, deviations, fitted.coef_[0])


def shipped(known: Known) -> tuple[Weights, Numbers, list[str]]:
    """Weights that come with the program, the offsets of the balanced setting, and the corpora of both."""
    of = read_json(SHIPPED)
    weights = Weights("learned", known.names, *scale_of(known, "learned"), _shared(known.names, of["weights"]))
    return weights, np.array(of["offsets"]), of["corpora"]


def given(known: Known, rank: Any) -> Weights:
    """The weights of the configuration, or of a sum in which the model, words, votes and citations weigh the same."""
    counted = [name for name in known.names if name not in (UNLINKED, AGE) and not name.startswith(RANK)]
    signals = {_signal_of(name): 1.0 for name in counted}
    weights = _shared([_signal_of(name) for name in known.names], signals if isinstance(rank, str) else rank)
    return Weights(rank if isinstance(rank, str) else "sum", known.names, *scale_of(known, rank), weights)


def _shared(names: Sequence[str], weights: Mapping[str, float]) -> Numbers:
    """The weight of each column; those of one signal share its weight. Cosines by any model can be one signal."""
    signals = [name if name in weights else kind_of(name) for name in names]
    return np.array([weights.get(name, 0.0) / signals.count(name) for name in signals])


def kind_of(name: str) -> str:
    """The name of a column without that of its model."""
    return re.sub(rf"^({RANK})?{COSINE} .*", rf"\1{COSINE}", name)


def _signal_of(name: str) -> str:
    """What a configuration calls a part of what is known; a model cannot be named like another signal."""
    model = name.removeprefix(f"{COSINE} ")
    return VOTES if name in OF_VOTES else name if model in SIGNALS else model


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
        """Which candidates are cited by their query; learning from co-cited papers finds no more of either kind."""
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
        return np.asarray(np.nansum(recalls, axis=0) / np.maximum(np.sum(~np.isnan(recalls), axis=0), 1))

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
