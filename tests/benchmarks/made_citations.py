"""A large directed graph of communities with papers that very many cite, as buckets of the table `edges`.

    python -m tests.benchmarks.made_citations FOLDER PAPERS EDGES QUERIES

Communities are those of made_communities.py. Four edges of five lead to a paper of the same community, the others to
any paper: the r-th most cited one is drawn in proportion to r^(−2/3), so that the numbers of citations have a heavy
tail (their density falls with the power 2.5). Queries are drawn from all papers. A bucket is made at a time.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tests.benchmarks.made_communities import GAP, WITHIN, first_papers

from cocite.core.tables.files import write_table

BUCKETS = 10
SPREAD = 2_654_435_761
"""A prime that spreads the most cited papers over all communities."""


def main(folder: Path, papers: int, edges: int, queries: int) -> None:
    """Write about so many edges: those drawn twice, and those from a paper to itself, are not there."""
    drawn = np.random.default_rng(1)
    firsts = first_papers(drawn, papers)
    asked = np.sort(drawn.choice(papers, queries, replace=False))
    table = pa.table({"corpusid": GAP * (asked + 1), "split": ["train"] * queries})
    write_table(folder / "queries.parquet", "queries", table)
    for bucket in range(BUCKETS):
        pairs = draw_bucket(drawn, firsts, papers, edges // BUCKETS, bucket)
        columns = {"source": GAP * (pairs[:, 0] + 1), "target": GAP * (pairs[:, 1] + 1)}
        weight = np.ones(len(pairs), dtype=np.float32)
        write_table(folder / "edges" / f"{bucket}.parquet", "edges", pa.table({**columns, "weight": weight}))


def draw_bucket(
    drawn: np.random.Generator, firsts: NDArray[np.int64], papers: int, edges: int, bucket: int
) -> NDArray[np.int64]:
    """Distinct edges from the papers of a bucket to others, in order; edges × 2."""
    source = bucket + BUCKETS * drawn.integers(papers // BUCKETS, size=edges)
    community = np.searchsorted(firsts, source, side="right") - 1
    size = firsts[community + 1] - firsts[community]
    near = firsts[community] + (size * drawn.random(edges) ** 2).astype(np.int64)
    far = (papers * drawn.random(edges) ** 3).astype(np.int64) * SPREAD % papers
    pairs = np.unique(source * papers + np.where(drawn.random(edges) < WITHIN, near, far))
    found = np.stack([pairs // papers, pairs % papers], axis=1)
    return found[found[:, 0] != found[:, 1]]


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
