"""Neighbours by vectors and by walks, and mined negatives, beside libraries that hold everything in memory.

Whole commands are compared, from tables to tables. Vectors lie in clusters as those of papers do: forty fields hold
4,000 topics, whose sizes are log-normal (σ = 1); a paper is its topic and noise, a topic its field and noise, and every
vector has norm 1. Of the variance, a half comes from the field, a third from the topic and the rest from the paper. The
larger of two tables begins with the smaller one.
"""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from tests.benchmarks.made_graphs import write_cited
from tests.benchmarks.measuring import (
    Command,
    Cost,
    answer,
    cocite,
    compare,
    in_turn,
    median_ratio,
    python,
    run,
    run_and_read,
    say,
)
from tests.papers import papers_table

from cocite.core.randomness import generator
from cocite.core.tables.files import read_table, vector_column, vectors_of, write_table

PAPERS, DIMENSION, QUERIES, K, THREADS = 500_000, 256, 2000, 5000, 2
TIMES = 10
LISTS, PROBES, LEAST_RECALL = 1024, (16, 20, 24, 32, 48, 64, 96), 0.95
ROUNDS = 3
FLAT: dict[str, Any] = {"index": "flat"}
BLOCK = 1 << 14

MINED_DIMENSION, MINED_QUERIES, LAST_RANK = 384, 1000, 100
MEMORY_MB = 4000
"""As the workflow gives a job with so many vectors."""
RANK_OF_POSITIVE, NEGATIVES, RELATIVE_MARGIN = 10, 5, 0.005
NEAREST, AT_ONCE = 5000, 50
"""Papers among which the right negatives are looked for, and queries whose products are in memory together."""
ROWS_OF_GROUP = 4096
"""Vectors of a row group, as many as embedding writes."""

TOLERANCES = (1e-5, 1e-6)
RESTART, WALKED, LEFT = 0.15, 1000, 1e-3

FIELDS, TOPICS, ROWS = 40, 4000, 50_000
GAP = 3
"""Ids are this far from one another."""


