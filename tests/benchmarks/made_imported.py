"""An imported graph of random edges, written block by block without a table `edges`: as large as the disk allows.

    python -m tests.benchmarks.made_imported FOLDER PAPERS EDGES PARTITIONS

Papers are rows and corpus ids at once. Edges are drawn in random order, which is how an import leaves them. A process
of its own, so that its memory is not that of what is measured.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cocite.embeddings.edges import HOLDOUT, TRAINING
from cocite.embeddings.imported import ImportedBlock, partition_starts, write_edges, write_papers

HELD_OUT = 5000
BLOCK = 4_000_000


def main(folder: Path, papers: int, edges: int, partitions: int) -> None:
    """Write so many edges to train on, and `HELD_OUT` more."""
    starts = partition_starts(papers, partitions)
    write_papers(folder, np.arange(papers), starts)
    for seed, (side, count) in enumerate({TRAINING: edges, HOLDOUT: HELD_OUT}.items()):
        write_edges(folder, side, starts, _blocks(np.random.default_rng(seed), papers, count))


def _blocks(drawn: np.random.Generator, papers: int, edges: int) -> Iterator[ImportedBlock]:
    for start in range(0, edges, BLOCK):
        lhs, rhs = drawn.integers(papers, size=(2, min(BLOCK, edges - start)), dtype=np.int32)
        yield lhs, rhs, None


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
