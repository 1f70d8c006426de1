"""Held-out papers search the whole corpus: time and memory, next to FAISS's flat search with all vectors in memory.

Both read the same tables of vectors, a bucket for each million papers, and look for the first 1,000 papers of each
query; ours also scores them. Each runs once.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.benchmarks.measuring import cocite, python, run, say

from cocite.core.tables.files import count_rows, read_table, table_writer, vector_column, vectors_of, write_table

DIMENSION, QUERIES, RELEVANT = 256, 1500, 40
ROWS, DEPTH = 8192, 1000


def main(folder: Path, papers: int = 1_000_000) -> None:
    write_tables(folder, papers)
    files = {name: folder / f"{name}.parquet" for name in ("scores", "outcomes", "failures", "by_citations")}
    of_run = {"model": "m", "training_seed": 1, "evaluation_seed": 1, "largest_missing": 0, "tasks": "cite_search"}
    ours = cocite("evaluation", "search", tables=folder / "tables", vectors=folder / "vectors", **of_run, **files)
    say(f"{QUERIES:,} queries in {papers:,} papers of {DIMENSION} dimensions, searched and scored: {run(ours)}.")
    say(f"Searched by IndexFlatL2, with its reading: {run(python(flat_search, folder))}.")


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

    asked = np.unique(read_table(folder / "tables/searches.parquet", "searches")["query"].to_numpy())
    files = sorted((folder / "vectors").glob("*.parquet"), key=lambda file: int(file.stem))
    index = flat_index(faiss.IndexFlatL2(DIMENSION), files)
    faiss.omp_set_num_threads(1)
    _, found = index.search(index.reconstruct_batch(asked), DEPTH + 1)
    return int(found.size)


def flat_index(index: Any, files: Sequence[Path]) -> Any:
    """A flat index of FAISS with all vectors, read into it in blocks, so that memory holds them once."""
    import faiss

    index.ntotal = count_rows(files)
    index.codes.resize(index.ntotal * index.code_size)
    held, first = faiss.rev_swig_ptr(index.get_xb(), index.ntotal * index.d).reshape(-1, index.d), 0
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(ROWS):
            held[first : first + len(batch)] = vectors_of(pa.table(batch))
            first += len(batch)
    return index
