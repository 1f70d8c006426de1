"""Random projection of random walks, a block of dimensions at a time (Chen et al., 2019, "Fast and Accurate Network
Embeddings via Very Sparse Random Projection").

With the walk's matrix P = D⁻¹S of the undirected graph and L = (D / 2m)^β, hop h of the vectors is H_h = P^h L R, where
R is random, papers × dimension. A vector is the weighted sum of its hops, scaled to length 1. Unlike in the paper, R
has no zeros, which would give vectors of zeros to papers whose walks reach few others, and hops are normalised before
they are summed; else the first outweighs all others. Columns of R are drawn by their numbers, and each row of a product
is summed by one thread: neither blocks nor threads change a bit.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cocite.config.entries import as_json
from cocite.core.atomic import remove_checked
from cocite.core.checkpoints import fingerprint_of, open_state, open_whole
from cocite.core.progress import progress, report
from cocite.core.randomness import generator
from cocite.embeddings.edges import TRAINING
from cocite.embeddings.engines import FastRP
from cocite.embeddings.imported import ImportedFolder
from cocite.embeddings.link_prediction import load_held_out, logistic, measure, score_batch
from cocite.embeddings.trained import VALUES_IN_MEMORY, Trained, Vectors

MERGED = "vectors.f32"
Floats = NDArray[np.float32]


def project_walks(imported: Path, settings: FastRP, *, seed: int, state: Path) -> Trained:
    """Make the vectors, from blocks in `state` with the same settings, seed and edges, and measure."""
    follows_from = {**as_json(settings), "seed": seed, "edges": fingerprint_of([imported])}
    open_state(state, follows_from, work="projection", independent=True)
    graph, merged = ImportedFolder(imported), state / MERGED
    papers = int(graph.starts()[-1])
    if not merged.exists():
        _make_blocks(graph, settings, seed=seed, state=state)
        merge_blocks(state, settings, papers)
    vectors = Vectors([np.memmap(merged, np.float32, "r", shape=(papers, settings.dimension))])
    score = partial(score_batch, vectors, comparator="cos", max_norm=None)
    # Nothing is trained, so any loss would do to compare.
    scores = measure(load_held_out(graph, seed=seed), score, lambda edges, others: logistic(edges, others).sum())
    return Trained(vectors=vectors, scores=[scores])


def _make_blocks(graph: ImportedFolder, settings: FastRP, *, seed: int, state: Path) -> None:
    """Write the hops of all blocks that are not in the state."""
    hops = _hops(settings)
    missing = [start for start in _starts(settings) if not all(_hop_file(state, start, hop).exists() for hop in hops)]
    if not missing:
        return
    papers, edges = int(graph.starts()[-1]), int(graph.count_edges(TRAINING).sum())
    pairs, weights, filled = np.empty((2, edges), dtype=np.int32), np.ones(edges, dtype=np.float32), 0
    for lhs, rhs, weight in graph.weighted_edges(TRAINING):
        block = slice(filled, filled := filled + len(lhs))
        pairs[:, block] = lhs, rhs
        if weight is not None:
            weights[block] = weight
    directed = sparse.coo_array((weights, (pairs[0], pairs[1])), shape=(papers, papers)).tocsr()
    del pairs, weights
    adjacency = (directed + directed.T.tocsr()).tocsr()  # papers × papers, both directions added up
    del directed
    degrees = np.asarray(adjacency.sum(axis=1, dtype=np.float64))
    walk = Walk(adjacency, degrees, threads=settings.threads)
    ends = np.where(degrees > 0, degrees / max(degrees.sum(), 1e-300), 1.0) ** settings.beta
    ends = (ends / ends.mean()).astype(np.float32)
    report(f"{len(degrees):,} papers, {adjacency.nnz:,} entries of the walk, {len(missing)} blocks to make")
    for start in progress(missing, of="project", unit="blocks"):
        columns = range(start, min(start + settings.block, settings.dimension))
        projected = ends[:, None] * random_signs(len(ends), columns, seed)
        for hop in range(1, hops[-1] + 1):
            projected = walk.step(projected)
            if hop in hops:
                with open_whole(_hop_file(state, start, hop)) as file:
                    projected.tofile(file)


class Walk:
    """One step of a random walk from each paper, with an edge's weight for its chance."""

    def __init__(self, adjacency: sparse.csr_array, degrees: NDArray[np.float64], *, threads: int) -> None:
        """Cut the matrix, which is changed, into parts of rows with about as many entries each."""
        chances = np.divide(1.0, degrees, where=degrees > 0, out=np.zeros_like(degrees)).astype(np.float32)
        adjacency.data *= np.repeat(chances, np.diff(adjacency.indptr))
        cuts = np.searchsorted(adjacency.indptr, np.linspace(0, adjacency.nnz, threads + 1)[1:-1])
        self.parts, self.threads = [], threads
        for start, stop in pairwise([0, *map(int, cuts), adjacency.shape[0]]):
            first, last = adjacency.indptr[[start, stop]]  # rows of a matrix, with the same memory
            rows = adjacency.data[first:last], adjacency.indices[first:last], adjacency.indptr[start : stop + 1] - first
            self.parts.append((slice(start, stop), sparse.csr_array(rows, shape=(stop - start, adjacency.shape[1]))))

    def step(self, vectors: Floats) -> Floats:
        """The mean of the vectors that a step leads to, papers × dimensions; 0 if there is no edge."""
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


def merge_blocks(state: Path, settings: FastRP, papers: int) -> None:
    """Join the blocks of each hop, sum the weighted hops into one file of vectors, and remove the blocks."""
    size, dimension = max(1, VALUES_IN_MEMORY // settings.dimension), settings.dimension
    widths = [min(settings.block, dimension - start) for start in _starts(settings)]
    with ExitStack() as opened:
        blocks = {
            hop: [opened.enter_context(_hop_file(state, start, hop).open("rb")) for start in _starts(settings)]
            for hop in _hops(settings)
        }
        merged = opened.enter_context(open_whole(state / MERGED))
        for start in range(0, papers, size):
            rows = min(size, papers - start)
            vectors = np.zeros((rows, dimension), dtype=np.float32)
            for hop, files in blocks.items():
                parts = (np.fromfile(file, np.float32, rows * width) for file, width in zip(files, widths, strict=True))
                joined = np.concatenate([part.reshape(rows, -1) for part in parts], axis=1)
                vectors += np.float32(settings.hop_weights[hop - 1]) * of_length_1(joined)
            of_length_1(vectors).tofile(merged)
    for path in state.glob("hop-*.f32"):
        remove_checked(path)


def of_length_1(vectors: Floats) -> Floats:
    """The rows scaled to length 1; rows of zeros stay."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    return np.divide(vectors, lengths, where=lengths > 0, out=np.zeros_like(vectors))


def _hops(settings: FastRP) -> list[int]:
    """The steps that are weighed, rising."""
    return [hop for hop, weight in enumerate(settings.hop_weights, start=1) if weight]


def _starts(settings: FastRP) -> range:
    """The first column of each block."""
    return range(0, settings.dimension, settings.block)


def _hop_file(state: Path, start: int, hop: int) -> Path:
    return state / f"hop-{hop}-from-{start}.f32"
