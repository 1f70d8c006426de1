"""The rival of the exact search in as little memory: faiss.knn in each block of vectors, merged. It writes nothing."""

import sys
from pathlib import Path

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cocite.core.tables.files import vectors_of

BLOCK = 1 << 14


def main(folder: Path, k: int, threads: int) -> None:
    """Search k neighbours, and the query itself, in the tables that `clustered_vectors` wrote."""
    faiss.omp_set_num_threads(threads)
    queries = pq.read_table(folder / "queries.parquet").column("corpusid").to_numpy()
    rows = [vectors[np.isin(ids, queries)] for ids, vectors in _blocks(folder)]
    wanted = np.concatenate(rows)
    heap = faiss.ResultHeap(len(wanted), k + 1)
    for ids, vectors in _blocks(folder):
        distances, places = faiss.knn(wanted, vectors, min(k + 1, len(ids)))
        heap.add_result(distances, ids[places])
    heap.finalize()


def _blocks(folder: Path):  # type: ignore[no-untyped-def]
    with pq.ParquetFile(folder / "graph_embeddings.parquet", pre_buffer=False) as file:
        for batch in file.iter_batches(BLOCK):
            yield batch.column("corpusid").to_numpy(), vectors_of(pa.table(batch))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
