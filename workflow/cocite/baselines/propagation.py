"""Features of papers, passed along the edges of a graph (Wu et al., 2019): Sᵏ X with S = D^-½ (A + I) D^-½.

A is the graph as undirected, the larger weight where an edge stands in both directions, and D the sums of the rows of
A + I. The features go through some columns at a time: memory holds the graph and these. Columns that are done lie in
the state, from which a killed propagation resumes.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, eye_array

from cocite.baselines.steps import Embedding, Training
from cocite.core.checkpoints import open_state, open_whole, sampled_fingerprint
from cocite.core.errors import InputError
from cocite.core.id_sets import Ids, IdSet, are_in, set_of
from cocite.core.lookup import look_up
from cocite.core.progress import progress, report
from cocite.core.tables.documents import papers_of_documents
from cocite.core.tables.files import open_table, table_in, vectors_of
from cocite.core.tables.splits import read_validation_queries

ROWS_AT_ONCE = 8192
SHORTEST = 1e-12
"""Vectors that are shorter stay as they are."""
PAPERS, VECTORS = "papers.npy", "vectors.npy"
"""The files of a model: corpus ids, rising, and the vectors of these papers."""
FEATURES = "features.npy"

Vectors = NDArray[np.float32]
Edges = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]
"""The places of the two papers of each edge, and its weight."""


def propagate_papers(training: Training, hops: int) -> None:
    """Write the propagated features of all papers that have a vector. Raises `InputError` where none has one."""
    files = [*training.paper_vectors, *training.edges]
    follows_from = {"hops": hops, "inputs": sampled_fingerprint(files)}
    open_state(training.state, follows_from, work="propagation", independent=True, scratch=[FEATURES])
    papers, order, dimension = _read_papers(training.paper_vectors)
    features = _features(training.paper_vectors, order, dimension, training.state / FEATURES)
    unlinked = set_of(read_validation_queries(training.queries))
    graph = smoothing(_edges(training.edges, papers, unlinked), len(papers))
    width = max(1, int(training.memory_mb * 1e6 / 4 / (4 * max(1, len(papers)))))
    starts = range(0, dimension, width)
    for first in progress(starts, of="Columns", unit="block"):
        done = training.state / f"{width}-{first}.npy"
        if not done.exists():
            with open_whole(done) as file:
                np.save(file, propagated(graph, np.ascontiguousarray(features[:, first : first + width]), hops))
    columns = [np.load(training.state / f"{width}-{first}.npy", mmap_mode="r") for first in starts]
    np.save(training.output / PAPERS, papers)
    vectors = np.lib.format.open_memmap(training.output / VECTORS, "w+", np.float32, (len(papers), dimension))
    for first in range(0, len(papers), ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        vectors[rows] = of_unit_length(np.concatenate([some[rows] for some in columns], axis=1))
    vectors.flush()


def propagated(graph: csr_array, features: Vectors, hops: int) -> Vectors:
    """The features after so many multiplications with the graph."""
    for _ in range(hops):
        features = graph @ features
    return features


def smoothing(edges: Edges, count: int) -> csr_array:
    """The matrix S of a graph with so many papers, from the places and weights of its edges."""
    one, other, weights = edges
    directed = coo_array((weights, (one, other)), shape=(count, count)).tocsr()
    with_loops = directed.maximum(directed.T) + eye_array(count, dtype=np.float32, format="csr")
    scale = 1 / np.sqrt(with_loops.sum(axis=1))
    with_loops.data *= np.repeat(scale, np.diff(with_loops.indptr)) * scale[with_loops.indices]
    return csr_array(with_loops.astype(np.float32))


def of_unit_length(vectors: Vectors) -> Vectors:
    """The vectors with length 1."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=vectors.copy(), where=lengths > SHORTEST)


def propagated_documents(embedding: Embedding) -> Iterator[tuple[list[Any], Vectors]]:
    """The vectors of documents: those of papers of the corpus from the model, and the own ones of others."""
    model, path = embedding.given("model"), embedding.given("document_vectors")
    papers = np.load(model / PAPERS)
    vectors = np.load(model / VECTORS, mmap_mode="r")
    papers_of = papers_of_documents(embedding.document_papers)
    own = 0
    with open_table(path, table_in(path)) as file:
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=["document", "vector"]):
            found = of_unit_length(vectors_of(pa.Table.from_batches([batch])))
            places, is_paper = look_up(papers, papers_of(batch["document"]))
            found[is_paper] = vectors[places[is_paper]]
            own += int(np.count_nonzero(~is_paper))
            yield batch["document"].to_pylist(), found
    said = (
        "are no papers of the corpus"
        if embedding.document_papers is None
        else "are not known to be papers of the corpus"
    )
    report(f"{own:,} documents {said}, and have the features of their own")


def _read_papers(files: Sequence[Path]) -> tuple[Ids, list[Ids], int]:
    """The papers that have a vector, rising; the places of those of each file among them; and the dimension."""
    of_files, dimension = [], 0
    for path in files:
        with open_table(path, table_in(path)) as file:
            of_files.append(file.read(columns=["corpusid"])["corpusid"].to_numpy())
            dimension = dimension or file.schema_arrow.field("vector").type.list_size
    papers = np.sort(np.concatenate(of_files))
    if len(papers) == 0:
        raise InputError(f"{files[0].parent}: no paper has a vector.")
    return papers, [np.searchsorted(papers, ids) for ids in of_files], dimension


def _features(files: Sequence[Path], order: Sequence[Ids], dimension: int, path: Path) -> Vectors:
    """The vectors of the papers in their order, on the disk."""
    features = np.lib.format.open_memmap(path, "w+", np.float32, (sum(map(len, order)), dimension))
    for vectors, places in zip(files, order, strict=True):
        first = 0
        with open_table(vectors, table_in(vectors)) as file:
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=["vector"]):
                features[places[first : first + len(batch)]] = vectors_of(pa.Table.from_batches([batch]))
                first += len(batch)
    return features


def _edges(files: Sequence[Path], papers: Ids, unlinked: IdSet) -> Edges:
    """The places of both papers of each edge, and its weight, without the edges of some papers.

    Edges of papers without a vector are counted.
    """
    nothing = np.empty(0, dtype=np.int32)
    found: list[Edges] = [(nothing, nothing, nothing.astype(np.float32))]
    left_out = 0
    for path in files:
        with open_table(path, "edges") as file:
            for batch in file.iter_batches(1 << 18, columns=["source", "target", "weight"]):
                ends = [batch[end].to_numpy() for end in ("source", "target")]
                (one, is_one), (other, is_other) = (look_up(papers, end) for end in ends)
                left_out += int(np.count_nonzero(~(is_one & is_other)))
                kept = is_one & is_other & ~are_in(unlinked, ends[0]) & ~are_in(unlinked, ends[1])
                found.append(
                    (one[kept].astype(np.int32), other[kept].astype(np.int32), batch["weight"].to_numpy()[kept])
                )
    report(f"{sum(len(one) for one, *_ in found):,} edges; {left_out:,} left out whose papers have no vector")
    ones, others, weights = zip(*found, strict=True)
    return np.concatenate(ones), np.concatenate(others), np.concatenate(weights)
