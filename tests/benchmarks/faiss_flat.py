"""The rival of the exact search: FAISS with all vectors in memory. It prints the seconds of its reading and search."""

import sys
import time
from pathlib import Path

import faiss
import numpy as np
import pyarrow.parquet as pq


def main(folder: Path, k: int, threads: int) -> None:
    """Read the tables that `clustered_vectors` wrote and search k neighbours, and the query itself; write nothing."""
    faiss.omp_set_num_threads(threads)
    start = time.perf_counter()
    table = pq.read_table(folder / "graph_embeddings.parquet")
    ids = table.column("corpusid").to_numpy()
    vectors = np.concatenate([chunk.flatten().to_numpy() for chunk in table.column("vector").chunks])
    vectors = vectors.reshape(len(ids), -1)
    del table
    queries = pq.read_table(folder / "queries.parquet").column("corpusid").to_numpy()
    index = faiss.IndexFlatL2(vectors.shape[1])
    index.add(vectors)
    loaded = time.perf_counter()
    index.search(vectors[np.searchsorted(ids, queries)], k + 1)
    sys.stdout.write(f"{loaded - start} {time.perf_counter() - loaded}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
