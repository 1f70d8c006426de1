"""How an index ranks what it finds: the weights of what it knows of a paper, learned, given or all alike.

What is known of a paper is standardised. What is not known counts as the mean, and papers without links have a weight
of their own, so that they are not taken for papers whose links lead elsewhere. Weights are learned by logistic
regression on the held-out papers that choose between settings. How much citations count is chosen on these as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray

from cocite.config.benchmarks.holdout import CITATION_CLASSES, SEARCHED
from cocite.config.index import CITATIONS, VOTES, WORDS, Ranking
from cocite.config.settings import GivenAsJson
from cocite.core.atomic import write_json
from cocite.core.options import Output
from cocite.core.progress import report
from cocite.core.tables.files import read_table, vectors_of, write_table

LEAST_QUERIES = 25
"""Queries that weights are learned from; with fewer, the sum ranks."""
DISCOUNTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0)
"""Powers of 1 + citations that the odds of a paper are divided by in the balanced setting, which takes the first that
finds rare papers."""
LEAST_OF_LESS = 0.5
"""The power, at least, if little-known papers are preferred."""
FIRST = 20
RARE = CITATION_CLASSES["1-3"][1]
"""Citations of rarely cited papers, at most."""
CONSTANT = 60
"""Added to ranks in reciprocal rank fusion (Cormack et al., 2009)."""
UNLINKED = "without links"
OF_VOTES = ("votes_10", "votes_30", "votes_100")

Numbers = NDArray[np.float64]


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
        values = np.column_stack([vectors_of(table, "cosines"), *columns.values()])
        return cls(table, [*map(cosine_of, models), *columns], values.astype(np.float64))

    def where(self, kept: pa.ChunkedArray) -> "Known":
        """Some of the candidates."""
        return Known(self.table.filter(kept), self.names, self.values[kept.to_numpy()])

    def starts(self) -> NDArray[np.int64]:
        """Where the candidates of each query start."""
        return np.unique(self.table["query"].to_numpy(), return_index=True)[1]

    def ranked_by(self, scores: Numbers) -> dict[int, NDArray[np.int64]]:
        """The first papers of each query."""
        papers, queries, starts = self.table["paper"].to_numpy(), self.table["query"].to_numpy(), self.starts()
        order = np.lexsort((papers, -scores, queries))
        return {
            int(queries[at]): papers[some[:FIRST]] for at, some in zip(starts, np.split(order, starts[1:]), strict=True)
        }


@dataclass(frozen=True)
class Weights:
    """What ranks: the weights of what is known, after it is standardised or turned into reciprocal ranks."""

    rank: str
    names: Sequence[str]
    means: Numbers
    deviations: Numbers
    weights: Numbers

    def discounted(self, discount: float) -> "Weights":
        """The weights of a score that is lower by the discount times log(1 + citations)."""
        is_lower = np.array([name == CITATIONS for name in self.names])
        return replace(self, weights=self.weights - discount * is_lower * self.deviations)

    def scores(self, known: Known) -> Numbers:
        """The score of each candidate."""
        if self.rank == "reciprocal":
            values = _reciprocal_ranks(known)
        else:
            values = np.nan_to_num((known.values - self.means) / self.deviations)
        scores: Numbers = values @ self.weights
        return scores

    def as_json(self, discount: float, queries: int) -> dict[str, Any]:
        """A small table, from which numpy alone can rank."""
        columns = zip(self.names, self.means.tolist(), self.deviations.tolist(), self.weights.tolist(), strict=True)
        rows = [dict(zip(("name", "mean", "deviation", "weight"), row, strict=True)) for row in columns]
        return {"rank": self.rank, "weights": rows, "discount": discount, "queries": queries}


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
    searches = read_table(tables / "searches.parquet", "searches")
    searches = searches.filter(pc.equal(searches["split"], "selection"))
    citations = read_table(tables / "popularity.parquet", "popularity")
    choosing = known.where(pc.and_(pc.equal(known.table["split"], "selection"), known.table["is_found"]))
    cited = searches.filter(pc.equal(searches["task"], f"cite{SEARCHED}"))
    rank, queries = _rank(settings.rank, choosing, cited)
    fitted = fit(choosing if len(choosing.table) else known, rank, cited)
    rankings = {
        name: np.nan_to_num(choosing.values[:, at], nan=-1) for at, name in enumerate(known.names) if _is_of_text(name)
    }
    rankings |= _cross_fitted(choosing, rank, cited)
    rare = set(citations["corpusid"].filter(pc.less_equal(citations["citations"], RARE)).to_pylist())
    rows = [
        row for name, scores in rankings.items() for row in _recalls(name, choosing.ranked_by(scores), searches, rare)
    ]
    balanced = _balanced(rows)
    discount = {"more": 0.0, "less": max(LEAST_OF_LESS, 2 * balanced)}.get(settings.known, balanced)
    ranked_by = fitted.discounted(discount)
    chosen = [{**row, "chosen": row["ranking"] == of_discount(balanced)} for row in rows]
    write_table(selection, "selection_scores", _rows(chosen))
    write_json(weights, ranked_by.as_json(discount, queries))
    tested = known.where(pc.equal(known.table["split"], "test"))
    scores = pa.array(ranked_by.scores(tested).astype(np.float32))
    write_table(output, "answers", tested.table.select(["query", "paper", "is_found"]).append_column("score", scores))


def _rank(rank: Any, known: Known, cited: pa.Table) -> tuple[Any, int]:
    """How an index ranks, and how many queries its weights are learned from: with too few, by the sum."""
    if rank != "learned":
        return rank, 0
    queries = len(set(known.table.filter(pa.array(_is_cited(known, cited)))["query"].to_pylist()))
    if queries >= LEAST_QUERIES:
        return rank, queries
    report(
        f"{queries} held-out papers choose between settings and find a cited paper; weights are learned from "
        f"{LEAST_QUERIES} or more. The sum of what is known ranks instead. Hold out more papers, or raise "
        "`choosing` of the benchmark."
    )
    return "sum", 0


def _cross_fitted(known: Known, rank: Any, cited: pa.Table) -> dict[str, Numbers]:
    """The scores by each discount of queries that choose between settings, by weights fitted on the other half."""
    scores = {of_discount(each): np.zeros(len(known.table)) for each in DISCOUNTS}
    is_second = np.unique(known.table["query"].to_numpy(), return_inverse=True)[1] % 2 == 1
    for half in (is_second, ~is_second) if len(is_second) else ():
        fitted, scored = fit(known.where(pa.chunked_array([~half])), rank, cited), known.where(pa.chunked_array([half]))
        for each in DISCOUNTS:
            scores[of_discount(each)][half] = fitted.discounted(each).scores(scored)
    return scores


def fit(known: Known, rank: Any, cited: pa.Table) -> Weights:
    """The weights of what is known."""
    means, deviations = np.zeros(len(known.names)), np.ones(len(known.names))
    for at, column in enumerate(known.values.T):
        if len(there := column[~np.isnan(column)]) and there.std() > 0:
            means[at], deviations[at] = there.mean(), there.std()
    if rank == "learned":
        standard = np.nan_to_num((known.values - means) / deviations)
        return Weights(rank, known.names, means, deviations, _logistic(standard, _is_cited(known, cited)))
    given = rank if isinstance(rank, Mapping) else None
    if rank == "reciprocal":
        means, deviations = np.zeros(len(known.names)), np.ones(len(known.names))
    signals = [_signal_of(name) for name in known.names]
    weight_of = {name: 0.0 if name == UNLINKED else 1.0 for name in signals} if given is None else given
    weights = np.array([weight_of.get(name, 0.0) / signals.count(name) for name in signals])
    return Weights("sum" if given is not None else rank, known.names, means, deviations, weights)


def of_discount(discount: float) -> str:
    """What the ranking with a discount is called."""
    return f"index, discount {discount:g}"


def cosine_of(model: str) -> str:
    """What the cosine by a model is called."""
    return f"cosine {model}"


def _signal_of(name: str) -> str:
    """What a configuration calls a part of what is known: the name of a model, words, votes, citations."""
    return VOTES if name in OF_VOTES else name.removeprefix("cosine ")


def _is_of_text(name: str) -> bool:
    return name == WORDS or name.startswith("cosine ")


def _is_cited(known: Known, cited: pa.Table) -> NDArray[np.bool_]:
    """Which candidates are cited by their query. Co-cited papers teach to prefer what everybody cites, and find neither
    more of themselves nor more of the others."""
    pairs = {*zip(cited["query"].to_pylist(), cited["paper"].to_pylist(), strict=True)}
    candidates = zip(known.table["query"].to_pylist(), known.table["paper"].to_pylist(), strict=True)
    return np.array([pair in pairs for pair in candidates], np.bool_)


def _logistic(values: Numbers, is_relevant: NDArray[np.bool_]) -> Numbers:
    """The weights of a logistic regression."""
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(tol=1e-8, max_iter=1000).fit(values, is_relevant)
    weights: Numbers = fitted.coef_[0]
    return weights


def _reciprocal_ranks(known: Known) -> Numbers:
    """1 / (60 + the rank of a candidate among those that are found for its query); 0 for what is not known."""
    values, is_found, starts = known.values, known.table["is_found"].to_numpy(), known.starts()
    ranks = np.full(values.shape, np.nan)
    for start, end in zip(starts, [*starts[1:], len(values)], strict=True):
        for at, column in enumerate(values[start:end].T):
            rising = np.sort(column[is_found[start:end] & ~np.isnan(column)])
            above = len(rising) - np.searchsorted(rising, column, side="right")
            ranks[start:end, at] = np.where(np.isnan(column), np.inf, above + 1)
    return 1 / (CONSTANT + ranks)


def _recalls(name: str, first: Mapping[int, Any], searches: pa.Table, rare: set[int]) -> list[dict[str, Any]]:
    """The recall of a ranking for each task, of all relevant papers and of the rare ones."""
    relevant: dict[str, dict[int, set[int]]] = {}
    for row in searches.select(["task", "query", "paper"]).to_pylist():
        relevant.setdefault(row["task"], {}).setdefault(row["query"], set()).add(row["paper"])

    def recall(of_task: Mapping[int, set[int]]) -> float | None:
        shares = [
            len(papers.intersection(first[query].tolist() if query in first else ())) / min(FIRST, len(papers))
            for query, papers in of_task.items()
            if papers
        ]
        return 100 * float(np.mean(shares)) if shares else None

    return [
        {
            "task": task,
            "ranking": name,
            "recall": recall(of_task),
            "recall_rare": recall({query: papers & rare for query, papers in of_task.items()}),
            "queries": len(of_task),
        }
        for task, of_task in relevant.items()
    ]


def _balanced(rows: Sequence[Mapping[str, Any]]) -> float:
    """The first discount whose recall of rare papers is no worse than that of any list alone, over all tasks, or else
    that with the most."""

    def total(name: str) -> float:
        return sum(row["recall_rare"] or 0 for row in rows if row["ranking"] == name)

    lists = {row["ranking"] for row in rows if _is_of_text(row["ranking"])}
    least = max((total(name) for name in lists), default=0)
    reached = {discount: total(of_discount(discount)) for discount in DISCOUNTS}
    good = [discount for discount, recall in reached.items() if recall >= least]
    return good[0] if good else max(reached, key=lambda discount: reached[discount])


def _rows(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows of the table selection_scores in its order."""
    ordered = sorted(rows, key=lambda row: (row["task"], row["ranking"]))
    names = ("task", "ranking", "recall", "recall_rare", "queries", "chosen")
    types = (pa.string(), pa.string(), pa.float64(), pa.float64(), pa.int64(), pa.bool_())
    columns = {name: pa.array([row[name] for row in ordered], of) for name, of in zip(names, types, strict=True)}
    return pa.table(columns)
