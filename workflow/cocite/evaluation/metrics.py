"""The metrics of tasks, × 100 but for `f1` and `kendall_tau`.

Of F1, B³, Kendall's τ and any mean, there is a `Statistic`: the metric as a function of how often each query or
document counts. A draw of a bootstrap is a row of such counts, so that many draws are one product of matrices.
Rankings have what trec_eval measures, or the released evaluation of a benchmark.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pytrec_eval
from numpy.typing import NDArray

from cocite.config.tasks import OVER_FOLDS
from cocite.evaluation.benchmark import Judgements
from cocite.evaluation.scored import UnscorableError

Counts = NDArray[np.float64]
"""draws × items: how often each item counts."""
Values = NDArray[np.float64]
Statistic = Callable[[Counts], Values]
"""The value × 100 of a model on each draw."""
Ranked = Mapping[str, Mapping[str, float]]
"""The candidates of each query with their similarity; more is nearer."""
Value = TypeVar("Value")

RECIP_RANK_CUT = re.compile(r"recip_rank_(\d+)")
"""The reciprocal rank of the first relevant candidate among the first ten, say, which MRR@10 is the mean of."""
ADJUSTED = "_adjusted"
"""How the name of a metric ends whose mean over the queries is adjusted for the propensity of their clicks."""
DOCUMENTS_AT_ONCE = 512
ROUNDING = 1e-9


def on_all(statistic: Statistic, items: int) -> float:
    """The value of a statistic where each of its items counts once."""
    return float(statistic(np.ones((1, items)))[0])


def mean_statistic(values: Values, weights: Values) -> Statistic:
    """The weighted mean of a value for each item."""
    return lambda counts: (counts @ (weights * values)) / (counts @ weights)


def f1(truth: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> float:
    """The mean F1, 0 to 1, of the classes that occur or are predicted; both sides are documents × classes."""
    hits, sizes = (truth & predicted).sum(axis=0), truth.sum(axis=0) + predicted.sum(axis=0)
    return float(_f1_of_counts(hits[sizes > 0], sizes[sizes > 0]))


def f1_statistic(
    expected: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], positive: str | None = None
) -> Statistic:
    """F1 of one class, or the mean over the classes that a draw has or that are predicted in it."""
    names = sorted({name for labels in (*expected, *predicted) for name in labels}) if positive is None else [positive]
    column = {name: number for number, name in enumerate(names)}
    truth, found = (np.zeros((len(labels), len(names))) for labels in (expected, predicted))
    for side, labels in ((truth, expected), (found, predicted)):
        for row, of_document in enumerate(labels):
            side[row, [column[name] for name in of_document if name in column]] = 1
    hits, sizes = truth * found, truth + found
    return lambda counts: _f1_of_counts(counts @ hits, counts @ sizes, 100)


def _f1_of_counts(hits: NDArray[Any], sizes: NDArray[Any], scale: int = 1) -> NDArray[Any]:
    """The mean F1 of the classes that occur (the last axis), from their hits, and their documents plus predictions."""
    total = (2 * hits / np.maximum(sizes, 1)).sum(axis=-1)
    return scale * total / np.maximum((sizes > 0).sum(axis=-1), 1)


def b3_statistic(expected: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], metric: str) -> Statistic:
    """B³ of signatures by author and cluster: b3_precision, b3_recall, or b3_f1. Draws do not change the clusters."""
    authors, clusters = (np.unique([name for [name] in of], return_inverse=True)[1] for of in (expected, predicted))
    _, pair, shared = np.unique(np.stack([authors, clusters]), axis=1, return_inverse=True, return_counts=True)
    both = 100 * shared[pair.ravel()]
    ones = np.ones(len(expected))
    precision = mean_statistic(both / np.bincount(clusters)[clusters], ones)
    recall = mean_statistic(both / np.bincount(authors)[authors], ones)

    def harmonic(counts: Counts) -> Values:
        found, covered = precision(counts), recall(counts)
        return 2 * found * covered / (found + covered)

    return {"b3_precision": precision, "b3_recall": recall, "b3_f1": harmonic}[metric]


def kendall_tau(expected: Values, predicted: Values) -> float:
    """Kendall's τ-b, between -1 and 1; 0 if it is undefined because one side is constant."""
    # SciPy's statistics take half a second to import, which rankings do not need.
    from scipy.stats import kendalltau

    tau = float(kendalltau(expected, predicted).statistic)
    return 0.0 if np.isnan(tau) else tau


def tau_statistic(expected: Values, predicted: Values) -> Statistic:
    """Kendall's τ-b, linear in the counts around its value on all items. τ is a mean over pairs of items, so to first
    order a draw changes it by twice the change of the mean over items of each one's agreement with all others
    (Hoeffding, 1948, "A Class of Statistics with Asymptotically Normal Distribution"); ties are taken as they are."""
    agreement, pairs = np.zeros(len(expected)), np.zeros(2)
    for start in range(0, len(expected), DOCUMENTS_AT_ONCE):
        rows = slice(start, start + DOCUMENTS_AT_ONCE)
        of_expected, of_predicted = (np.sign(side[rows, None] - side[None, :]) for side in (expected, predicted))
        agreement[rows] = (of_expected * of_predicted).sum(axis=1)
        pairs += [np.count_nonzero(of_expected), np.count_nonzero(of_predicted)]
    untied = np.sqrt(pairs.prod())
    tau = agreement.sum() / untied if untied else 0.0
    each = 100 * (2 * agreement * len(expected) / untied - tau) if untied else np.zeros(len(expected))
    return mean_statistic(each, np.ones(len(expected)))