def searching(folder: Path) -> None:
    """The search for neighbours: exact and with the vectors on disk, against FAISS with all of them in memory; IVF.

    The rivals are FAISS's IndexFlatL2 from the same table to its answer, which it does not write, and `faiss.knn` on
    each block of vectors, merged. FAISS's search alone, without reading, is reported as well.
    """
    _write_vectors(folder, PAPERS)
    flat, ours = python(flat_search, folder, K, THREADS), _search(folder, FLAT)
    title = f"Exact search of {QUERIES:,} queries in {PAPERS:,} vectors, k = {K:,}, to IndexFlatL2 with its reading"
    exact, _ = compare(title, ours, flat, "wall", ROUNDS)
    rivals = [answer(flat_search, folder, K, THREADS) for _ in range(ROUNDS)]
    title = "The same to faiss.knn in each block of vectors"
    compare(title, ours, python(search_in_blocks, folder, K, THREADS), "cpu", ROUNDS)
    alone, peak_mb = median(seconds for _, seconds in rivals), rivals[0][0].peak_mb
    say(f"IndexFlatL2's search alone took {alone:.2f} s; peak memory {exact.peak_mb:.0f} MB to {peak_mb:.0f} MB.")
    _compare_lists(folder)
    spread, many = folder / "spread", folder / "many"
    _write_vectors(spread, PAPERS, gap=2**63 // PAPERS)
    title = "Exact search with ids all over 63 bits to that with small ones"
    cost, _ = compare(title, _search(spread, FLAT), ours, "wall", ROUNDS)
    say(f"With ids all over 63 bits it takes {cost.peak_mb:.0f} MB.")
    _write_vectors(many, TIMES * PAPERS)
    cost = run(_search(many, FLAT))
    say(f"{TIMES * PAPERS:,} vectors: {cost}, {cost.peak_mb / exact.peak_mb:.2f} × that of {PAPERS:,}.")


def _write_vectors(folder: Path, papers: int, gap: int = GAP) -> None:
    run(python(write_vectors, folder, papers, DIMENSION, QUERIES, gap=gap))


def _compare_lists(folder: Path) -> None:
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
    vectors = folder / "vectors.parquet"
    return cocite("neighbours", command, vectors=vectors, settings=settings, threads=THREADS, **options)


def flat_search(folder: Path, k: int, threads: int) -> float:
    """The seconds of a search with all vectors in memory for k neighbours, and the query itself, without reading."""
    import faiss

    faiss.omp_set_num_threads(threads)
    ids, vectors = vectors_in([folder / "vectors.parquet"])
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
    wanted = np.concatenate([vectors[np.isin(ids, queries)] for ids, vectors in _blocks(folder)])
    heap = faiss.ResultHeap(len(wanted), k + 1)
    for ids, vectors in _blocks(folder):
        distances, places = faiss.knn(wanted, vectors, min(k + 1, len(ids)))
        heap.add_result(distances, ids[places])
    heap.finalize()


def _blocks(folder: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    with pq.ParquetFile(folder / "vectors.parquet", pre_buffer=False) as file:
        for batch in file.iter_batches(BLOCK):
            yield batch.column("corpusid").to_numpy(), vectors_of(pa.table(batch))


def vectors_in(files: list[Path]) -> tuple[np.ndarray, np.ndarray]:
    """The ids and the vectors of tables, without more of them in memory than a library needs."""
    tables = [pq.read_table(file, columns=["corpusid", "vector"]) for file in files]
    ids = np.concatenate([table["corpusid"].to_numpy() for table in tables])
    vectors = np.concatenate([chunk.flatten().to_numpy() for table in tables for chunk in table["vector"].chunks])
    return ids, vectors.reshape(len(ids), -1)


def mining(folder: Path) -> None:
    """Mining hard negatives: ours against sentence-transformers' `mine_hard_negatives`, with vectors that are ready.

    Ours searches, compares what it finds with the positives, and writes the candidates and the set with its mined
    negatives; the rival searches with the options that mean the same, by products and `torch.topk` or by FAISS. The
    seconds of its function alone, and of our ranking, with all vectors in memory and without imports, are reported as
    well. Both are compared with a brute force in float64: the share of its negatives that they found.

    The positive of a query is its tenth neighbour. The right negatives, by products in float64, are the nearest papers
    whose cosine is below that of the positive by the margin.
    """
    run(python(write_mined, folder, PAPERS, MINED_DIMENSION, MINED_QUERIES))
    for by in ("topk", "faiss"):
        given = (folder, by, THREADS, NEGATIVES, LAST_RANK, RELATIVE_MARGIN)
        rival = python("mining_rival:mine", *given)
        title = f"Mining for {MINED_QUERIES:,} queries in {PAPERS:,} vectors, to mine_hard_negatives by {by}"
        cost, _ = compare(title, lambda: _mine(folder), rival, "wall", ROUNDS)
        ways = ((rank, folder, THREADS, LAST_RANK), ("mining_rival:mine", *given))
        alone = in_turn({way: partial(answer, *way) for way in ways}, ROUNDS)
        ours, theirs = ([seconds for _, seconds in rounds] for rounds in alone.values())
        took = f"{median(ours):.2f} s to {median(theirs):.2f} s"
        say(f"With vectors in memory, our ranking to its function: {median_ratio(ours, theirs)}, {took}.")
        say(f"Peak memory {cost.peak_mb:.0f} MB to {run(rival).peak_mb:.0f} MB.")
        say(f"Recall of its negatives: {_recall(folder, np.load(folder / f'{by}.npy')):.4f}.")
    mined = read_table(folder / "mined.parquet", "sampled_examples").to_pylist()
    pairs = np.array([(row["query"], paper) for row in mined for paper in row["negatives"]])
    say(f"Recall of ours: {_recall(folder, pairs):.4f}.")


def _mine(folder: Path) -> Cost:
    settings = {"by": {"kind": "encoder", "name": "ready"}, "ranks": [1, LAST_RANK]}
    same = {"papers": folder / "papers", "queries": folder / "queries.parquet", "threads": THREADS}
    triplets = folder / "triplets.parquet"
    candidates, positives = folder / "candidates.parquet", folder / "positives.parquet"
    made = {"candidates": candidates, "positives": positives, "omissions": folder / "missing.parquet"}
    limits = {"settings": settings, "memory_mb": MEMORY_MB, "state": folder / "state"}
    search = cocite("neighbours", "mine", triplets, folder / "paper_embeddings.parquet", **same, **limits, **made)
    picked = {"sampler": "mined", "of": "set", "negatives": NEGATIVES, "relative_margin": RELATIVE_MARGIN}
    made = {"output": folder / "mined.parquet", "omissions": folder / "left-out.parquet"}
    made |= {"written_settings": folder / "settings.json", "settings": {**settings, **picked, "duplicates": None}}
    sample = cocite("triplets", "sample", triplets, candidates, positives, **same, **made, seed=1)
    return run(search) + run(sample)


def rank(folder: Path, threads: int, last_rank: int) -> float:
    """The seconds of our ranking of documents with all vectors in memory."""
    from cocite.neighbours.mining import VectorRanking, read_asked, read_documents
    from cocite.neighbours.nearest import Metric, start_workers
    from cocite.neighbours.vectors import VectorFiles

    asked = read_asked(folder / "triplets.parquet")
    documents = read_documents("papers", folder / "papers", folder / "queries.parquet", [])
    vectors = VectorFiles([folder / "paper_embeddings.parquet"], documents)
    with start_workers(threads) as workers:
        vectors.hold(workers)
        ranking = VectorRanking(vectors, Metric.COSINE)
        start = time.perf_counter()
        ranking.rank(asked, last_rank + int(np.diff(asked.starts).max()), workers)
        return time.perf_counter() - start


def _recall(folder: Path, pairs: np.ndarray) -> float:
    """The share of the right negatives that are among pairs of a query and a negative."""
    queries = read_table(folder / "queries.parquet", "queries")["corpusid"].to_numpy()
    true = zip(queries, np.load(folder / "true.npy"), strict=True)
    right = {(query, paper) for query, papers in true for paper in papers}
    return len(right & set(map(tuple, pairs.tolist()))) / len(right)


def write_mined(folder: Path, papers: int, dimension: int, queries: int) -> None:
    """Write `papers/0.parquet`, `paper_embeddings.parquet`, `queries.parquet`, `triplets.parquet` and `true.npy`."""
    write_vectors(folder, papers, dimension, queries)
    table = read_table(folder / "vectors.parquet", "graph_embeddings")
    vectors = table.combine_chunks()
    write_table(folder / "paper_embeddings.parquet", "paper_embeddings", iter(vectors.to_batches(ROWS_OF_GROUP)))
    (folder / "vectors.parquet").unlink()
    texts = dict.fromkeys(range(0, papers * GAP, GAP), ("title", "abstract"))
    write_table(folder / "papers" / "0.parquet", "papers", papers_table(texts))
    asked = read_table(folder / "queries.parquet", "queries")["corpusid"].to_numpy()
    held = vectors_of(table)
    held /= np.linalg.norm(held, axis=1, keepdims=True)
    found = [row for places in np.array_split(asked // GAP, -(-queries // AT_ONCE)) for row in _nearest(held, places)]
    positives = np.array([positive for positive, _ in found]) * GAP
    np.save(folder / "true.npy", np.stack([negatives for _, negatives in found]) * GAP)
    nothing = pa.nulls(queries, pa.int32())
    rows = {"query": asked, "positive": positives, "negative": positives, "split": ["train"] * queries}
    rows |= {"positive_rank": nothing, "negative_rank": nothing, "negative_kind": ["given"] * queries}
    write_table(folder / "triplets.parquet", "triplets", pa.table(rows))


def _nearest(vectors: np.ndarray, queries: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The positive and the right negatives of some queries; float32 only says which papers are among the nearest."""
    for query, roughly in zip(queries, (vectors @ vectors[queries].T).T, strict=True):
        near = np.argpartition(-roughly, NEAREST)[:NEAREST]
        cosines = vectors[near].astype(np.float64) @ vectors[query].astype(np.float64)
        order = np.lexsort((near, -cosines))
        near, cosines = near[order], cosines[order]
        near, cosines = near[near != query], cosines[near != query]
        is_right = cosines <= cosines[RANK_OF_POSITIVE - 1] * (1 - RELATIVE_MARGIN)
        yield int(near[RANK_OF_POSITIVE - 1]), near[is_right][:NEGATIVES]


def walks(
    folder: Path,
    papers: int = 10_000_000,
    edges: int = 100_000_000,
    queries: int = 2000,
    by_hand: int = 2,
    memory_mb: tuple[int, ...] = (1000, 3000),
) -> None:
    """Neighbours by walks on a large graph: time and memory to lay its links out and to rank, beside power iteration.

    Papers lie in communities, with a heavy tail of citations. The rival is what one writes by hand: the graph as a
    sparse matrix of scipy in memory, and power iteration from each query, a query after the other, until less than a
    thousandth of its walks has not stopped.
    """
    made, links = run(python(write_cited, folder, papers, edges, queries)), folder / "links"
    say(f"{papers:,} papers, about {edges:,} edges, made in {made.wall:.0f} s")
    tables = sorted((folder / "edges").glob("*.parquet"))
    for limit in memory_mb:
        laying = cocite("neighbours", "adjacency", *tables, settings={}, memory_mb=limit, output=links)
        laid, told = run_and_read(laying)
        say(f"Links with {limit:,} MB: {laid} ({told.splitlines()[0]})")
    found = {tolerance: folder / f"neighbours-{tolerance:g}.parquet" for tolerance in TOLERANCES}
    files = {"adjacency": links, "queries": folder / "queries.parquet", "state": folder / "state"}
    limits = {"shard": (0, 1), "memory_mb": memory_mb[-1], "threads": THREADS}
    for tolerance, output in found.items():
        settings = {"k": WALKED, "tolerance": tolerance}
        written = {"output": output, "omissions": folder / "omissions.parquet"}
        walked = run(cocite("neighbours", "walk", settings=settings, **files, **limits, **written))
        say(
            f"Walks from {queries:,} queries, tolerance {tolerance:g}, {THREADS} threads: {walked}, "
            f"{1000 * walked.cpu / queries:.0f} ms of processors a query"
        )
    _, (seconds, shares) = answer(iterate, links, by_hand, *found.values())
    of_each = ", ".join(f"{share:.1%} at {at:g}" for share, at in zip(shares, TOLERANCES, strict=True))
    said = f"among our neighbours are of its {WALKED:,} best {of_each}"
    say(f"Power iteration: {seconds:.1f} s of processor time a query; {said}")


def iterate(folder: Path, queries: int, *neighbours: Path) -> tuple[float, list[float]]:
    """The seconds of processor time that a query takes by power iteration, without reading the graph, and for each of
    our tables of neighbours the share of the best papers of the iteration that are in it."""
    from scipy.sparse import csr_array

    from cocite.core.adjacency import open_adjacency

    graph = open_adjacency(folder)
    ids, degrees = np.array(graph.ids), np.array(graph.degrees)
    links = csr_array((np.ones(len(graph.others), dtype=np.float32), np.array(graph.others), np.array(graph.starts)))
    tables = [read_table(table, "neighbours", ["query", "neighbour"]) for table in neighbours]
    asked = np.unique(tables[0]["query"].to_numpy())[:queries]
    start = time.process_time()
    best = [_best_papers(links, degrees, int(np.searchsorted(ids, query))) for query in asked]
    seconds = (time.process_time() - start) / len(asked)
    shares = []
    for table in tables:
        found = [table.filter(pc.equal(table["query"], query))["neighbour"].to_numpy() for query in asked]
        of_queries = [np.isin(ids[places], own).mean() for places, own in zip(best, found, strict=True)]
        shares.append(float(np.mean(of_queries)))
    return seconds, shares


def _best_papers(links: Any, degrees: NDArray[np.float64], query: int) -> NDArray[np.int64]:
    """The places of the papers with the best symmetric scores."""
    walks = np.zeros(len(degrees), dtype=np.float32)
    walks[query] = 1
    stopped, left = RESTART * walks, 1 - RESTART
    while left > LEFT:
        walks = (1 - RESTART) * (links @ (walks / degrees).astype(np.float32))
        stopped += RESTART * walks
        left *= 1 - RESTART
    score = stopped / np.sqrt(degrees)
    score[query] = 0
    return np.argpartition(-score, WALKED)[:WALKED]


def write_vectors(folder: Path, papers: int, dimension: int, queries: int, gap: int = GAP) -> None:
    """Write a table `graph_embeddings` of vectors in clusters, and queries among them."""
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder / "vectors.parquet", "graph_embeddings", clustered(papers, dimension, gap))
    ids = np.sort(generator(1, "queries").choice(papers, queries, replace=False)) * gap
    write_table(folder / "queries.parquet", "queries", pa.table({"corpusid": ids, "split": ["train"] * queries}))


def clustered(papers: int, dimension: int, gap: int) -> Iterator[pa.RecordBatch]:
    """Ids and vectors, `ROWS` at a time."""
    drawn = generator(1, "topics")
    fields = drawn.normal(size=(FIELDS, dimension))
    topics = fields[drawn.integers(0, FIELDS, TOPICS)] + 0.8 * drawn.normal(size=(TOPICS, dimension))
    sizes = drawn.lognormal(size=TOPICS)
    for first in range(0, papers, ROWS):
        drawn = generator(1, "papers", first)
        rows = min(ROWS, papers - first)
        vectors = topics[drawn.choice(TOPICS, rows, p=sizes / sizes.sum())].astype(np.float32)
        vectors += np.float32(0.6) * drawn.standard_normal((rows, dimension), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        ids = np.arange(first, first + rows, dtype=np.int64) * gap
        yield pa.record_batch({"corpusid": ids, "vector": vector_column(vectors)})
