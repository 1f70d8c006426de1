"""Rank the papers around each query by random walks on a graph: neighbours without an embedding and without an index.

In come the links of a graph (`adjacency.py`) and the table `queries`; out goes a shard of `neighbours`, as a search in
an embedding writes it. The distance is minus the natural logarithm of a paper's score (`pushing.py`): 0 for a score of
1, and larger the lower the score is, with as many digits for low scores as for high ones. Each query is worked out by
itself, by one thread, so that results depend neither on shards nor on threads. A paper that is kept out has no edge; if
it has a link all the same, the walks stop, because what they would find would be a leak.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray

from cocite.config.entries import as_json
from cocite.config.settings import GivenAsJson
from cocite.config.walks import WalkSettings
from cocite.core.checkpoints import remove_state, sampled_fingerprint
from cocite.core.errors import InputError
from cocite.core.id_sets import Ids, check_ids
from cocite.core.lookup import look_up
from cocite.core.options import MemoryMb, Omissions, OnlyPapers, Output, Queries, Shard, State, Threads
from cocite.core.progress import progress_bar
from cocite.core.tables.files import scan_table, write_omissions, write_table
from cocite.core.tables.splits import read_queries
from cocite.neighbours.adjacency import Adjacency, open_adjacency
from cocite.neighbours.checkpoints import Checkpoint, open_search, search_groups
from cocite.neighbours.distances import Keys
from cocite.neighbours.pools import Workers, start_workers
from cocite.neighbours.pushing import BYTES_OF_PAPER, keys_around, new_desk
from cocite.neighbours.rows import check_shard, count_papers, rows_of

RESERVED_MB = 400
"""Memory for the program and what it writes."""
QUERIES_SAVED = 2000
"""Queries of a group at most, after which a killed job resumes."""
NOT_LINKED = "queries that no walk starts from: they have no edge or, if asked for, no text"
NOT_REACHED = "neighbours, up to k a query, that walks do not lead to: a smaller tolerance leads to more"


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
    end. Raises `InputError` where k does not leave a choice among the papers, or a paper that is kept out has a link.
    """
    check_shard(shard)
    graph = open_adjacency(adjacency)
    ranked = _with_text(graph, papers) if papers else np.ones(len(graph.ids), dtype=np.bool_)
    check_k(settings.k, int(ranked.sum()), adjacency)
    count_papers([graph.ids], queries, adjacency)
    asked = read_queries(queries)["corpusid"].to_numpy()
    asked = asked[asked % shard[1] == shard[0]]
    places, are_linked = look_up(graph.ids, asked)
    found = places[are_linked & ranked[places]].astype(np.int64)
    left_mb = memory_mb - RESERVED_MB - len(graph.ids) / 1e6
    threads = threads_for(threads, len(graph.ids), left_mb)
    room = queries_at_once(settings.k, left_mb - threads * BYTES_OF_PAPER * len(graph.ids) / 1e6)
    read = sampled_fingerprint([adjacency, queries, *papers])
    size = open_search(state, {**as_json(settings), "shard": list(shard), "inputs": read}, room)
    with start_workers(threads) as workers:

        def walk(start: int, _: Checkpoint) -> Keys:
            return _walk(graph, found[start : start + size], settings, ranked, workers)

        files = search_groups(state, range(0, len(found), size), walk)
    rows = write_table(output, "neighbours", rows_of(found, files, size, lambda numbers: graph.ids[numbers]))
    write_omissions(omissions, {NOT_LINKED: len(asked) - len(found), NOT_REACHED: len(found) * settings.k - rows})
    remove_state(state)


def check_k(k: int, papers: int, adjacency: Path) -> None:
    """Raise `InputError` unless there are more than k papers for each query."""
    if k >= papers - 1:
        raise InputError(
            f"walks.<name>.k is {k}, but {adjacency} holds {papers} papers to be ranked; k must be smaller than "
            f"{max(papers - 1, 0)}."
        )


def threads_for(threads: int, papers: int, memory_mb: float) -> int:
    """How many of the threads there is memory for, each with a desk of its own; one at least."""
    return max(1, min(threads, int(memory_mb * 1e6 // (BYTES_OF_PAPER * papers))))


def queries_at_once(k: int, memory_mb: float) -> int:
    """How many queries go together: as many as there is memory for their keys, with a copy, but not too many."""
    return max(1, min(QUERIES_SAVED, int(memory_mb * 1e6 // (16 * k))))


def _walk(
    graph: Adjacency, queries: NDArray[np.int64], settings: WalkSettings, ranked: NDArray[np.bool_], workers: Workers
) -> Keys:
    """The keys of the neighbours of each query, queries × k."""
    desks = [new_desk(len(graph.ids)) for _ in range(workers.threads)]
    keys = np.empty((len(queries), settings.k), dtype=np.uint64)
    tolerance = settings.tolerance / graph.mean_weight
    with progress_bar(of=f"{len(queries):,} queries", unit="queries", total=len(queries)) as bar:

        def take(row: int) -> None:
            desk = desks.pop()
            keys[row] = keys_around(graph, int(queries[row]), settings, tolerance, desk, ranked)
            desks.append(desk)

        for _ in workers.map(take, range(len(queries))):
            bar.update()
    return keys


def _with_text(graph: Adjacency, papers: Sequence[Path]) -> NDArray[np.bool_]:
    """Whether each paper of the graph has a text."""
    have_text = np.zeros(len(graph.ids), dtype=np.bool_)
    for bucket in papers:
        for batch in scan_table(bucket, "papers").to_batches(columns=["corpusid"], filter=pc.field("has_text")):
            ids: Ids = batch.column("corpusid").to_numpy()
            check_ids(ids, bucket)
            places, are_there = look_up(graph.ids, ids)
            have_text[places[are_there]] = True
    return have_text
