"""The approximate indexes, which FAISS builds: a search returns exact distances, but may miss papers.

centroids.npy    of an inverted-file index: one row per list
starts.npy       the start of each list among the papers, and the end of the last
ids, vectors     the papers' corpus ids (int64) and vectors (float32), list after list, by id in each
links.faiss      of an HNSW index
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import faiss
import numpy as np
from numba import njit
from numpy.typing import NDArray

from cocite.config.embeddings import HnswIndex
from cocite.core.atomic import atomic_path
from cocite.core.errors import InputError
from cocite.core.progress import ahead, progress_bar
from cocite.core.randomness import derive_seed, smallest
from cocite.core.written_ids import Ids, distinct, look_up
from cocite.neighbours import nearest
from cocite.neighbours.nearest import BLOCK, FARTHEST, Block, Keys, Metric, Numbers, Pools, Vectors, Workers
from cocite.neighbours.searching import Checkpoint, Search
from cocite.neighbours.vectors import NOWHERE, VectorFiles

SAMPLE_OF_LIST = 64
"""Papers that the centroids are computed from, for each list."""
ROUNDS = 10
PAPERS_SORTED = 1 << 16
"""Papers that are sorted into lists at once: the more, the longer the runs that are written."""
NUMBERS_AT_ONCE, IDS_READ = 1 << 20, 1 << 16
PAPERS_READ = 1 << 14
"""Papers that a search reads at once: most lists are too small to keep threads busy."""
READINGS_HELD = 3
"""Readings in memory at most: the current one, the next one, and the excess of a last block."""
LINKS = "links.faiss"
SPARE = 32
"""Papers that are proposed beyond k: the query may be among them, and near ties may change places."""


def build_ivf(table: VectorFiles, metric: Metric, nlist: int, *, seed: int, threads: int, output: Path) -> None:
    """Write the folder of an inverted-file index (Jégou, Douze & Schmid 2011, section IV) of `nlist` lists: papers by
    their nearest centroid, of which a search reads only some. Raises `InputError` if there are fewer papers than lists.

    Vectors are read three times and are never all in memory, and the files do not depend on the number of threads.
    """
    with nearest.start_workers(threads) as workers:
        centroids = _train_centroids(table, metric, nlist, seed, workers)
        with atomic_path(output) as folder:
            folder.mkdir()
            np.save(folder / "centroids.npy", centroids)
            chosen = folder / "chosen.tmp"
            sizes = _choose_lists(table, centroids, metric, workers, chosen)
            starts = np.concatenate([[0], np.cumsum(sizes)])
            np.save(folder / "starts.npy", starts)
            _sort_into_lists(table, chosen, starts, folder)
            chosen.unlink()


def _train_centroids(table: VectorFiles, metric: Metric, nlist: int, seed: int, workers: Workers) -> Vectors:
    """The centroids of a seeded sample; FAISS uses one thread, so that they do not depend on the number of threads."""
    drawn = np.empty(0, dtype=np.int64)  # ids of a uniform sample of the papers
    for start in range(0, table.documents.size, NUMBERS_AT_ONCE):
        numbers = np.arange(start, min(start + NUMBERS_AT_ONCE, table.documents.size))
        ids = table.documents.ids_of(numbers)
        drawn = smallest(np.concatenate([drawn, ids]), nlist * SAMPLE_OF_LIST, seed, "sample of centroids")
    sample = table.choose(np.sort(drawn), workers)
    if (papers := len(sample.numbers)) < nlist:
        key, held = "embeddings.<name>.neighbours.index.nlist", f"{table.files[0]} contains {papers} papers to search"
        raise InputError(f"{key} is {nlist}, but {held}; there must be at least as many papers as lists.")
    means = faiss.Kmeans(
        sample.vectors.shape[1],
        nlist,
        niter=ROUNDS,
        seed=derive_seed(seed, "centroids") % 2**31,
        spherical=metric is not Metric.L2,
        gpu=faiss.get_num_gpus(),
        min_points_per_centroid=1,
        max_points_per_centroid=SAMPLE_OF_LIST,
    )
    means.train(nearest.comparable(sample, metric))
    return np.asarray(means.centroids, dtype=np.float32)


def _choose_lists(table: VectorFiles, centroids: Vectors, metric: Metric, workers: Workers, output: Path) -> Ids:
    """Write the number of each paper's list (int32, in the order of the table); return the sizes of the lists. One
    thread assigns a whole block, so that near ties do not depend on the number of threads."""
    flat = faiss.IndexFlatL2 if metric is Metric.L2 else faiss.IndexFlatIP
    index = flat(centroids.shape[1])
    index.add(centroids)
    sizes = np.zeros(len(centroids), dtype=np.int64)

    def assign(row_group: int) -> NDArray[np.int32]:
        faiss.omp_set_num_threads(1)
        blocks = table.blocks([row_group])
        numbers = [index.search(nearest.comparable(block, metric), 1)[1][:, 0] for block in blocks]
        return np.concatenate([np.empty(0), *numbers]).astype(np.int32)

    with output.open("wb") as file, progress_bar(of="assign", unit="papers", total=sum(table.sizes)) as bar:
        for numbers in workers.map(assign, table.row_groups):
            numbers.tofile(file)
            sizes += np.bincount(numbers, minlength=len(sizes))
            bar.update(len(numbers))
    return sizes


def _sort_into_lists(table: VectorFiles, chosen: Path, starts: NDArray[np.int64], folder: Path) -> None:
    """Write ids and vectors list after list, each paper to the next free place of its list."""
    free = starts[:-1].copy()
    with chosen.open("rb") as numbers, (folder / "ids").open("wb") as ids, (folder / "vectors").open("wb") as vectors:
        for block in table.blocks(at_once=PAPERS_SORTED):
            papers = table.documents.ids_of(block.numbers)
            own = np.fromfile(numbers, np.int32, len(papers))
            order = np.argsort(own, kind="stable")
            for places in np.split(order, np.flatnonzero(np.diff(own[order])) + 1):
                start = int(free[own[places[0]]])
                ids.seek(start * 8)
                vectors.seek(start * block.vectors.shape[1] * 4)
                ids.write(papers[places].tobytes())
                vectors.write(block.vectors[places].tobytes())
                free[own[places[0]]] += len(places)


class IVFSearch(Search):
    """Search in the lists of the centroids that are nearest to a query."""

    def __init__(self, table: VectorFiles, metric: Metric, folder: Path, nprobe: int) -> None:
        super().__init__(table, metric)
        self.folder, self.nprobe = folder, nprobe
        self.centroids: Vectors = np.load(folder / "centroids.npy")
        self.starts: NDArray[np.int64] = np.load(folder / "starts.npy")
        self.held_mb = READINGS_HELD * 4 * PAPERS_READ * self.centroids.shape[1] / 1e6

    def find(self, ids: Ids, workers: Workers) -> Block:
        """Those of the papers that are in the index, by id, with their vectors."""
        wanted, found = distinct(ids), [np.empty((0, 2), dtype=np.int64)]
        with (self.folder / "ids").open("rb") as file:
            for start in range(0, int(self.starts[-1]), IDS_READ):
                indexed = np.fromfile(file, np.int64, IDS_READ)
                places = np.flatnonzero(look_up(wanted, indexed)[1])
                found.append(np.column_stack([indexed[places], start + places]))
        papers, places = np.concatenate(found).T
        order = np.argsort(papers)
        papers, places = papers[order], places[order]
        with (self.folder / "vectors").open("rb") as file:
            rows = [self._read(file, place, place + 1) for place in places.tolist()]
        nothing = np.empty((0, self.centroids.shape[1]), dtype=np.float32)
        return nearest.block_of(self._numbers_of(papers), np.concatenate([nothing, *rows]))

    def nearest(self, queries: Block, k: int, workers: Workers, checkpoint: Checkpoint | None = None) -> Keys:
        """The k nearest papers in the lists that are read; twice as many lists where these have fewer than k."""
        keys = np.full((len(queries.numbers), k), FARTHEST, dtype=np.uint64)
        short, nprobe = np.arange(len(queries.numbers)), min(self.nprobe, len(self.centroids))
        while len(short):
            asked = queries.choose(short)
            keys[short] = self._probe(asked, k, nprobe, workers)
            short = short[keys[short, -1] == FARTHEST] if nprobe < len(self.centroids) else short[:0]
            nprobe = min(2 * nprobe, len(self.centroids))
        return keys

    def _probe(self, queries: Block, k: int, nprobe: int, workers: Workers) -> Keys:
        # The lists of each query's nearest centroids, queries × nprobe.
        lists = Pools(queries._replace(numbers=np.full(len(queries.numbers), NOWHERE)), self.metric, nprobe)
        for start in range(0, len(self.centroids), BLOCK):
            part = self.centroids[start : start + BLOCK]
            lists.offer(nearest.block_of(np.arange(start, start + len(part)), part), workers)
        chosen = nearest.numbers_in(lists.nearest(workers))
        order = np.argsort(chosen.ravel(), kind="stable")
        by_list = np.split(order // nprobe, np.searchsorted(chosen.ravel()[order], np.arange(1, len(self.centroids))))
        pools = Pools(queries, self.metric, k)
        asked = [number for number, places in enumerate(by_list) if len(places)]
        total = int(np.diff(self.starts)[asked].sum())
        with progress_bar(of=f"{len(queries.numbers):,} queries", unit="vectors", total=total) as bar:
            for blocks in ahead(self._blocks(asked)):
                pools.offer_each([(block, by_list[number]) for number, block in blocks], workers)
                bar.update(sum(len(block.numbers) for _, block in blocks))
        return pools.nearest(workers)

    def _blocks(self, lists: list[int]) -> Iterator[list[tuple[int, Block]]]:
        """The papers of these lists, as groups of blocks, each with the number of its list."""
        blocks: list[tuple[int, Block]] = []
        papers = 0
        with (self.folder / "ids").open("rb") as ids, (self.folder / "vectors").open("rb") as vectors:
            for number in lists:
                for start in range(self.starts[number], self.starts[number + 1], BLOCK):
                    end = min(start + BLOCK, int(self.starts[number + 1]))
                    ids.seek(start * 8)
                    numbers = self._numbers_of(np.fromfile(ids, np.int64, end - start))
                    blocks.append((number, nearest.block_of(numbers, self._read(vectors, start, end))))
                    papers += end - start
                    if papers >= PAPERS_READ:
                        yield blocks
                        blocks, papers = [], 0
        yield blocks

    def _numbers_of(self, ids: Ids) -> Numbers:
        numbers = self.table.documents.numbers_of(ids)
        if len(lost := ids[numbers < 0]):
            again = "`cocite neighbours index` builds the index again, with the same papers"
            raise InputError(f"{self.folder}: has the paper {lost[0]}, which is not among those searched; {again}.")
        return numbers

    def _read(self, file: BinaryIO, start: int, end: int) -> Vectors:
        dimension = self.centroids.shape[1]
        file.seek(start * dimension * 4)
        return np.fromfile(file, np.float32, (end - start) * dimension).reshape(-1, dimension)


def build_hnsw(table: VectorFiles, metric: Metric, settings: HnswIndex, *, output: Path) -> None:
    """Write the folder of an HNSW index (Malkov & Yashunin 2020). FAISS keeps all vectors in memory, and one thread
    builds the index, since links depend on the order in which papers are added."""
    kind = faiss.METRIC_L2 if metric is Metric.L2 else faiss.METRIC_INNER_PRODUCT
    graph = faiss.IndexHNSWFlat(table.dimension, settings.links, kind)
    graph.hnsw.efConstruction = settings.ef_construction
    index = faiss.IndexIDMap(graph)
    faiss.omp_set_num_threads(1)
    with progress_bar(of="link", unit="papers", total=sum(table.sizes)) as bar:
        for block in ahead(table.blocks()):
            index.add_with_ids(nearest.comparable(block, metric), table.documents.ids_of(block.numbers))
            bar.update(len(block.numbers))
    with atomic_path(output) as folder:
        folder.mkdir()
        faiss.write_index(index, str(folder / LINKS))


class HNSWSearch(Search):
    """Search along the links of an index."""

    def __init__(self, table: VectorFiles, metric: Metric, folder: Path, ef_search: int) -> None:
        super().__init__(table, metric)
        self.index: Any = faiss.read_index(str(folder / LINKS))
        self.held_mb = (folder / LINKS).stat().st_size / 1e6
        self.ef_search = ef_search

    def nearest(self, queries: Block, k: int, workers: Workers, checkpoint: Checkpoint | None = None) -> Keys:
        """The k nearest papers that the links led to, by exact distances to their vectors."""
        chosen = faiss.SearchParametersHNSW(efSearch=max(self.ef_search, k + SPARE))  # type: ignore[attr-defined]
        vectors = nearest.comparable(queries, self.metric)

        def search(rows: Vectors) -> NDArray[np.int64]:
            faiss.omp_set_num_threads(1)
            return self.index.search(rows, k + SPARE, params=chosen)[1]

        parts = np.array_split(vectors, max(1, len(vectors) // 16))
        # Near papers, queries × (k + SPARE); −1, and so `NOWHERE`, if the links led to no more.
        proposed = self.table.documents.numbers_of(np.concatenate(list(workers.map(search, parts))))
        proposed.sort(axis=1)
        keys = np.full(proposed.shape, FARTHEST, dtype=np.uint64)
        met = np.zeros(len(proposed), dtype=np.int64)
        for block in ahead(self.table.blocks()):
            _compare_proposed(block, queries, proposed, met, self.metric, keys)
        keys.sort(axis=1)
        return keys[:, :k]


@njit(nogil=True, cache=True)
def _compare_proposed(block, queries, proposed, met, metric, keys):  # type: ignore[no-untyped-def]
    """Compute the keys of the proposed papers of a block; `met` counts the finished ones of each query. The
    papers of the block, and those proposed to a query, rise."""
    numbers, vectors, norms = block
    for row in range(len(proposed)):
        at, place = met[row], 0
        while at < proposed.shape[1] and proposed[row, at] <= numbers[-1]:
            place += np.searchsorted(numbers[place:], proposed[row, at])
            if numbers[place] == proposed[row, at] and numbers[place] != queries.numbers[row]:
                one, one_norm = queries.vectors[row].astype(np.float64), queries.norms[row]
                distance = nearest.exact_distance(one, one_norm, vectors[place], norms[place], metric)
                keys[row, at] = nearest.key_of(numbers[place], distance)
            at += 1
        met[row] = at
