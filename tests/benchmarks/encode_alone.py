"""Embed a table of documents with sentence-transformers alone, all in memory: what the stage encoder is measured by.

python -m tests.benchmarks.encode_alone ENCODER DOCUMENTS THREADS OUTPUT
"""

import os
import sys

import pyarrow as pa
import pyarrow.parquet as pq


def main(encoder: str, documents: str, threads: str, output: str) -> None:
    """Write the vectors of all documents, in batches of the library's own size and sorting."""
    os.environ.update(OMP_NUM_THREADS=threads, RAYON_NUM_THREADS=threads, TOKENIZERS_PARALLELISM="true")
    from sentence_transformers import SentenceTransformer

    table = pq.read_table(documents)
    titles, abstracts = (table.column(name).to_pylist() for name in ("title", "abstract"))
    texts = [f"{title}[SEP]{abstract}" for title, abstract in zip(titles, abstracts, strict=True)]
    vectors = SentenceTransformer(encoder).encode(texts)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    pq.write_table(pa.table({"document": table.column("document"), "vector": column}), output, compression="zstd")


if __name__ == "__main__":
    main(*sys.argv[1:])
