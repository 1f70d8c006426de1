"""A table `edges` of random edges, made by a process of its own, so that its memory is not that of what is measured."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from cocite.core.tables.files import write_table

EDGES_A_PAPER = 8
LARGEST_ID = 280_000_000
SOURCES_AT_ONCE = 50_000


def main(path: Path, edges: int) -> None:
    """Write a directed graph of so many edges, less those drawn twice."""
    write_table(path, "edges", _batches(edges))


def _batches(edges: int) -> Iterator[pa.RecordBatch]:
    drawn = np.random.default_rng(1)
    papers = np.unique(drawn.integers(1, LARGEST_ID, edges // EDGES_A_PAPER))
    left = edges
    for start in range(0, len(papers), SOURCES_AT_ONCE):
        sources = papers[start : start + SOURCES_AT_ONCE]
        count = min(left, -(-edges * len(sources) // len(papers)))
        pairs = np.unique(drawn.choice(sources, count) << 32 | drawn.choice(papers, count))
        left -= count
        yield pa.record_batch(
            {"source": pairs >> 32, "target": pairs & 0xFFFFFFFF, "weight": np.ones(len(pairs), dtype=np.float32)}
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
