"""Rank the papers around each query by random walks on a graph: neighbours without an embedding and without an index.

A walk stops at each step with the probability `restart`, or follows a link, at random or in proportion to the weights.
The probabilities of stopping are PageRank with restarts only at the query (Haveliwala, 2002), computed by *pushes*
(Andersen, Chung and Lang, 2006, "Local graph partitioning using PageRank vectors", section 2); they are too small by at
most tolerance × degree of the paper. The score is the probability, or probability × √(degree of the query / degree of
the paper) (Gasteiger et al., 2019, "Predict then propagate", equation 3); the distance is minus its natural logarithm.
"""

from itertools import chain
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numba import njit
from numpy.typing import NDArray

from cocite.config.embeddings import WalkSettings
from cocite.config.entries import as_json
from cocite.config.settings import GivenAsJson
from cocite.core.adjacency import Adjacency, Places, open_adjacency
from cocite.core.checkpoints import remove_state, sampled_fingerprint
from cocite.core.options import MemoryMb, Omissions, OnlyPapers, Output, Queries, Shard, State, Threads
from cocite.core.progress import progress_bar
from cocite.core.tables.files import write_omissions
from cocite.core.written_ids import Ids, look_up
from cocite.neighbours.nearest import FARTHEST, Keys, Workers, key_of, start_workers
from cocite.neighbours.searching import RESERVED_MB, check_papers, queries_of_shard, write_neighbours
from cocite.neighbours.vectors import papers_with_text

BYTES_OF_PAPER = 36
"""Memory of a workspace, for each paper of the graph."""
MARGIN = 1e-5
"""Share of a score that is more than its logarithm loses as float32, which has 24 bits for numbers below 32."""
QUERIES_SAVED = 2000
"""Largest number of queries of a group, after which a killed job resumes."""
NOT_LINKED = "queries that no walk starts from: they have no edge or, if asked for, no text"
NOT_REACHED = "neighbours, up to k a query, that walks do not lead to: a smaller tolerance leads to more"


class PushWorkspace(NamedTuple):
    """The memory that one query at a time works with; chances and residuals are 0 in between."""

    chances: NDArray[np.float64]
    residuals: NDArray[np.float64]
    touched: Places
    """Papers with a chance or a residual, from the query on."""
    frontier: Places
    """Papers that are pushed in this round; `following` are those of the next one."""
    following: Places
    shares: NDArray[np.float64]
    """What each paper that is pushed sends along a link of weight 1."""


def walk_neighbours(
    adjacency: Annotated[Path, typer.Option(help="Folder of the links of a graph.")],
    queries: Queries,
    settings: GivenAsJson[WalkSettings],
    *,
    papers: OnlyPapers = (),
    shard: Shard = (0, 1),
    memory_mb: MemoryMb,
    threads: Threads,
    state: State,
    output: Output,
    omissions: Omissions,
) -> None:
    """Write a shard of the table `neighbours`, and what was left out, counted by reason.

    Resumes after the last finished group of queries in `state`, if it belongs to the same walks, and removes it at the
    end. Raises `InputError` if k does not leave a choice among the papers, or a paper that is kept out has a link.
    """
    graph = open_adjacency(adjacency)
    ranked = np.full(len(graph.ids), not papers)
    for ids in chain.from_iterable(map(papers_with_text, papers)):
        places, are_there = look_up(graph.ids, ids)
        ranked[places[are_there]] = True
    papers_ranked, has_link = int(ranked.sum()), lambda ids: look_up(graph.ids, ids)[1]
    check_papers(adjacency, has_link, papers_ranked, queries, settings.k, "walks.<name>.k")
    asked = queries_of_shard(queries, shard)
    places, are_linked = look_up(graph.ids, asked)
    found = places[are_linked & ranked[places]].astype(np.int64)
    left_mb = memory_mb - RESERVED_MB - len(graph.ids) / 1e6
    threads = threads_for(threads, len(graph.ids), left_mb)
    read = sampled_fingerprint([adjacency, queries, *papers])
    with start_workers(threads) as workers:
        rows = write_neighbours(
            found,
            queries_at_once(settings.k, left_mb - threads * BYTES_OF_PAPER * len(graph.ids) / 1e6),
            lambda group, _: _walk(graph, found[group], settings, ranked, workers),
            lambda numbers: graph.ids[numbers],
            depends_on={**as_json(settings), "shard": list(shard), "inputs": read},
            state=state,
            output=output,
        )
    write_omissions(omissions, {NOT_LINKED: len(asked) - len(found), NOT_REACHED: len(found) * settings.k - rows})
    remove_state(state)