def measure_rankings(
    judgements: Judgements, run: Ranked, metrics: Sequence[str], relevant_from: int = 1
) -> dict[str, dict[str, float]]:
    """Each metric of each ranked query, × 100; candidates without a score count as judged. For metrics without grades,
    candidates with a grade of at least `relevant_from` are relevant. Raises `UnscorableError` if no query was ranked.

    trec_eval keeps scores in single precision, in which near ones become ties; so it gets their ranks instead. It
    breaks ties by name, and ids tell the age of a paper; so candidates are named by a digest of query and candidate."""
    if not run:
        raise UnscorableError("No query of the task has a vector, and a candidate with one.")
    judged = {query: _anonymous(query, judgements[query]) for query in run}
    ranked = {}
    for query, scores in run.items():
        ranks = np.unique(list(scores.values()), return_inverse=True)[1]  # 0 for the lowest; equal scores share one
        ranked[query] = _anonymous(query, dict(zip(scores, ranks.astype(float).tolist(), strict=True)))
    asked = {metric: metric.removesuffix(OVER_FOLDS) for metric in metrics}
    measures = {
        metric: "recip_rank" if RECIP_RANK_CUT.fullmatch(metric) else metric.removesuffix(ADJUSTED)
        for metric in asked.values()
        if metric not in RELEASED
    }
    evaluator = pytrec_eval.RelevanceEvaluator(judged, set(measures.values()), relevance_level=relevant_from)
    of_queries = evaluator.evaluate(ranked)
    found = {metric: {query: 100 * of_queries[query][name] for query in run} for metric, name in measures.items()}
    for metric in found:
        if cut := RECIP_RANK_CUT.fullmatch(metric):  # trec_eval has the reciprocal rank at full depth only.
            least = 100 / (int(cut[1]) + 1) + ROUNDING
            found[metric] = {query: value if value > least else 0.0 for query, value in found[metric].items()}
    for metric in set(asked.values()) & RELEASED.keys():
        for query, of_query in ranked.items():
            in_order = sorted(of_query, key=lambda name: (-of_query[name], name))
            grades = np.array([judged[query][name] for name in in_order], dtype=float)
            found.setdefault(metric, {})[query] = 100 * RELEASED[metric](grades, relevant_from)
    return {metric: found[name] for metric, name in asked.items()}


def _anonymous(query: str, values: Mapping[str, Value]) -> dict[str, Value]:
    return {_digest(query, candidate): value for candidate, value in values.items()}


def _digest(query: str, candidate: str) -> str:
    return hashlib.blake2b(f"{query}\x1f{candidate}".encode(), digest_size=12).hexdigest()


def _precision_to_the_last(grades: Values, relevant_from: int) -> float:
    """The precision at the rank of the last relevant candidate, which CSFCube calls R-precision."""
    places = np.flatnonzero(grades >= relevant_from)
    return len(places) / (places[-1] + 1) if len(places) else 0.0


def _ndcg(gains: Values, depth: int, *, two_firsts: bool = False) -> float:
    """nDCG at a depth by the usual discounts, or with the first two ranks alike (Järvelin & Kekäläinen, 2000)."""
    ranks = np.arange(1, depth + 1)
    discounts = np.log2(np.maximum(ranks, 2) if two_firsts else ranks + 1)
    gained, ideal = ((order[:depth] / discounts).sum() for order in (gains, -np.sort(-gains)))
    return float(gained / ideal) if ideal else 0.0


def _reciprocal_rank_of_the_best(grades: Values) -> float:
    """The reciprocal rank, among the first ten, of the first candidate that has the highest grade of all."""
    places = np.flatnonzero(grades[:10] == grades.max())
    return 1 / (1 + float(places[0])) if len(places) else 0.0


RELEASED: Mapping[str, Callable[[Values, int], float]] = {
    "Rprec_csfcube": _precision_to_the_last,
    "ndcg_csfcube": lambda grades, _: _ndcg(grades, len(grades), two_firsts=True),
    "ndcg_20_csfcube": lambda grades, _: _ndcg(grades, min(20, len(grades)), two_firsts=True),
    "ndcg_20%_csfcube": lambda grades, _: _ndcg(grades, len(grades) // 5, two_firsts=True),
    "ndcg_10%": lambda grades, _: _ndcg(grades, len(grades) // 10),
    "ndcg_10%_exp": lambda grades, _: _ndcg(2**grades, len(grades) // 10),
    "recip_rank_10_best": lambda grades, _: _reciprocal_rank_of_the_best(grades),
}
"""The metrics of CSFCube (Mysore et al., 2021), and of DORIS-MAE (Wang et al., 2023).

Each takes the grades of the candidates of one query, the nearest first, and the smallest grade that is relevant, and
gives a value between 0 and 1.
"""
