"""Sort papers into the lists of an inverted-file index (IVF), by the nearest centroid.

In comes the table `graph_embeddings`; out goes the folder that `lists.py` searches in. FAISS finds the centroids, by
k-means in a seeded sample, and the list of each paper; vectors are read three times and never held all at once. What
is written does not depend on the number of threads: each of them does whole blocks, and k-means runs in one.
"""

from collections.abc import Iterator
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from cocite.ground.errors import InputError
from cocite.ground.id_sets import Ids
from cocite.ground.progress import progress_bar
from cocite.ground.randomness import derive_seed, priorities
from cocite.neighbours.distances import Block, Metric, Vectors, joined, normalised
from cocite.neighbours.pools import Workers, start_workers
from cocite.neighbours.vectors import VectorTable
from cocite.tables.files import atomic_path

SAMPLE_OF_LIST = 64
"""Papers that the centroids are computed from, for each list."""
ROUNDS = 10
"""Rounds of k-means."""
PAPERS_AT_ONCE = 1 << 16
"""Papers that are sorted into lists at once: the more, the longer the runs that are written."""


def build_lists(table: VectorTable, output: Path, *, metric: Metric, lists: int, seed: int, threads: int) -> None:
    """Write the folder of an index with this many lists. Raises `InputError` where there are not as many papers."""
    with start_workers(threads) as workers:
        centroids = train_centroids(table, metric, lists, seed, workers)
        with atomic_path(output) as folder:
            folder.mkdir()
            np.save(folder / "centroids.npy", centroids)
            chosen = folder / "chosen.tmp"
            sizes = _choose_lists(table, centroids, metric, workers, chosen)
            starts = np.concatenate([[0], np.cumsum(sizes)])
            np.save(folder / "starts.npy", starts)
            _sort_into_lists(table, chosen, starts, folder)
            chosen.unlink()


def train_centroids(table: VectorTable, metric: Metric, lists: int, seed: int, workers: Workers) -> Vectors:
    """The centroids of a seeded sample, by one thread of FAISS, so that they do not depend on how many there are."""
    sample = table.find(_sample(table, lists * SAMPLE_OF_LIST, seed), workers)
    if len(sample.numbers) < lists:
        raise InputError(
            f"embeddings.<name>.neighbours.lists is {lists}, but {table.path} holds {len(sample.numbers)} papers to be "
            "searched; there must be at least as many papers as lists."
        )
    means = faiss.Kmeans(
        sample.vectors.shape[1],
        lists,
        niter=ROUNDS,
        seed=derive_seed(seed, "centroids") % 2**31,
        spherical=metric is not Metric.L2,
        gpu=faiss.get_num_gpus(),
        min_points_per_centroid=1,
        max_points_per_centroid=SAMPLE_OF_LIST,
    )
    means.train(_clustered(sample, metric))
    return np.asarray(means.centroids, dtype=np.float32)


def _sample(table: VectorTable, size: int, seed: int) -> Ids:
    """Ids of a uniform sample of the papers."""
    drawn = np.empty(0, dtype=np.int64)
    for ids in table.ids():
        drawn = np.concatenate([drawn, ids])
        drawn = drawn[np.argsort(priorities(seed, "sample of centroids", drawn), kind="stable")[:size]]
    return np.sort(drawn)


def _clustered(block: Block, metric: Metric) -> Vectors:
    """The vectors as k-means takes them: by their direction, where lengths say nothing."""
    return normalised(block) if metric is Metric.COSINE else block.vectors


def _choose_lists(
    table: VectorTable, centroids: Vectors, metric: Metric, workers: Workers, output: Path
) -> NDArray[np.int64]:
    """Write the number of each paper's list (int32, in the order of the table); return the sizes of the lists.

    A block is always assigned whole and by one thread, so that near ties do not depend on the threads.
    """
    flat = faiss.IndexFlatL2 if metric is Metric.L2 else faiss.IndexFlatIP
    index = flat(centroids.shape[1])
    index.add(centroids)
    sizes = np.zeros(len(centroids), dtype=np.int64)

    def assign(row_group: int) -> NDArray[np.int32]:
        faiss.omp_set_num_threads(1)
        blocks = table.blocks([row_group])
        numbers = [index.search(_clustered(block, metric), 1)[1][:, 0] for block in blocks]
        return np.concatenate([np.empty(0), *numbers]).astype(np.int32)

    with output.open("wb") as file, progress_bar(of="assign", unit="papers", total=sum(table.sizes)) as bar:
        for numbers in workers.map(assign, table.row_groups):
            numbers.tofile(file)
            sizes += np.bincount(numbers, minlength=len(sizes))
            bar.update(len(numbers))
    return sizes


def _sort_into_lists(table: VectorTable, chosen: Path, starts: NDArray[np.int64], folder: Path) -> None:
    """Write ids and vectors list after list, each paper to the next free place of its list."""
    free = starts[:-1].copy()
    with (
        chosen.open("rb") as numbers,
        (folder / "ids").open("wb") as ids,
        (folder / "vectors").open("wb") as vectors,
    ):
        for blocks in _gathered(table.blocks()):
            block = joined(blocks)
            papers = table.numbering.ids_of(block.numbers)
            own = np.fromfile(numbers, np.int32, len(papers))
            order = np.argsort(own, kind="stable")
            for places in np.split(order, np.flatnonzero(np.diff(own[order])) + 1):
                start = int(free[own[places[0]]])
                ids.seek(start * 8)
                vectors.seek(start * block.vectors.shape[1] * 4)
                ids.write(papers[places].tobytes())
                vectors.write(block.vectors[places].tobytes())
                free[own[places[0]]] += len(places)


def _gathered(blocks: Iterator[Block]) -> Iterator[list[Block]]:
    """As many blocks at once as hold `PAPERS_AT_ONCE` papers."""
    gathered: list[Block] = []
    for block in blocks:
        gathered.append(block)
        if sum(len(one.numbers) for one in gathered) >= PAPERS_AT_ONCE:
            yield gathered
            gathered = []
    if gathered:
        yield gathered
