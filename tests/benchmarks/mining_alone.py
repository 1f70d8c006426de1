"""Our ranking of documents with all vectors in memory; it prints the seconds that it takes."""

import sys
import time
from pathlib import Path

from cocite.neighbours.distances import Metric
from cocite.neighbours.documents import VectorFiles, read_documents
from cocite.neighbours.mining import read_asked
from cocite.neighbours.pools import start_workers
from cocite.neighbours.ranking import VectorRanking


def main(folder: Path, threads: int, last_rank: int) -> None:
    """Read the tables that `mining_tables` wrote, and rank."""
    asked = read_asked(folder / "triplets.parquet")
    documents = read_documents("papers", folder / "papers", folder / "queries.parquet", [])
    vectors = VectorFiles([folder / "paper_embeddings.parquet"], documents)
    with start_workers(threads) as workers:
        vectors.hold(workers)
        ranking = VectorRanking(vectors, Metric.COSINE)
        start = time.perf_counter()
        ranking.rank(asked, last_rank + asked.most_positives, workers)
        sys.stdout.write(f"{time.perf_counter() - start}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
