"""Embed documents of a benchmark, papers of the corpus or texts of examples: a table of texts in, one of vectors out.

The documents come in windows. Those of a window are tokenised, sorted by length and embedded in batches with little
padding. A window is so many documents that follow each other in the table, with a text or without; so the table alone
says which documents are in it. One thread computes a batch: an embedding that was killed at any moment goes on with the
batch after the last that is known to be on the disk, and ends with the same bytes. Memory holds one window, however
many documents there are; their vectors wait in a folder of the state for each adapter
(`vector_file.py`), and become the table at the end.

A document without any text gets no vector: it is counted here, and as missing where a score needs it.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import torch
import typer
from numpy.typing import NDArray

from cocite.core.ahead import ahead
from cocite.core.checkpoints import fingerprint_of, open_state, remove_state
from cocite.core.errors import InputError
from cocite.core.gpus import take_gpus
from cocite.core.options import PrecisionOption, State, Threads
from cocite.core.progress import progress_bar, report
from cocite.core.space import explain_full_disk
from cocite.core.tables import TABLES
from cocite.core.tables.files import (
    checked_files,
    count_rows,
    vector_column,
    write_table,
)
from cocite.encoder.adapters import read_adapter, switch_on
from cocite.encoder.card import library_versions
from cocite.encoder.documents import Documents
from cocite.encoder.fields import source_of
from cocite.encoder.model import TOKENS_IN_BATCH, Encoder, embed_batch, open_encoder, rounded
from cocite.encoder.sentence_wise import Sentences, embed_sums, tokenise_sentences
from cocite.encoder.tokens import Text, Tokenizer, batches_of_like_length, texts_of, tokenise
from cocite.encoder.vector_file import VECTORS, VectorFile, open_vectors

EMBEDDINGS = {
    "documents": "document_embeddings",
    "papers": "paper_embeddings",
    "sampled_texts": "text_embeddings",
}
"""The tables that can be embedded, and the tables that their vectors make."""
WINDOW = 16_384
"""Documents that are in memory together with their texts and tokens, and sorted by length together."""
ROWS_WRITTEN = 4096
"""Vectors that are in memory together while the table is written."""
NO_ADAPTER = ""
"""The name that stands for the encoder as it is, with no adapter switched on."""


def embed_tables(
    model: Annotated[Path, typer.Option(help="Folder of the encoder.")],
    sources: Annotated[
        Sequence[Path],
        typer.Argument(help="Folders of prepared benchmarks, or files of the table documents or papers."),
    ],
    output: Annotated[Path, typer.Option(help="Folder of the vectors, a file for each source, under its name.")],
    table: Annotated[
        Literal["documents", "papers", "sampled_texts"], typer.Option(help="Which of the tables it is.")
    ] = "documents",
    *,
    threads: Threads,
    state: State,
    precision: PrecisionOption = "auto",
    dimension: Annotated[
        int | None, typer.Option(min=1, help="Numbers of a vector that are kept, the first ones; left out for all.")
    ] = None,
    adapters: Annotated[
        Sequence[str],
        typer.Option(help="Name of an adapter, once for each; an empty one, or none, for the encoder as it is."),
    ] = (),
) -> None:
    """Embed the documents of benchmarks, or papers; an embedding that was killed goes on where it stood.

    What is embedded of a source does not depend on the others.
    """
    take_gpus(1)
    encoder = rounded(open_encoder(model, precision, dimension))
    adapters = adapters or (NO_ADAPTER,)
    for source in sources:
        documents = source / "documents.parquet" if source.is_dir() else source
        vectors = output / f"{source.stem}.parquet"
        embed_documents(encoder, model, documents, vectors, table, adapters, threads=threads, state=state / source.stem)
    remove_state(state)


def embed_documents(
    encoder: Encoder,
    model: Path,
    documents: Path,
    output: Path,
    table: str,
    adapters: Sequence[str],
    *,
    threads: int,
    state: Path,
) -> None:
    """Write one vector by each adapter for each document that has a text, in order of document; then remove `state`.

    Raises `InputError` where a vector is not finite, or the disk is full.
    """
    files = checked_files(documents, table)
    total = count_rows(files)
    sources = {source_of(file, table) for file in files} if encoder.tokenizer.reading.further else set()
    follows_from = {
        "inputs": fingerprint_of([model, *files, *(source[0] for source in sources if source is not None)]),
        "device": encoder.device.type,
        "precision": str(encoder.computes_in),
        "dimension": encoder.dimension,
        "adapters": sorted(adapters),
        "batches": [WINDOW, TOKENS_IN_BATCH[encoder.device.type]],
        "versions": library_versions(),
    }
    open_state(state, follows_from, work="embedding", independent=True, checked_by_work=[VECTORS])
    with explain_full_disk(state), ExitStack() as stack:
        filled = {}
        for adapter in sorted(adapters):
            switch_on(encoder, read_adapter(encoder, model, adapter) if adapter else None)
            filled[adapter] = stack.enter_context(open_vectors(state / f"adapter-{adapter}", encoder.dimension, WINDOW))
            _embed(encoder, files, table, filled[adapter], total, threads)
        declared = TABLES[EMBEDDINGS[table]]
        columns = {key: declared.columns[key].type for key in declared.key}
        schema = pa.schema({**columns, "vector": pa.list_(pa.float32(), encoder.dimension)})
        rows = (
            batch
            for adapter, vectors in filled.items()
            for batch in _rows(texts_of(files, encoder.tokenizer, table, tells=False), adapter, schema, vectors)
        )
        written = write_table(output, declared.name, pa.RecordBatchReader.from_batches(schema, rows)) // len(filled)
    report(f"Embedded {written} of {total} {table}; {total - written} have no text.")
    remove_state(state)


def _embed(encoder: Encoder, files: Sequence[Path], table: str, vectors: VectorFile, total: int, threads: int) -> None:
    """Fill the file with the vectors that it does not have yet."""
    start = vectors.reached_window
    windows = tokenised_windows(files, encoder.tokenizer, table, start=start, size=WINDOW)
    # On a CPU the encoder has all threads of the job; tokenising beside it would only take them from it.
    windows = ahead(windows) if encoder.device.type == "cuda" else windows
    bar = progress_bar(of="Embedding", unit=table, total=total, initial=start * WINDOW)
    with bar, _workers(encoder, threads) as workers:
        for window in windows:
            batches = list(batches_of_like_length(window.tokens.lengths, TOKENS_IN_BATCH[encoder.device.type]))
            vectors.check([row for some in batches[: vectors.progress.batches] for row in window.rows[some].tolist()])
            done = vectors.progress.batches
            left = batches[done:]
            bar.update(sum(map(len, batches[:done])))
            embedded = workers.map(partial(_embed_rows, encoder, window.tokens), left)
            for some, their_vectors in zip(left, embedded, strict=True):
                _check_finite(their_vectors, [window.names[place] for place in some])
                vectors.put(window.rows[some], their_vectors)
                bar.update(len(some))
            vectors.end_window()


def _embed_rows(encoder: Encoder, tokens: Documents | Sentences, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    if isinstance(tokens, Sentences):
        return embed_sums(encoder, tokens, rows)
    return embed_batch(encoder, tokens, rows)


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


def _rows(texts: Iterator[Text], adapter: str, schema: pa.Schema, vectors: VectorFile) -> Iterator[pa.RecordBatch]:
    """The rows of the table by an adapter: each document that has a text with its vector."""
    numbered = enumerate(texts)
    while read := list(islice(numbered, ROWS_WRITTEN)):
        kept = [(row, each.id) for row, each in read if each.text]
        rows = np.array([row for row, _ in kept], dtype=np.int64)
        names = {"adapter": [adapter] * len(kept), schema.names[-2]: [document for _, document in kept]}
        columns = [pa.array(names[name], schema.field(name).type) for name in schema.names[:-1]]
        yield pa.record_batch([*columns, vector_column(vectors.read(rows))], schema=schema)


@dataclass(frozen=True, kw_only=True)
class Window:
    """The documents of a window that have a text."""

    names: list[Any]
    """Their ids."""
    rows: NDArray[np.int64]
    """Their places in the table."""
    tokens: Documents | Sentences
    """Their tokens, by sentence where these are embedded by themselves."""


def tokenised_windows(
    files: Sequence[Path], tokenizer: Tokenizer, table: str = "documents", *, start: int, size: int
) -> Iterator[Window]:
    """The windows of `size` documents, from the one of number `start` on."""
    rows = islice(texts_of(files, tokenizer, table), start * size, None)
    for first in count(start * size, size):
        read = list(islice(rows, size))
        if not read:
            return
        kept = [row for row, each in enumerate(read) if each.text]
        texts = [read[row] for row in kept]
        yield Window(
            names=[each.id for each in texts],
            rows=first + np.array(kept, dtype=np.int64),
            tokens=tokenise_sentences(texts, tokenizer)
            if tokenizer.reading.sentence_wise
            else tokenise([each.text for each in texts], tokenizer, [each.is_query for each in texts]),
        )
