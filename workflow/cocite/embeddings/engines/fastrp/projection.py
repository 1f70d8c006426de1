"""Random projection of random walks, a block of dimensions at a time (Chen et al., 2019, "Fast and Accurate Network
Embeddings via Very Sparse Random Projection").

With the walk's matrix P = D⁻¹S of the undirected graph and L = (D / 2m)^β, hop h of the vectors is H_h = P^h L R, where
R is random, papers × dimension. A vector is the weighted sum of its hops, each of length 1, scaled to length 1 itself,
so that cosine, inner product and L2 find the same neighbours.

Two things differ from the paper. R holds −1 and 1 and no zeros: with 1 number in √papers, papers whose walks reach few
others get vectors of zeros or nearly, and in dense blocks zeros save nothing. And hops have length 1 before they are
summed; else the first outweighs all others, because the length falls as walks spread.

Blocks of columns are independent of each other but for the lengths, so each hop of a block is a file of the state. The
files are merged row by row. Each column of R is drawn by its number, and each row of a product is summed by one thread
in the order of its entries: neither blocks nor threads change a bit.
"""

import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
from torch import Tensor

from cocite.config.engine import BYTES_OF_NUMBER
from cocite.config.entries import as_json
from cocite.core.checkpoints import fingerprint_of, open_state, open_whole
from cocite.core.checksums import remove_checked
from cocite.core.progress import progress, report
from cocite.embeddings.engines.fastrp import FastRP
from cocite.embeddings.engines.fastrp.walks import Floats, Walk, random_signs, undirected
from cocite.embeddings.imported import ImportedFolder
from cocite.embeddings.link_prediction import load_held_out, measure
from cocite.embeddings.losses import logistic
from cocite.embeddings.scoring import score_batch
from cocite.embeddings.vectors import VALUES_IN_MEMORY, Trained, Vectors


def project_walks(imported: Path, settings: FastRP, *, seed: int, state: Path) -> Trained:
    """Make the vectors, from the blocks in `state` if they belong to the same settings, seed and edges, and measure."""
    follows_from = {**as_json(settings), "seed": seed, "edges": fingerprint_of([imported])}
    open_state(state, follows_from, work="projection", independent=True)
    graph = ImportedFolder(imported)
    papers = int(graph.starts()[-1])
    if not _merged_file(state).exists():
        make_blocks(graph, settings, seed=seed, state=state)
        merge_blocks(state, settings, papers)
    vectors = Vectors([np.memmap(_merged_file(state), np.float32, "r", shape=(papers, settings.dimension))])
    score = partial(score_batch, vectors, comparator="cos", max_norm=None)
    return Trained(vectors=vectors, scores=[measure(load_held_out(graph, seed=seed), score, summed_loss)])


def make_blocks(graph: ImportedFolder, settings: FastRP, *, seed: int, state: Path) -> None:
    """Write the hops of all blocks that the state does not hold."""
    missing = [
        start
        for start in _starts(settings)
        if not all(_hop_file(state, start, hop).exists() for hop in _hops(settings))
    ]
    if not missing:
        return
    adjacency = undirected(graph)
    degrees = np.asarray(adjacency.sum(axis=1, dtype=np.float64))
    walk = Walk(adjacency, degrees, threads=settings.threads)
    ends = np.where(degrees > 0, degrees / max(degrees.sum(), 1e-300), 1.0) ** settings.beta
    ends = (ends / ends.mean()).astype(np.float32)
    report(f"{len(degrees):,} papers, {adjacency.nnz:,} entries of the walk, {len(missing)} blocks to make")
    for start in progress(missing, of="project", unit="blocks"):
        columns = range(start, min(start + settings.block, settings.dimension))
        projected = ends[:, None] * random_signs(len(ends), columns, seed)
        for hop in range(1, _hops(settings)[-1] + 1):
            projected = walk.step(projected)
            if hop in _hops(settings):
                with open_whole(_hop_file(state, start, hop)) as file:
                    projected.tofile(file)


def merge_blocks(state: Path, settings: FastRP, papers: int) -> None:
    """Join the blocks of each hop, weigh and sum the hops into one file of vectors; the blocks are removed."""
    size = max(1, VALUES_IN_MEMORY // settings.dimension)
    with ExitStack() as opened:
        blocks = {
            hop: [opened.enter_context(_hop_file(state, start, hop).open("rb")) for start in _starts(settings)]
            for hop in _hops(settings)
        }
        merged = opened.enter_context(open_whole(_merged_file(state)))
        for start in range(0, papers, size):
            rows = min(size, papers - start)
            vectors = np.zeros((rows, settings.dimension), dtype=np.float32)
            for hop, files in blocks.items():
                parts = [np.fromfile(file, np.float32, rows * _width(file, papers)) for file in files]
                joined = np.concatenate([part.reshape(rows, -1) for part in parts], axis=1)
                vectors += np.float32(settings.hop_weights[hop - 1]) * of_length_1(joined)
            of_length_1(vectors).tofile(merged)
    for path in state.glob("hop-*.f32"):
        remove_checked(path)


def of_length_1(vectors: Floats) -> Floats:
    """The rows scaled to length 1; rows of zeros stay."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    return np.divide(vectors, lengths, where=lengths > 0, out=np.zeros_like(vectors))


def summed_loss(edges: Tensor, negatives: Tensor) -> Tensor:
    """The logistic loss, summed: nothing is trained, so that any would do to compare."""
    return logistic(edges, negatives).sum()


def _hops(settings: FastRP) -> list[int]:
    """The steps that are weighed, rising."""
    return [hop for hop, weight in enumerate(settings.hop_weights, start=1) if weight]


def _starts(settings: FastRP) -> range:
    """The first column of each block."""
    return range(0, settings.dimension, settings.block)


def _hop_file(state: Path, start: int, hop: int) -> Path:
    return state / f"hop-{hop}-from-{start}.f32"


def _merged_file(state: Path) -> Path:
    return state / "vectors.f32"


def _width(file: BinaryIO, papers: int) -> int:
    """Columns of a block of papers × columns."""
    return os.fstat(file.fileno()).st_size // (papers * BYTES_OF_NUMBER)
