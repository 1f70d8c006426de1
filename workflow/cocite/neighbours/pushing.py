"""Personalised PageRank of the papers around a query, by pushing what a walk has left along links.

A walk starts at the query. At each step it stops with the chance `restart`, or goes along a link of the paper where it
is, any of them or in proportion to their weights. The chances that it stops at each paper, which sum to 1, are PageRank
with restarts at the query alone (Page et al., 1999; Haveliwala, 2002). Andersen, Chung and Lang (2006, "Local graph
partitioning using PageRank vectors", section 2) compute them by *pushes*: each paper has a chance, which is certain,
and a residual, the chance that a walk is there and has not been followed yet. To push a paper is to add the share
`restart` of its residual to its chance and to spread the rest over its links.

A paper is pushed while its residual exceeds tolerance × its degree. A push moves at least restart × tolerance × degree
into chances, so that at most 1 / (restart × tolerance) links are looked at, whatever the size of the graph. The degree
is the number of links or the sum of their weights, which a caller measures in mean weights by dividing the tolerance.
Of the residual that is left, the share that would stop at once is added to the chance. As links go both ways,

    0 ≤ true chance − chance found ≤ tolerance × degree of the paper,

because degree(u) × chance of v from u = degree(v) × chance of u from v. The papers above the limit are pushed in
rounds, all by their residuals at the start of the round. So papers with the same links have the same chance, and the
result does not depend on the order of papers but for the rounding of float64.

The score is the chance, or the symmetric one, chance × √(degree of the query / degree of the paper). That is the same
from either of two papers to the other, at most 1, and what walks on the symmetrically normalised adjacency matrix give
(Gasteiger et al., 2019, "Predict then propagate", equation 3).
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cocite.config.walks import WalkSettings
from cocite.neighbours.adjacency import Adjacency, Places
from cocite.neighbours.distances import FARTHEST, Keys, key_of

BYTES_OF_PAPER = 36
"""Memory of a desk, for each paper of the graph."""
MARGIN = 1e-5
"""Share of a score that is more than its logarithm loses as float32, which has 24 bits for numbers below 32."""


class Desk(NamedTuple):
    """The memory that one query at a time works with; chances and residuals are 0 in between."""

    chances: NDArray[np.float64]
    residuals: NDArray[np.float64]
    touched: Places
    """Papers with a chance or a residual, from the query on."""
    frontier: Places
    """Papers that are pushed in this round."""
    following: Places
    """Papers that are pushed in the next one."""
    shares: NDArray[np.float64]
    """What each paper that is pushed sends along a link of weight 1."""


def new_desk(papers: int) -> Desk:
    """A desk for a graph of so many papers; the system gives it memory only as far as walks reach."""
    return Desk(
        chances=np.zeros(papers),
        residuals=np.zeros(papers),
        touched=np.zeros(papers, dtype=np.int32),
        frontier=np.zeros(papers, dtype=np.int32),
        following=np.zeros(papers, dtype=np.int32),
        shares=np.zeros(papers),
    )


def chances_around(
    graph: Adjacency, query: int, restart: float, tolerance: float, desk: Desk
) -> tuple[Places, NDArray[np.float64]]:
    """The papers that walks from a query reach, the query first, and the chances that they stop there."""
    reached = desk.touched[: _push(graph, query, restart, tolerance, desk)].copy()
    chances = desk.chances[reached] + restart * desk.residuals[reached]
    desk.chances[reached] = desk.residuals[reached] = 0
    return reached, chances


def keys_around(
    graph: Adjacency, query: int, settings: WalkSettings, tolerance: float, desk: Desk, ranked: NDArray[np.bool_]
) -> Keys:
    """The keys of the k papers with the highest scores around a query, the highest first, `FARTHEST` behind them.

    `tolerance` is that of the settings or, where links have weights, for degrees that are sums of these. `ranked` says
    of each paper whether it can have a rank; the query never has one. A key holds minus the logarithm of the score and
    the place of the paper, so that ties are broken by place, and so by id.
    """
    papers, scores = (each[1:] for each in chances_around(graph, query, settings.restart, tolerance, desk))
    can, k = ranked[papers], settings.k
    papers, scores = papers[can], scores[can]
    if settings.score == "symmetric":
        scores *= np.sqrt(graph.degrees[query] / graph.degrees[papers])
    if len(scores) > k:
        near = scores >= np.partition(scores, len(scores) - k)[len(scores) - k] * (1 - MARGIN)
        papers, scores = papers[near], scores[near]
    keys = np.sort(_keys(papers, scores))[:k]
    return np.concatenate([keys, np.full(k - len(keys), FARTHEST, dtype=np.uint64)])


@njit(nogil=True, cache=True)
def _push(graph, query, restart, tolerance, desk):  # type: ignore[no-untyped-def]
    """Push residuals, 1 at the query, until none exceeds tolerance × degree; return how many papers were touched."""
    starts, others, weights, degrees = graph.starts, graph.others, graph.weights, graph.degrees
    chances, residuals, shares = desk.chances, desk.residuals, desk.shares
    frontier, following = desk.frontier, desk.following
    residuals[query] = 1.0
    desk.touched[0] = frontier[0] = query
    reached, pushed = 1, 1
    while pushed:
        for at in range(pushed):
            paper = frontier[at]
            shares[at] = (1 - restart) * residuals[paper] / degrees[paper]
            chances[paper] += restart * residuals[paper]
            residuals[paper] = 0.0
        ahead = 0
        for at in range(pushed):
            for link in range(starts[frontier[at]], starts[frontier[at] + 1]):
                other = others[link]
                before, limit = residuals[other], tolerance * degrees[other]
                if before == 0.0 and chances[other] == 0.0:
                    desk.touched[reached] = other
                    reached += 1
                after = before + (shares[at] * weights[link] if len(weights) else shares[at])
                residuals[other] = after
                if before <= limit < after:
                    following[ahead] = other
                    ahead += 1
        frontier, following, pushed = following, frontier, ahead
    return reached


@njit(nogil=True, cache=True)
def _keys(papers, scores):  # type: ignore[no-untyped-def]
    keys = np.empty(len(papers), dtype=np.uint64)
    for at in range(len(papers)):
        keys[at] = key_of(papers[at], -np.log(scores[at]))
    return keys
