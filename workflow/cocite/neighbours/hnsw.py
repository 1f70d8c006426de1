"""The HNSW index of linked papers: a search goes from paper to paper towards the query (Malkov & Yashunin 2020).

FAISS builds it and searches in it, and holds all vectors in memory for both. One thread builds it, since the links
depend on the order in which papers come. The papers that a search proposes are looked up in the table of vectors again,
so that the distances and the order of neighbours are exact.
"""

from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numba import njit
from numpy.typing import NDArray

from cocite.config.embeddings import HnswIndex
from cocite.core.ahead import ahead
from cocite.core.progress import progress_bar
from cocite.core.tables.files import atomic_path
from cocite.neighbours.checkpoints import Checkpoint
from cocite.neighbours.distances import FARTHEST, Block, Keys, Metric, Vectors, comparable, exact_distance, key_of
from cocite.neighbours.exact import Search
from cocite.neighbours.pools import Workers
from cocite.neighbours.vectors import VectorTable

FILE = "links.faiss"
SPARE = 32
"""Papers that are proposed beyond k: the query may be among them, and near ties may change places."""


def build_hnsw(table: VectorTable, metric: Metric, settings: HnswIndex, *, output: Path) -> None:
    """Write the folder of an index."""
    kind = faiss.METRIC_L2 if metric is Metric.L2 else faiss.METRIC_INNER_PRODUCT
    graph = faiss.IndexHNSWFlat(table.dimension, settings.links, kind)
    graph.hnsw.efConstruction = settings.ef_construction
    index = faiss.IndexIDMap(graph)
    faiss.omp_set_num_threads(1)
    with progress_bar(of="link", unit="papers", total=sum(table.sizes)) as bar:
        for block in ahead(table.blocks()):
            index.add_with_ids(comparable(block, metric), table.ids_of(block.numbers))
            bar.update(len(block.numbers))
    with atomic_path(output) as folder:
        folder.mkdir()
        faiss.write_index(index, str(folder / FILE))


class HNSWSearch(Search):
    """Search along the links of an index."""

    def __init__(self, table: VectorTable, metric: Metric, folder: Path, ef_search: int) -> None:
        super().__init__(table, metric)
        self.index: Any = faiss.read_index(str(folder / FILE))
        self.held_mb = (folder / FILE).stat().st_size / 1e6
        self.ef_search = ef_search

    def nearest(self, queries: Block, k: int, workers: Workers, checkpoint: Checkpoint | None = None) -> Keys:
        """The k nearest papers of each query that the links led to. There is no checkpoint."""
        del checkpoint
        proposed = self.table.numbers_of(self._propose(queries, k + SPARE, workers))
        proposed.sort(axis=1)
        keys = np.full(proposed.shape, FARTHEST, dtype=np.uint64)
        met = np.zeros(len(proposed), dtype=np.int64)
        for block in ahead(self.table.blocks()):
            look_up(block, queries, proposed, met, self.metric, keys)
        keys.sort(axis=1)
        return keys[:, :k]

    def _propose(self, queries: Block, papers: int, workers: Workers) -> NDArray[np.int64]:
        """Corpus ids of near papers, queries × papers; −1 where the links led to no more."""
        chosen = faiss.SearchParametersHNSW(efSearch=max(self.ef_search, papers))  # type: ignore[attr-defined]
        vectors = comparable(queries, self.metric)

        def search(rows: Vectors) -> NDArray[np.int64]:
            faiss.omp_set_num_threads(1)
            ids: NDArray[np.int64] = self.index.search(rows, papers, params=chosen)[1]
            return ids

        parts = np.array_split(vectors, max(1, len(vectors) // 16))
        return np.concatenate(list(workers.map(search, parts)))


@njit(nogil=True, cache=True)
def look_up(block, queries, proposed, met, metric, keys):  # type: ignore[no-untyped-def]
    """Compute the keys of the papers of a block that were proposed; `met` counts the finished ones of each query.

    The papers of the block, and those proposed to a query, are in rising order.
    """
    numbers, vectors, norms = block
    for row in range(len(proposed)):
        at, place = met[row], 0
        while at < proposed.shape[1] and proposed[row, at] <= numbers[-1]:
            place += np.searchsorted(numbers[place:], proposed[row, at])
            if numbers[place] == proposed[row, at] and numbers[place] != queries.numbers[row]:
                one, one_norm = queries.vectors[row].astype(np.float64), queries.norms[row]
                distance = exact_distance(one, one_norm, vectors[place], norms[place], metric)
                keys[row, at] = key_of(numbers[place], distance)
            at += 1
        met[row] = at
