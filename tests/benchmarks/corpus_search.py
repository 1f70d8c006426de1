"""Held-out papers search the whole corpus: time and memory, next to FAISS's flat search with all vectors in memory.

Both read the same tables of vectors, a bucket for each million papers, and look for the first 1,000 papers of each
query; ours also scores them.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.benchmarks.measuring import cocite, compare, python, say

from cocite.core.tables.files import read_table, table_writer, vector_column, vectors_of, write_table

DIMENSION, QUERIES, RELEVANT, ROUNDS = 256, 1500, 40, 1
ROWS, DEPTH = 8192, 1000


def main(folder: Path, papers: int = 1_000_000) -> None:
    write_tables(folder, papers)
    files = {name: folder / f"{name}.parquet" for name in ("scores", "outcomes", "failures", "by_citations")}
    of_run = {"model": "m", "training_seed": 1, "evaluation_seed": 1, "largest_missing": 0, "tasks": "cite_search"}
    ours = cocite("evaluation", "search", tables=folder / "tables", vectors=folder / "vectors", **of_run, **files)
    title = f"{QUERIES:,} queries in {papers:,} papers of {DIMENSION} dimensions, to IndexFlatL2 with its reading"
    cost, _ = compare(title, ours, python(flat_search, folder), "cpu", ROUNDS)
    say(f"Searching and scoring: {cost}.")


def write_tables(folder: Path, papers: int) -> None:
    """Random vectors, and as many relevant papers for each query."""
    draw = np.random.default_rng(1)
    for bucket, first in enumerate(range(0, papers, 1_000_000)):
        ids = np.arange(first, min(papers, first + 1_000_000))
        schema = pa.schema({"corpusid": pa.int64(), "vector": pa.list_(pa.float32(), DIMENSION)})
        with table_writer(folder / f"vectors/{bucket}.parquet", "paper_embeddings", schema) as write:
            for start in range(0, len(ids), ROWS):
                of_rows = ids[start : start + ROWS]
                vectors = draw.standard_normal((len(of_rows), DIMENSION), dtype=np.float32)
                write(pa.record_batch({"corpusid": of_rows, "vector": vector_column(vectors)}))
    citations = draw.geometric(0.2, papers) - 1
    write_table(
        folder / "tables/popularity.parquet",
        "popularity",
        pa.table({"corpusid": range(papers), "citations": citations}),
    )
    queries = np.sort(draw.choice(papers, QUERIES, replace=False))
    relevant = np.concatenate([np.sort(draw.choice(papers, RELEVANT, replace=False)) for _ in queries])
    columns = {"query": np.repeat(queries, RELEVANT), "paper": relevant, "relevance": np.ones(len(relevant), np.int32)}
    searches = pa.table({"task": ["cite_search"] * len(relevant), **columns, "split": ["test"] * len(relevant)})
    write_table(folder / "tables/searches.parquet", "searches", searches)


def flat_search(folder: Path) -> int:
    """The nearest papers of each query, by FAISS; how many were found."""
    import faiss

    table = read_table(folder / "vectors", "paper_embeddings")
    vectors = vectors_of(table)
    queries = np.unique(read_table(folder / "tables/searches.parquet", "searches")["query"].to_numpy())
    index = faiss.IndexFlatL2(vectors.shape[1])
    index.add(vectors)
    faiss.omp_set_num_threads(1)
    _, found = index.search(vectors[np.isin(table["corpusid"].to_numpy(), queries)], DEPTH + 1)
    return int(found.size)
