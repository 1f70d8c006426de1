"""Metrics of rankings as the released evaluation of a benchmark has them, where trec_eval has others or none.

Each takes the grades of the candidates of one query, the nearest first, and the smallest grade that is relevant, and
gives a value between 0 and 1.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Grades = NDArray[np.float64]


def _precision_to_the_last(grades: Grades, relevant_from: int) -> float:
    """The precision at the rank of the last relevant candidate, which CSFCube calls R-precision."""
    places = np.flatnonzero(grades >= relevant_from)
    return len(places) / (places[-1] + 1) if len(places) else 0.0


def _ndcg_of_two_firsts(grades: Grades, depth: int) -> float:
    """nDCG at a depth by linear gains, the first two ranks counting alike (Järvelin & Kekäläinen, 2000)."""
    return _ndcg(grades, np.log2(np.maximum(np.arange(1, depth + 1), 2)))


def _ndcg_of_a_tenth(gains: Grades) -> float:
    """nDCG at a tenth of the pool, by the usual discounts."""
    return _ndcg(gains, np.log2(np.arange(2, len(gains) // 10 + 2)))


def _ndcg(gains: Grades, discounts: Grades) -> float:
    """The discounted gains of the first candidates, as a share of the best that could be there; 0 where that is 0."""
    depth = len(discounts)
    gained, ideal = ((order[:depth] / discounts).sum() for order in (gains, -np.sort(-gains)))
    return float(gained / ideal) if ideal else 0.0


def _reciprocal_rank_of_the_best(grades: Grades) -> float:
    """The reciprocal rank, among the first ten, of the first candidate that has the highest grade of all."""
    places = np.flatnonzero(grades[:10] == grades.max())
    return 1 / (1 + float(places[0])) if len(places) else 0.0


RELEASED: Mapping[str, Callable[[Grades, int], float]] = {
    "Rprec_csfcube": _precision_to_the_last,
    "ndcg_csfcube": lambda grades, _: _ndcg_of_two_firsts(grades, len(grades)),
    "ndcg_20_csfcube": lambda grades, _: _ndcg_of_two_firsts(grades, min(20, len(grades))),
    "ndcg_20%_csfcube": lambda grades, _: _ndcg_of_two_firsts(grades, len(grades) // 5),
    "ndcg_10%": lambda grades, _: _ndcg_of_a_tenth(grades),
    "ndcg_10%_exp": lambda grades, _: _ndcg_of_a_tenth(2**grades),
    "recip_rank_10_best": lambda grades, _: _reciprocal_rank_of_the_best(grades),
}
"""Those of CSFCube (Mysore et al., 2021), and of DORIS-MAE (Wang et al., 2023)."""
