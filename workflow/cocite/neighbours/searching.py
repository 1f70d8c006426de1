"""Search the k nearest neighbours of each query in a graph embedding, and measure what an approximate index misses.

Unlike `faiss.knn` on each block and a merge, whose products in float32 reorder near ties, distances and order are
bit-identical for all blocks, groups and threads. On two threads the exact search takes half the time of FAISS
(`tests/benchmarks/searching.py`).

A search works on groups of queries; its state has group.json, the size of a group, groups/, the keys of each finished
one, and going.npz, the pools of the current one and the number of row groups that they have met.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import ceil, sqrt
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from cocite.config.embeddings import FlatIndex, IndexSettings, IvfProbing, SearchSettings
from cocite.config.entries import as_json
from cocite.config.settings import GivenAsJson
from cocite.core.atomic import read_json
from cocite.core.checkpoints import open_state, open_whole, remove_state, sampled_fingerprint, write_checked_json
from cocite.core.errors import InputError
from cocite.core.options import MemoryMb, Omissions, OnlyPapers, Output, Queries, Seed, Shard, State, Threads, Vectors
from cocite.core.progress import ahead, progress_bar, report
from cocite.core.randomness import priorities
from cocite.core.tables.files import write_omissions, write_table
from cocite.core.tables.papers import read_kept_out, read_queries
from cocite.core.written_ids import Ids
from cocite.neighbours import nearest
from cocite.neighbours.nearest import BLOCK, FARTHEST, Block, Keys, Metric, Numbers, Pools, Workers
from cocite.neighbours.vectors import NOWHERE, VectorFiles, open_vectors

RESERVED_MB = 400
"""Memory for the program and what it writes."""
ROWS_WRITTEN = 500_000
SECONDS_BETWEEN_SAVES = 60.0
NOT_SEARCHED = "queries that are not among the papers searched: they have no edge to train on or, if asked for, no text"
NOT_REACHED = "neighbours, up to k a query, that the approximate index did not lead to"
RANKS = (10, 100, 1000)
"""Recall is measured at these ranks, where k is larger, and at k."""
ROW_GROUPS_SAMPLED = 8
"""Largest number of row groups whose first block is used for the estimate."""
TIMES_RANK = 4
"""The first documents that a guess is made from are so many times the rank that is guessed at."""


class Checkpoint:
    """How far the search of one group of queries is."""

    def __init__(self, file: Path, first: int) -> None:
        self.file, self.first = file, first
        self.saved = time.monotonic()

    def restore(self, pools: Pools) -> int:
        """Fill the pools as they were saved; return the number of row groups that they have met."""
        if self.file.exists():
            with np.load(self.file) as saved:
                if int(saved["first"]) == self.first:
                    pools.keys[:], pools.counts[:], pools.worst[:] = saved["keys"], saved["counts"], saved["worst"]
                    return int(saved["met"])
        return 0

    def save(self, pools: Pools, met: int) -> None:
        """Save the pools and how many row groups they have met, if the last save is long enough ago."""
        if time.monotonic() - self.saved < SECONDS_BETWEEN_SAVES:
            return
        with open_whole(self.file) as file:
            np.savez(file, keys=pools.keys, counts=pools.counts, worst=pools.worst, met=met, first=self.first)
        self.saved = time.monotonic()


def open_search(state: Path, fingerprint: dict[str, Any], room: int) -> int:
    """Make the folder ready; return the size of a group of queries, which is at most `room`. Finished groups stay if
    they belong to the same search and are not too large, so that a search that has more memory resumes as well."""
    group = state / "group.json"
    if open_state(state, fingerprint, work="search", independent=True):
        if group.exists():
            if (size := int(read_json(group))) <= room:
                finished = len(list((state / "groups").glob("*.np[yz]")))
                report(f"resuming after {finished} groups of a search that was killed")
                return size
            report(f"{state}: its groups of {size:,} queries need more memory than there is; starting afresh")
        remove_state(state)
        open_state(state, fingerprint, work="search")
    write_checked_json(group, room)
    return room


def queries_of_shard(queries: Path, shard: tuple[int, int]) -> Ids:
    """The queries of a shard: its number and how many there are. Raises `InputError` if there is no such shard."""
    if not 0 <= shard[0] < shard[1]:
        raise InputError(f"--shard is {shard[0]}, but of {shard[1]} shards it must be from 0 to {shard[1] - 1}.")
    ids: Ids = read_queries(queries)["corpusid"].to_numpy()
    return ids[ids % shard[1] == shard[0]]


def check_papers(
    source: Path, are_there: Callable[[Ids], NDArray[np.bool_]], papers: int, queries: Path, k: int, key: str
) -> None:
    """Raise `InputError` if a source has excluded papers, or not more than k papers for each query. `papers` are those
    that can have a rank, and `key` the path of k in the configuration."""
    kept_out = read_kept_out(queries)["corpusid"].to_numpy()
    if len(leaked := kept_out[are_there(kept_out)]):
        found = f"{source}: contains {len(leaked)} excluded papers, {leaked[0]} among them"
        raise InputError(f"{found}; a graph must be built without the papers that {queries} excludes.")
    if k >= papers - 1:
        least = f"k must be smaller than {max(papers - 1, 0)}"
        raise InputError(f"{key} is {k}, but {source} contains {papers} papers; {least}.")


def write_neighbours(
    queries: Numbers,
    room: int,
    search: Callable[[slice, Checkpoint], Keys],
    ids_of: Callable[[Numbers], Ids],
    *,
    depends_on: dict[str, Any],
    state: Path,
    output: Path,
) -> int:
    """Write the table `neighbours` by a search of groups of at most `room` queries; return the number of its rows.
    Finished groups in the state are not searched again, if it belongs to the same search."""
    size = open_search(state, depends_on, room)
    files = {start: state / "groups" / f"{start}.npy" for start in range(0, len(queries), size)}
    for number, (start, file) in enumerate(files.items(), start=1):
        if not file.exists():
            report(f"group {number} of {len(files)}")
            keys = search(slice(start, start + size), Checkpoint(state / "going.npz", start))
            with open_whole(file) as opened:
                np.save(opened, keys)

    def rows() -> Iterator[pa.RecordBatch]:
        for start, file in files.items():
            saved = np.load(file, mmap_mode="r")
            step = max(1, ROWS_WRITTEN // saved.shape[1])
            for first in range(start, start + len(saved), step):
                keys = np.array(saved[first - start : first - start + step])
                met = keys != FARTHEST
                ranks = np.broadcast_to(np.arange(1, keys.shape[1] + 1, dtype=np.int32), keys.shape)[met]
                of_rows = np.repeat(ids_of(queries[first : first + len(keys)]), met.sum(axis=1))
                found = [ids_of(nearest.numbers_in(keys[met])), nearest.distances_in(keys[met]).astype(np.float32)]
                yield pa.record_batch([of_rows, ranks, *found], ["query", "rank", "neighbour", "distance"])

    return write_table(output, "neighbours", rows())


class Search:
    """A way to search the papers of a table: here among all of them, exactly."""

    held_mb = 0.0
    """Memory that it takes besides the queries, their pools and blocks of vectors."""

    def __init__(self, table: VectorFiles, metric: Metric) -> None:
        self.table, self.metric = table, metric

    def find(self, ids: Ids, workers: Workers) -> Block:
        """Those of the papers that are searched, with their vectors."""
        return self.table.choose(ids, workers)

    def nearest(self, queries: Block, k: int, workers: Workers, checkpoint: Checkpoint | None = None) -> Keys:
        """The keys of the k nearest papers of each query but itself, rising, queries × k, padded with `FARTHEST`. Only
        the exact search resumes from the checkpoint. It guesses a bound first, since a pool accepts most papers before
        it has k near ones; a query that a wrong guess leaves with fewer is searched again without one."""
        pools = Pools(queries, self.metric, k)
        met = checkpoint.restore(pools) if checkpoint else 0
        if not met:
            pools.worst[:] = _guess(self.table, queries, self.metric, k, workers)
        keys = _search(self.table, pools, workers, checkpoint, met)
        short = np.flatnonzero(keys[:, -1] == FARTHEST)
        if len(short):
            keys[short] = _search(self.table, Pools(queries.choose(short), self.metric, k), workers)
        return keys


def _search(
    documents: VectorFiles, pools: Pools, workers: Workers, checkpoint: Checkpoint | None = None, met: int = 0
) -> Keys:
    """The keys that the pools keep after all row groups but the first `met`, which they contain already."""
    sizes = documents.sizes
    blocks = ((row_group, block) for row_group in range(met, len(sizes)) for block in documents.blocks([row_group]))
    with progress_bar(of=f"{len(pools.counts):,} queries", unit="vectors", total=sum(sizes[met:])) as bar:
        for row_group, block in ahead(blocks):
            if checkpoint and row_group > met:
                checkpoint.save(pools, row_group)
                met = row_group
            pools.offer(block, workers)
            bar.update(len(block.numbers))
    return pools.nearest(workers)


def _guess(documents: VectorFiles, queries: Block, metric: Metric, k: int, workers: Workers) -> Keys:
    """A key for each query that k documents are probably below, `FARTHEST` for a small sample: that at the rank which
    is expected in the sample, plus five standard deviations of the Poisson distribution and some for small numbers."""
    sizes = documents.sizes
    sampled = range(0, len(sizes), max(1, -(-len(sizes) // ROW_GROUPS_SAMPLED)))
    met = sum(min(BLOCK, sizes[row_group]) for row_group in sampled)
    expected = k * met / max(1, sum(sizes))
    rank = ceil(expected + 5 * sqrt(expected) + 10)
    if 2 * rank > met:
        return np.full(len(queries.numbers), FARTHEST, dtype=np.uint64)
    pools = Pools(queries, metric, rank)
    for row_group in sampled:
        for block in islice(documents.blocks([row_group]), 1):
            if row_group == 0:  # Before the pools know any limit, each document that is offered is compared exactly.
                pools.offer(block.choose(slice(0, TIMES_RANK * rank)), workers)
                pools.nearest(workers)
                block = block.choose(slice(TIMES_RANK * rank, None))
            if len(block.numbers):
                pools.offer(block, workers)
    return pools.nearest(workers)[:, -1]


def build_index(
    vectors: Vectors,
    settings: GivenAsJson[IndexSettings],
    *,
    papers: OnlyPapers = (),
    seed: Seed,
    threads: Threads,
    output: Output,
) -> None:
    """Write the folder of the configured index.

    It has the papers of the table `graph_embeddings` or, with the buckets of the table papers, those with a text.
    """
    table, metric = open_vectors(vectors, papers), Metric[settings.metric.upper()]
    from cocite.neighbours.approximate import build_hnsw, build_ivf

    if settings.index.kind == "ivf":
        build_ivf(table, metric, settings.index.nlist, seed=seed, threads=threads, output=output)
    else:
        build_hnsw(table, metric, settings.index, output=output)


def search_neighbours(
    vectors: Vectors,
    queries: Queries,
    settings: GivenAsJson[SearchSettings],
    *,
    index: Annotated[
        Path | None, typer.Option(help="Folder of an approximate index; without it, the search is exact.")
    ] = None,
    papers: OnlyPapers = (),
    shard: Shard = (0, 1),
    memory_mb: MemoryMb,
    threads: Threads,
    state: State,
    output: Output,
    omissions: Omissions,
) -> None:
    """Write a shard of the table `neighbours`, and the omissions, counted by reason.

    Resumes from `state` if it belongs to the same search, and removes it at the end. Raises `InputError` if k does not
    leave a choice among the papers, or an excluded paper has a vector.
    """
    table = _open(vectors, papers, queries, settings.k)
    asked = queries_of_shard(queries, shard)
    search = choose_search(settings, table, index)
    read = sampled_fingerprint([vectors, queries, *papers, *([index] if index else [])])
    with nearest.start_workers(threads) as workers:
        found = search.find(asked, workers)
        rows = write_neighbours(
            found.numbers,
            queries_at_once(settings.k, table.dimension, memory_mb - search.held_mb - table.documents.held_mb, threads),
            lambda group, checkpoint: search.nearest(found.choose(group), settings.k, workers, checkpoint),
            table.documents.ids_of,
            depends_on={**as_json(settings), "shard": list(shard), "inputs": read, "numbers": "places"},
            state=state,
            output=output,
        )
    counts = {NOT_SEARCHED: len(asked) - len(found.numbers), NOT_REACHED: len(found.numbers) * settings.k - rows}
    write_omissions(omissions, counts)
    remove_state(state)


def choose_search(settings: SearchSettings, table: VectorFiles, index: Path | None) -> Search:
    """The configured search. Raises `InputError` if it needs an index, or has one and needs none."""
    metric = Metric[settings.metric.upper()]
    if isinstance(settings.index, FlatIndex):
        if index is not None:
            raise InputError("index is flat: --index must be empty.")
        return Search(table, metric)
    if index is None:
        raise InputError(f"index is {settings.index.kind}: --index must name its folder.")
    if not index.is_dir():
        raise InputError(f"{index}: does not exist; `cocite neighbours index` builds it.")
    # FAISS takes longer to import than a small exact search takes.
    from cocite.neighbours.approximate import HNSWSearch, IVFSearch

    if isinstance(settings.index, IvfProbing):
        return IVFSearch(table, metric, index, settings.index.nprobe)
    return HNSWSearch(table, metric, index, settings.index.ef_search)


def _open(vectors: Path, papers: Sequence[Path], queries: Path, k: int) -> VectorFiles:
    """The vectors. Raises `InputError` if k leaves no choice among the papers, or one that is kept out has a vector."""
    table = open_vectors(vectors, papers)
    documents, key = table.documents, "embeddings.<name>.neighbours.k"
    check_papers(vectors, lambda ids: documents.numbers_of(ids) != NOWHERE, documents.size, queries, k, key)
    return table


def queries_at_once(k: int, dimension: int, memory_mb: float, threads: int) -> int:
    """How many queries there is memory for: their pools, their results, and two copies of their vectors."""
    bytes_of_query = 8 * (nearest.capacity(k) + k) + 8 * dimension
    return max(1, int((memory_mb - RESERVED_MB) * 1e6 - threads * nearest.bytes_of_thread(dimension)) // bytes_of_query)


def measure_search(
    vectors: Vectors,
    queries: Queries,
    settings: GivenAsJson[SearchSettings],
    *,
    index: Annotated[Path, typer.Option(help="Folder of an approximate index.")],
    papers: OnlyPapers = (),
    sample: Annotated[int, typer.Option(help="Number of queries to search both ways.")],
    seed: Seed,
    threads: Threads,
    output: Output,
) -> None:
    """Write the table `search_quality` of an index, from this many queries."""
    table = _open(vectors, papers, queries, settings.k)
    approximate = choose_search(settings, table, index)
    exact = choose_search(settings.model_copy(update={"index": FlatIndex(kind="flat")}), table, None)
    with nearest.start_workers(threads) as workers:
        found = approximate.find(read_queries(queries)["corpusid"].to_numpy(), workers)
        drawn = priorities(seed, "sample of search_quality", table.documents.ids_of(found.numbers))
        chosen = found.choose(np.sort(np.argsort(drawn, kind="stable")[:sample]))
        start = time.perf_counter()
        reached = approximate.nearest(chosen, settings.k, workers)
        middle = time.perf_counter()
        true = exact.nearest(chosen, settings.k, workers)
        took = {"seconds": middle - start, "exact_seconds": time.perf_counter() - middle}
    same = {"metric": settings.metric, "index": settings.index.kind, "queries": len(chosen.numbers), **took}
    ranks = sorted({*(rank for rank in RANKS if rank < settings.k), settings.k})
    rows = [{**same, "k": k, "recall": recall(reached[:, :k], true[:, :k])} for k in ranks]
    write_table(output, "search_quality", pa.Table.from_pylist(rows))


def recall(reached: Keys, true: Keys) -> float:
    """The recall of true neighbours; 1 if there is no query."""
    numbers = [nearest.numbers_in(keys[keys != FARTHEST]) for keys in reached]
    shared = sum(np.isin(nearest.numbers_in(expected), own).sum() for own, expected in zip(numbers, true, strict=True))
    return float(shared / true.size) if true.size else 1.0
