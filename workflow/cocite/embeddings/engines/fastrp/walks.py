"""Steps of a random walk as products of a sparse matrix, and the signs that are projected on."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cocite.core.randomness import generator
from cocite.embeddings.edges import TRAINING
from cocite.embeddings.imported import ImportedFolder

Floats = NDArray[np.float32]


def undirected(graph: ImportedFolder) -> sparse.csr_array:
    """The weights of the edges to train on, papers × papers, edges of either direction added up.

    Where both directions are imported every weight is twice what it was, which changes no walk.
    """
    papers, edges = int(graph.starts()[-1]), int(graph.count_edges(TRAINING).sum())
    ends, weights = np.empty((2, edges), dtype=np.int32), np.ones(edges, dtype=np.float32)
    filled = 0
    for lhs, rhs, weight in graph.weighted_edges(TRAINING):
        block = slice(filled, filled := filled + len(lhs))
        ends[:, block] = lhs, rhs
        if weight is not None:
            weights[block] = weight
    directed = sparse.coo_array((weights, (ends[0], ends[1])), shape=(papers, papers)).tocsr()
    del ends, weights
    return (directed + directed.T.tocsr()).tocsr()


class Walk:
    """One step of a random walk from each paper, with an edge's weight for its chance."""

    def __init__(self, adjacency: sparse.csr_array, degrees: NDArray[np.float64], *, threads: int) -> None:
        """Take over the matrix, and cut its rows into parts with about as many entries each."""
        chances = np.divide(1.0, degrees, where=degrees > 0, out=np.zeros_like(degrees)).astype(np.float32)
        adjacency.data *= np.repeat(chances, np.diff(adjacency.indptr))
        cuts = np.searchsorted(adjacency.indptr, np.linspace(0, adjacency.nnz, threads + 1)[1:-1])
        bounds = [0, *map(int, cuts), adjacency.shape[0]]
        self.parts = [(slice(*ends), _rows(adjacency, *ends)) for ends in pairwise(bounds)]
        self.threads = threads

    def step(self, vectors: Floats) -> Floats:
        """The mean of the vectors that a step leads to, papers × dimensions; 0 where there is no edge."""
        means = np.empty_like(vectors)

        def fill(part: tuple[slice, sparse.csr_array]) -> None:
            rows, matrix = part
            means[rows] = matrix @ vectors

        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(fill, self.parts))
        return means


def random_signs(papers: int, columns: range, seed: int) -> Floats:
    """Columns of the projection, papers × columns: −1 or 1, drawn for each column by its number."""
    signs = np.empty((papers, len(columns)), dtype=np.float32)
    for at, column in enumerate(columns):
        bits = generator(seed, "fastrp", column).integers(0, 2, papers, dtype=np.int8)
        signs[:, at] = 2 * bits - 1
    return signs


def _rows(matrix: sparse.csr_array, start: int, stop: int) -> sparse.csr_array:
    """Rows of a matrix, which shares its entries."""
    first, last = matrix.indptr[[start, stop]]
    entries = (matrix.data[first:last], matrix.indices[first:last], matrix.indptr[start : stop + 1] - first)
    return sparse.csr_array(entries, shape=(stop - start, matrix.shape[1]))
