"""The rival of `cocite serve`: FAISS by hand, all vectors in memory, one query after the other in the same process.

It reads the same table, makes an IVF index of whole vectors with FAISS's own settings, and prints the seconds of each
search and its neighbours as JSON; with `flat`, it compares all vectors, which is the truth that recall is held against.
"""

import json
import sys
import time
from pathlib import Path

import faiss
import numpy as np
import pyarrow.parquet as pq


def main(folder: Path, kind: str, queries: str, k: int, nprobe: int) -> None:
    """Search the k neighbours of some papers, by their ids, and print them."""
    files = sorted(folder.glob("*.parquet"))
    ids = np.concatenate([pq.read_table(file, columns=["corpusid"])["corpusid"].to_numpy() for file in files])
    columns = [pq.read_table(file, columns=["vector"])["vector"].combine_chunks() for file in files]
    vectors = np.concatenate([column.flatten().to_numpy() for column in columns]).reshape(len(ids), -1)
    del columns
    if kind == "flat":
        index = faiss.IndexFlatL2(vectors.shape[1])
    else:
        index = faiss.index_factory(vectors.shape[1], f"IVF{round(len(ids) ** 0.5)},Flat")
        index.train(vectors)
        index.nprobe = nprobe
    index.add(vectors)
    seconds, found = [], []
    for query in json.loads(queries):
        vector = vectors[ids == query]
        start = time.perf_counter()
        _, (rows,) = index.search(vector, k + 1)
        seconds.append(time.perf_counter() - start)
        found.append([paper for paper in ids[rows].tolist() if paper != query][:k])
    json.dump({"seconds": seconds, "found": found}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], *map(int, sys.argv[4:]))
