"""Author name disambiguation by the embeddings of papers only.

Within each block of alike names, signatures are merged by average linkage on the cosine distance of their papers, up
to the distance that does best on the blocks to train on: the clustering of S2AND (Subramanian et al., 2021) without its
trained classifier of pairs. The score is B³ (Bagga & Baldwin, 1998, "Algorithms for Scoring Coreference Chains").
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from threadpoolctl import threadpool_limits

from cocite.core.progress import progress
from cocite.core.searching import of_unit_length
from cocite.evaluation.benchmark import Benchmark
from cocite.evaluation.metrics import b3_statistic, on_all
from cocite.evaluation.scored import Scored, UnscorableError, Vectors

DISTANCES = 100
"""Distances to merge up to that are tried: quantiles of those that merge something in the blocks to train on."""

Blocks = Mapping[str, Sequence[str]]
"""The signatures of each block."""
Merges = Mapping[str, NDArray[np.float64]]
"""The dendrogram of each block, as SciPy has it; none for a single signature."""


def score_disambiguation(scored: Scored, benchmark: Benchmark, vectors: Vectors) -> None:
    """Cluster the test signatures of a task and score them. Raises `UnscorableError` if no training block, or no test
    block, has a signature with a vector."""
    task = scored.task
    signatures = benchmark.signatures[task.name]
    authors = {signature: author for signature, (_, _, author, _) in signatures.items()}
    train, test = (_blocks(signatures, vectors, split) for split in ("train", "test"))
    if not train or not test:
        split = "test" if train else "train"
        raise UnscorableError(f"The task {task.name} has no signature with a vector to {split} on.")
    documents = {signature: document for signature, (document, *_) in signatures.items()}
    with threadpool_limits(1):  # The last bits of products of matrices depend on how many threads there are.
        merges = _merges(train, documents, vectors)
        # The distance with the highest B³ F1 on the blocks to train on; the smallest of equal ones.
        merging = np.concatenate([[0.0], *(merged[:, 2] for merged in merges.values())])
        tried = np.unique(np.quantile(merging, np.linspace(0, 1, DISTANCES), method="nearest"))
        values = [_b3("b3_f1", clusters_up_to(distance, train, merges), authors) for distance in tried]
        distance = float(tried[int(np.argmax(values))])
        clusters = clusters_up_to(distance, test, _merges(test, documents, vectors))
    asked = sum(split == "test" for *_, split in signatures.values())
    items = [(signature, None, 1.0, [cluster], [authors[signature]]) for signature, cluster in clusters.items()]
    for metric in task.metrics:
        scored.add(metric, _b3(metric, clusters, authors), items, asked)


def _b3(metric: str, clusters: Mapping[str, str], authors: Mapping[str, str]) -> float:
    expected, predicted = [[authors[signature]] for signature in clusters], [[name] for name in clusters.values()]
    return on_all(b3_statistic(expected, predicted, metric), len(clusters))


def _blocks(signatures: Mapping[str, tuple[str, str, str, str]], vectors: Vectors, split: str) -> dict[str, list[str]]:
    """The signatures of each block of a split whose paper has a vector."""
    blocks: dict[str, list[str]] = {}
    for signature, (document, block, _, its_split) in signatures.items():
        if its_split == split and document in vectors.rows:
            blocks.setdefault(block, []).append(signature)
    return blocks


def _merges(blocks: Blocks, documents: Mapping[str, str], vectors: Vectors) -> dict[str, NDArray[np.float64]]:
    return {
        block: linkage(cosine_distances(vectors.of([documents[signature] for signature in signatures])), "average")
        for block, signatures in progress(blocks.items(), of="Blocks", unit="block")
        if len(signatures) > 1
    }


def cosine_distances(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 − cosine of each pair of rows, in SciPy's condensed form; 1 to a vector of zeros."""
    unit = of_unit_length(matrix)
    return squareform(np.maximum(1 - unit @ unit.T, 0), checks=False)


def clusters_up_to(distance: float, blocks: Blocks, merges: Merges) -> dict[str, str]:
    """The name of each signature's cluster, where all that is within a distance is merged."""
    clusters = dict[str, str]()
    for block, signatures in blocks.items():
        numbers = fcluster(merges[block], distance, "distance") if block in merges else [1]
        clusters.update((s, f"{block}:{number}") for s, number in zip(signatures, numbers, strict=True))
    return clusters
