"""Embedding documents beside sentence-transformers' own `encode`, both as whole processes on two threads.

Time is measured with an encoder of MiniLM's size. Memory is measured with a small one over more documents than a window
holds, and over four times as many.
"""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.benchmarks.made_documents import main as write_all
from tests.benchmarks.measuring import Command, cocite, compare, python, run, say

DOCUMENTS, MANY = 1000, (20_000, 80_000)
ROUNDS = 3
THREADS = 2


def main(folder: Path) -> None:
    run(python(write_all, folder, DOCUMENTS, *MANY))
    for precision in ("float32", "auto"):
        title = f"embedding {DOCUMENTS} documents in {precision}, beside sentence-transformers in float32"
        ways = ours(folder, "encoder", DOCUMENTS, precision), rival(folder, "encoder", DOCUMENTS)
        cost, _ = compare(title, *ways, "wall", ROUNDS)
        say(f"{DOCUMENTS / cost.wall:.1f} documents a second, start included; peak {cost.peak_mb:.0f} MB")
    for documents in MANY:
        peaks = [run(way(folder, "small", documents)).peak_mb for way in (ours, rival)]
        say(f"{documents} documents: peak {peaks[0]:.0f} MB, sentence-transformers {peaks[1]:.0f} MB")


def ours(folder: Path, encoder: str, documents: int, precision: str = "float32") -> Command:
    options = {"model": folder / encoder, "state": folder / "state", "output": folder / "ours", "threads": THREADS}
    return cocite("encoder", "embed", folder / f"{documents}.parquet", **options, precision=precision)


def rival(folder: Path, encoder: str, documents: int) -> Command:
    return python(encode, folder / encoder, folder / f"{documents}.parquet", str(THREADS), folder / "rival.parquet")


def encode(encoder: str, documents: str, threads: str, output: str) -> None:
    """Write the vectors of all documents, in batches of the library's own size and sorting."""
    os.environ.update(OMP_NUM_THREADS=threads, RAYON_NUM_THREADS=threads, TOKENIZERS_PARALLELISM="true")
    from sentence_transformers import SentenceTransformer

    table = pq.read_table(documents)
    titles, abstracts = (table.column(name).to_pylist() for name in ("title", "abstract"))
    texts = [f"{title}[SEP]{abstract}" for title, abstract in zip(titles, abstracts, strict=True)]
    vectors = SentenceTransformer(encoder).encode(texts)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    pq.write_table(pa.table({"document": table.column("document"), "vector": column}), output, compression="zstd")
