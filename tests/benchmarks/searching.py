"""The search for neighbours: exact and with the vectors on disk, against FAISS with all of them in memory; IVF; memory.

Like for like are whole commands: ours from the table of vectors to the table of neighbours, against FAISS's
IndexFlatL2 from the same table to its answer, which it does not write, and against `faiss.knn` on each block of
vectors, merged. FAISS's search alone, without reading, is reported as well.
"""

import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.benchmarks.clustered_vectors import GAP
from tests.benchmarks.clustered_vectors import main as write_clusters
from tests.benchmarks.measuring import Command, answer, cocite, compare, python, run, say

from cocite.core.tables.files import read_table, vectors_of

PAPERS, DIMENSION, QUERIES, K, THREADS = 500_000, 256, 2000, 5000, 2
TIMES = 10
LISTS, PROBES, LEAST_RECALL = 1024, (16, 20, 24, 32, 48, 64, 96), 0.95
ROUNDS = 3
FLAT: dict[str, Any] = {"index": "flat"}
BLOCK = 1 << 14


def main(folder: Path) -> None:
    write_vectors(folder, PAPERS)
    flat, ours = python(flat_search, folder, K, THREADS), _search(folder, FLAT)
    title = f"Exact search of {QUERIES:,} queries in {PAPERS:,} vectors, k = {K:,}, to IndexFlatL2 with its reading"
    exact, _ = compare(title, ours, flat, "wall", ROUNDS)
    rivals = [answer(flat_search, folder, K, THREADS) for _ in range(ROUNDS)]
    title = "The same to faiss.knn in each block of vectors"
    compare(title, ours, python(search_in_blocks, folder, K, THREADS), "cpu", ROUNDS)
    alone, peak_mb = median(seconds for _, seconds in rivals), rivals[0][0].peak_mb
    say(f"IndexFlatL2's search alone took {alone:.2f} s; peak memory {exact.peak_mb:.0f} MB to {peak_mb:.0f} MB.")
    compare_lists(folder)
    spread, many = folder / "spread", folder / "many"
    write_vectors(spread, PAPERS, gap=2**63 // PAPERS)
    title = "Exact search with ids all over 63 bits to that with small ones"
    cost, _ = compare(title, _search(spread, FLAT), ours, "wall", ROUNDS)
    say(f"With ids all over 63 bits it takes {cost.peak_mb:.0f} MB.")
    write_vectors(many, TIMES * PAPERS)
    cost = run(_search(many, FLAT))
    say(f"{TIMES * PAPERS:,} vectors: {cost}, {cost.peak_mb / exact.peak_mb:.2f} × that of {PAPERS:,}.")


def write_vectors(folder: Path, papers: int, gap: int = GAP) -> None:
    run(python(write_clusters, folder, papers, DIMENSION, QUERIES, gap=gap))


def compare_lists(folder: Path) -> None:
    """The fewest lists that reach the recall, and how long reading them takes beside the exact search."""
    ivf = {"kind": "ivf", "nlist": LISTS}
    built = run(_neighbours("index", folder, {"index": ivf}, output=folder / "index", seed=1))
    say(f"IVF: {LISTS} lists built in {built}.")
    for probes in PROBES:
        chosen = {"index": {"kind": "ivf", "nprobe": probes}, "k": K}
        rows = [_measure(folder, chosen) for _ in range(ROUNDS)]
        faster, recall = median(row["exact_seconds"] / row["seconds"] for row in rows), rows[0]["recall"]
        say(f"IVF of {probes} probes: recall {recall:.3f}, {faster:.1f} × faster than the exact search to search.")
        if recall >= LEAST_RECALL:
            break
    title = f"IVF of {probes} probes to the exact search, whole commands"
    compare(title, _search(folder, chosen, index=folder / "index"), _search(folder, FLAT), "wall", ROUNDS)


def _measure(folder: Path, chosen: dict[str, Any]) -> dict[str, Any]:
    """The recall at k, and the seconds of either search without reading queries and writing the table."""
    quality = folder / "search_quality.parquet"
    sampled = {"index": folder / "index", "sample": QUERIES, "seed": 1, "output": quality}
    run(_neighbours("measure", folder, chosen, queries=folder / "queries.parquet", **sampled))
    row: dict[str, Any] = read_table(quality, "search_quality").to_pylist()[-1]
    return row


def _search(folder: Path, chosen: dict[str, Any], **options: object) -> Command:
    files = {"state": folder / "state", "output": folder / "neighbours.parquet"}
    options |= {"queries": folder / "queries.parquet", "shard": (0, 1), "memory_mb": 1000, **files}
    return _neighbours("search", folder, {"k": K, **chosen}, omissions=folder / "omissions.parquet", **options)


def _neighbours(command: str, folder: Path, chosen: dict[str, Any], **options: object) -> Command:
    settings = {"metric": "l2", **chosen}
    vectors = folder / "graph_embeddings.parquet"
    return cocite("neighbours", command, vectors=vectors, settings=settings, threads=THREADS, **options)


def flat_search(folder: Path, k: int, threads: int) -> float:
    """The seconds of a search with all vectors in memory for k neighbours, and the query itself, without reading."""
    import faiss

    faiss.omp_set_num_threads(threads)
    table = pq.read_table(folder / "graph_embeddings.parquet")
    ids = table.column("corpusid").to_numpy()
    vectors = np.concatenate([chunk.flatten().to_numpy() for chunk in table.column("vector").chunks])
    vectors = vectors.reshape(len(ids), -1)
    del table
    queries = pq.read_table(folder / "queries.parquet").column("corpusid").to_numpy()
    index = faiss.IndexFlatL2(vectors.shape[1])
    index.add(vectors)
    start = time.perf_counter()
    index.search(vectors[np.searchsorted(ids, queries)], k + 1)
    return time.perf_counter() - start


def search_in_blocks(folder: Path, k: int, threads: int) -> None:
    """Search k neighbours, and the query itself, by faiss.knn in each block of vectors, merged."""
    import faiss

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
