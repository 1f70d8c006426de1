"""The vectors of a graph embedding as samplers use them: a random sample of all, and those of the queries.

A sample of the papers with a text is enough to find clusters and to draw random papers from; it keeps memory from
growing with the embedding. Vectors are of norm 1, so that products are cosines.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.ground.id_sets import Ids, are_in
from cocite.ground.randomness import priorities
from cocite.tables.files import count_rows, vectors_of
from cocite.triplets.sampled import Block

TABLE = "graph_embeddings"
KNOWN = 50_000
"""About how many papers are in the sample."""

Keys = NDArray[np.uint64]
Vectors = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Known:
    """A random sample of the papers with a text, in rising order."""

    ids: Ids
    vectors: Vectors
    """Papers × dimension."""


def known_vectors(block: Block) -> Known:
    """The papers whose hashes are small enough; the sample depends on the seed and on how many vectors there are."""
    share = KNOWN / max(1, count_rows(block.files(TABLE)))
    largest = np.uint64(min(1.0, share) * (2**64 - 2**12))
    ids, vectors = [], []
    for papers, batch in _batches(block):
        is_chosen = are_in(block.papers, papers) & (priorities(block.seed, "known vectors", papers) <= largest)
        ids.append(papers[is_chosen])
        vectors.append(_normalised(batch, is_chosen))
    return Known(ids=np.concatenate(ids), vectors=np.concatenate(vectors))


def query_vectors(block: Block) -> Iterator[tuple[Ids, Vectors]]:
    """The places of the queries that have a vector, and their vectors, some at a time."""
    for papers, batch in _batches(block):
        places = np.searchsorted(block.queries, papers)
        is_query = block.queries[np.minimum(places, len(block.queries) - 1)] == papers
        if is_query.any():
            yield places[is_query], _normalised(batch, is_query)


def _batches(block: Block) -> Iterator[tuple[Ids, pa.RecordBatch]]:
    for batch in block.read(TABLE, ["corpusid", "vector"], rows=KNOWN):
        yield batch.column("corpusid").to_numpy(), batch


def _normalised(batch: pa.RecordBatch, is_chosen: NDArray[np.bool_]) -> Vectors:
    vectors = vectors_of(pa.Table.from_batches([batch.filter(pa.array(is_chosen))]))
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, norms, out=vectors.copy(), where=norms > 0)