def threads_for(threads: int, papers: int, memory_mb: float) -> int:
    """The number of threads for whose workspaces there is memory; at least one."""
    return max(1, min(threads, int(memory_mb * 1e6 // (BYTES_OF_PAPER * papers))))


def queries_at_once(k: int, memory_mb: float) -> int:
    """How many queries go together: as many as there is memory for their keys, with a copy, but not too many."""
    return max(1, min(QUERIES_SAVED, int(memory_mb * 1e6 // (16 * k))))


def _walk(graph: Adjacency, queries: Ids, settings: WalkSettings, ranked: NDArray[np.bool_], workers: Workers) -> Keys:
    """The keys of the neighbours of each query, queries × k."""
    workspaces = [new_push_workspace(len(graph.ids)) for _ in range(workers.threads)]
    keys = np.empty((len(queries), settings.k), dtype=np.uint64)
    tolerance = settings.tolerance / float(graph.degrees.sum() / len(graph.others))  # in mean weights
    with progress_bar(of=f"{len(queries):,} queries", unit="queries", total=len(queries)) as bar:

        def take(row: int) -> None:
            workspace = workspaces.pop()
            keys[row] = keys_around(graph, int(queries[row]), settings, tolerance, workspace, ranked)
            workspaces.append(workspace)

        for _ in workers.map(take, range(len(queries))):
            bar.update()
    return keys


def new_push_workspace(papers: int) -> PushWorkspace:
    """A workspace for a graph of so many papers; the system gives it memory only as far as walks reach."""
    chances, residuals, shares = (np.zeros(papers) for _ in range(3))
    touched, frontier, following = (np.zeros(papers, dtype=np.int32) for _ in range(3))
    return PushWorkspace(chances, residuals, touched, frontier, following, shares)


def chances_around(
    graph: Adjacency, query: int, restart: float, tolerance: float, workspace: PushWorkspace
) -> tuple[Places, NDArray[np.float64]]:
    """The papers that walks from a query reach, the query first, and the chances that they stop there."""
    reached = workspace.touched[: _push(graph, query, restart, tolerance, workspace)].copy()
    chances = workspace.chances[reached] + restart * workspace.residuals[reached]
    workspace.chances[reached] = workspace.residuals[reached] = 0
    return reached, chances


def keys_around(
    graph: Adjacency,
    query: int,
    settings: WalkSettings,
    tolerance: float,
    workspace: PushWorkspace,
    ranked: NDArray[np.bool_],
) -> Keys:
    """The keys of the k papers with the highest scores around a query, highest first, padded with `FARTHEST`: minus the
    logarithm of the score, and the position of the paper. `tolerance` is that of the settings over the mean weight of a
    link, as degrees are sums of weights. `ranked` are the papers that can have a rank; the query never has one."""
    papers, scores = (each[1:] for each in chances_around(graph, query, settings.restart, tolerance, workspace))
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
def _push(graph, query, restart, tolerance, workspace):  # type: ignore[no-untyped-def]
    """Push residuals, 1 at the query, until none exceeds tolerance × degree; return how many papers were touched. A
    residual is the chance that a walk is at a paper and was not followed yet. To push it is to add the share `restart`
    to the chance that the walk stops there, and to spread the rest over the links. A degree is the number of links, or
    the sum of their weights (in mean weights). Papers are pushed in rounds, all by their residuals at the start of the
    round, so that their order affects only the rounding."""
    starts, others, weights, degrees = graph.starts, graph.others, graph.weights, graph.degrees
    chances, residuals, shares = workspace.chances, workspace.residuals, workspace.shares
    frontier, following = workspace.frontier, workspace.following
    residuals[query] = 1.0
    workspace.touched[0] = frontier[0] = query
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
                    workspace.touched[reached] = other
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
