"""Embed the documents of a benchmark, or the papers of the corpus: a table of texts in, one of vectors out, streamed.

The documents of a window are sorted by length and embedded in batches with little padding. Their vectors go to a file
on disk, which becomes the table at the end. So memory holds one window, however many documents there are. A batch
follows from the documents alone, and one thread computes it: an embedding that was killed at any moment goes on where
it stood, and ends with the same bytes.

A document without any text gets no vector: it is counted here, and as missing where it is asked for.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from cocite.encoder.checkpoints import fingerprint_of, open_state, remove_state
from cocite.encoder.embedding import batches_of_like_length, embed_batch, tokens_at_once
from cocite.encoder.environment import library_versions
from cocite.encoder.model import Encoder, open_encoder
from cocite.encoder.vector_file import VectorFile, open_vectors
from cocite.encoder.windows import WINDOW, texts_of, tokenised_windows
from cocite.ground.ahead import ahead
from cocite.ground.errors import InputError
from cocite.ground.progress import progress_bar, report
from cocite.tables import TABLES
from cocite.tables.files import checked_files, count_rows, vector_column, write_table

EMBEDDINGS = {"documents": "document_embeddings", "papers": "paper_embeddings"}
"""The tables that can be embedded, and the tables that their vectors make."""
ROWS = 4096
"""Vectors that are in memory at once while the table is written."""


def embed_tables(
    model: Path, sources: Sequence[Path], output: Path, table: str = "documents", *, threads: int, state: Path
) -> None:
    """Embed the documents of several files, each into a file of its own in the folder `output`; then remove `state`.

    A source is a file of `table` (documents or papers), or the folder of a benchmark, and names its vectors. What is
    embedded of one of them does not depend on the others.
    """
    encoder = open_encoder(model).eval()
    for source in sources:
        documents = source / "documents.parquet" if source.is_dir() else source
        vectors = output / f"{source.stem}.parquet"
        embed_documents(encoder, model, documents, vectors, table, threads=threads, state=state / source.stem)
    remove_state(state)


def embed_documents(
    encoder: Encoder, model: Path, documents: Path, output: Path, table: str, *, threads: int, state: Path
) -> None:
    """Write one vector for each document that has a text, in order of document; then remove `state`.

    Raises `InputError` where a vector is not finite.
    """
    files = checked_files(documents, table)
    total, dimension = count_rows(files), encoder.dimension
    open_state(state, _fingerprint(model, files, encoder))
    with open_vectors(state, dimension) as vectors:
        _embed(encoder, files, table, vectors, total, threads)
        declared = TABLES[EMBEDDINGS[table]]
        (key,) = declared.key
        schema = pa.schema({key: declared.columns[key].type, "vector": pa.list_(pa.float32(), dimension)})
        rows = _rows(enumerate(texts_of(files, encoder.tokenizer.separator, table)), schema, vectors)
        written = write_table(output, declared.name, pa.RecordBatchReader.from_batches(schema, rows))
    report(f"Embedded {written} of {total} {table}; {total - written} have no text.")
    remove_state(state)


def _fingerprint(model: Path, files: Sequence[Path], encoder: Encoder) -> dict[str, Any]:
    """What the batches and their vectors follow from."""
    return {
        "inputs": fingerprint_of([model, *files]),
        "device": encoder.device.type,
        "batches": [WINDOW, tokens_at_once(encoder)],
        "versions": library_versions(),
    }


def _embed(encoder: Encoder, files: Sequence[Path], table: str, vectors: VectorFile, total: int, threads: int) -> None:
    """Fill the file with the vectors that it has not got yet."""
    start, done = vectors.reached
    windows = tokenised_windows(files, encoder.tokenizer, table, start=start, size=WINDOW)
    # On a CPU the encoder has all threads of the job; tokenising beside it would only take them from it.
    windows = ahead(windows) if encoder.device.type == "cuda" else windows
    bar = progress_bar(of="Embedding", unit=table, total=total, initial=start * WINDOW)
    with bar, _workers(encoder, threads) as workers:
        for number, window in enumerate(windows, start):
            batches = list(batches_of_like_length(window.tokens.lengths, tokens_at_once(encoder)))
            left = batches[done:]
            bar.update(sum(map(len, batches[:done])))
            embedded = workers.map(partial(embed_batch, encoder, window.tokens), left)
            for some, their_vectors in zip(left, embedded, strict=True):
                done += 1
                _check_finite(their_vectors, [window.names[place] for place in some])
                vectors.put(window.rows[some], their_vectors, then=(number, done))
                bar.update(len(some))
            done = 0


@contextmanager
def _workers(encoder: Encoder, threads: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that embed a batch each: on a CPU all of them, one for a GPU.

    A batch that is computed by one thread has the same vectors however many there are, and no thread waits for another.
    """
    count = 1 if encoder.device.type == "cuda" else threads
    workers = ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield workers
    finally:
        workers.shutdown(cancel_futures=True)


def _check_finite(vectors: NDArray[np.float32], names: Sequence[str]) -> None:
    faulty = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(faulty):
        raise InputError(
            f"The encoder gives document {names[faulty[0]]!r} a vector that is not finite; its weights are broken, or "
            "too large for half precision."
        )


def _rows(
    texts: Iterator[tuple[int, tuple[Any, str]]], schema: pa.Schema, vectors: VectorFile
) -> Iterator[pa.RecordBatch]:
    """The rows of the table: each document that has a text with its vector."""
    while read := list(islice(texts, ROWS)):
        kept = [(row, document) for row, (document, text) in read if text]
        rows = np.array([row for row, _ in kept], dtype=np.int64)
        names = pa.array([document for _, document in kept], schema[0].type)
        yield pa.record_batch([names, vector_column(vectors.read(rows))], schema=schema)
