"""The vectors of texts: of papers in memory, for Python, and of tables of documents, papers or texts of examples.

Documents of a window, consecutive rows of a table, are tokenised and embedded in batches, each by one thread. Memory
holds at most two windows. The vectors wait in a folder of the state for each adapter (`VectorFile`), and become the
table at the end. A killed embedding resumes with the batch after the last that is known to be on the disk, and ends
with the same bytes. A document without text gets no vector, and is counted.
"""

import os
import time
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import torch
import typer
from numpy.typing import NDArray

from cocite.core.atomic import read_json
from cocite.core.checkpoints import fingerprint_of, open_state, remove_state, write_checked_json
from cocite.core.errors import InputError, explain_full_disk
from cocite.core.gpus import take_gpus
from cocite.core.options import PrecisionOption, State, Threads
from cocite.core.progress import ahead, progress_bar, report
from cocite.core.tables import TABLES
from cocite.core.tables.files import checked_files, count_rows, open_table, vector_column, write_table
from cocite.encoder.adapters import read_adapter, switch_on
from cocite.encoder.card import library_versions
from cocite.encoder.documents import Documents, Numbers, count_within
from cocite.encoder.model import Encoder, embed, embed_alike, open_encoder
from cocite.encoder.spaces import ROWS_AT_ONCE, read_map
from cocite.encoder.tokens import Text, Tokenizer, source_of, texts_of, tokenise
from cocite.encoder.unchanged import find_unchanged

EMBEDDINGS = {"documents": "document_embeddings", "papers": "paper_embeddings", "sampled_texts": "text_embeddings"}
"""The tables that can be embedded, and the tables of their vectors."""
ROWS_WRITTEN = ROWS_AT_ONCE
NO_ADAPTER = ""
"""The encoder itself, with no adapter switched on."""
VECTORS, REACHED = "vectors.bin", "reached.json"
SECONDS_BETWEEN_SYNCS = 20.0
BYTES_OF_NUMBER = 4


@dataclass(frozen=True, kw_only=True)
class Sentences:
    """The sentences of some documents, each of which has at least one."""

    tokens: Documents
    """The sentences, one document's after the other's."""
    starts: Numbers
    """The first sentence of each document, and the number of all sentences at the end."""

    @property
    def lengths(self) -> Numbers:
        """Tokens of all sentences of each document."""
        return np.diff(np.append(0, np.cumsum(self.tokens.lengths))[self.starts])


def tokenise_texts(texts: Sequence[Text], tokenizer: Tokenizer) -> Documents | Sentences:
    """Tokenise some texts, as whole texts or by their sentences; an empty text is an empty sentence."""
    if not tokenizer.reading.sentence_wise:
        return tokenise([each.text for each in texts], tokenizer, [each.is_query for each in texts])
    split = [text.sentences or ("",) for text in texts]
    are_queries = [text.is_query for text, sentences in zip(texts, split, strict=True) for _ in sentences]
    tokens = tokenise([sentence for sentences in split for sentence in sentences], tokenizer, are_queries)
    return Sentences(tokens=tokens, starts=np.append(0, np.cumsum([len(each) for each in split], dtype=np.int64)))


def embed_sums(encoder: Encoder, sentences: Sentences, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Sums over the sentences of documents, rows × dimension, of length 1 (Cohan et al., 2020, appendix)."""
    counts = np.diff(sentences.starts)[rows]
    chosen = sentences.tokens.chosen(np.repeat(sentences.starts[rows], counts) + count_within(counts))
    sums = np.add.reduceat(embed(encoder, chosen), np.cumsum(counts) - counts)
    return sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)


def embed_texts(encoder: Encoder, texts: Sequence[Text]) -> NDArray[np.float32]:
    """The vectors of some texts in memory, as whole texts or by their sentences."""
    tokens = tokenise_texts(texts, encoder.tokenizer)
    if isinstance(tokens, Sentences):
        return embed_sums(encoder, tokens, np.arange(len(texts)))
    return embed(encoder, tokens)


def embed_papers(
    folder: Path, papers: Sequence[tuple[str | None, ...]], space: str | None = None
) -> NDArray[np.float32]:
    """The vectors of papers, by the encoder in a folder, papers × dimension. Each paper is a title and an abstract or,
    for an encoder that reads other fields, the texts of these in their order. `space` is the space of an aspect, or
    `concatenated`. Raises `InputError` for a folder of no encoder or without the space, and for another number of
    fields."""
    encoder = open_encoder(Path(folder))
    fields = encoder.tokenizer.reading.fields
    texts = []
    for number, paper in enumerate(papers, 1):
        if len(paper) != len(fields):
            raise InputError(f"Paper {number} has {len(paper)} fields; the encoder reads {', '.join(fields)}.")
        texts.append(encoder.tokenizer.document(number, dict(zip(fields, paper, strict=True))))
    vectors = embed_texts(encoder, texts)
    return vectors if space is None else read_map(Path(folder), space).of(vectors)


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
    base: Annotated[
        Path | None,
        typer.Option(help="Results folder of an earlier run, whose vectors of papers with the same text are taken."),
    ] = None,
) -> None:
    """Embed the documents of benchmarks, or papers; an embedding that was killed goes on where it stood.

    The vectors of a source do not depend on the other sources. Raises `InputError` if two sources have the same name.
    """
    names = [source.name if source.is_dir() else source.stem for source in sources]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"Two sources are named {twice}, by which their vectors are written; rename one of them.")
    take_gpus(1)
    encoder = open_encoder(model, precision, dimension, reduced=True).eval()
    adapters = adapters or (NO_ADAPTER,)
    for source, name in zip(sources, names, strict=True):
        documents = source / "documents.parquet" if source.is_dir() else source
        vectors = output / f"{name}.parquet"
        embed_documents(
            encoder, model, documents, vectors, table, adapters, threads=threads, state=state / name, base=base
        )
    with suppress(OSError):  # of a folder that has anything else
        state.rmdir()


def embed_documents(
    encoder: Encoder, model: Path, documents: Path, output: Path, table: str, adapters: Sequence[str], *,
    threads: int, state: Path, base: Path | None = None,
) -> None:  # fmt: skip
    """Write one vector by each adapter for each document that has a text, in order of document; then remove `state`.
    Vectors of papers with the text of the run in `base` are copied. Raises `InputError` if a vector is not finite."""
    files = checked_files(documents, table)
    total = count_rows(files)
    sources = {source_of(file, table) for file in files} if encoder.tokenizer.reading.further else set()
    unchanged = None
    if base is not None:
        _switch_on(encoder, model, adapters[0])
        with _workers(1) as worker:
            vectors_of = partial(embed_texts, encoder)
            unchanged = worker.submit(find_unchanged, base, model, documents, encoder.tokenizer, vectors_of).result()
    follows_from = {
        "inputs": fingerprint_of([model, *files, *(source[0] for source in sources if source is not None)]),
        "device": encoder.device.type,
        "precision": str(encoder.computes_in),
        "dimension": encoder.dimension,
        "adapters": sorted(adapters),
        "batches": [encoder.window, encoder.tokens_in_batch],
        "versions": library_versions(),
        "unchanged": None if unchanged is None else fingerprint_of([unchanged.earlier]),
    }
    open_state(state, follows_from, work="embedding", independent=True, checked_by_work=[VECTORS])
    is_known = np.zeros(total, np.bool_) if unchanged is None else unchanged.is_same
    with explain_full_disk(state), ExitStack() as stack:
        filled = {}
        for adapter in sorted(adapters):
            _switch_on(encoder, model, adapter)
            filled[adapter] = VectorFile(state / f"adapter-{adapter}", encoder.dimension, encoder.window)
            stack.enter_context(filled[adapter].file)
            for known in unchanged.blocks() if unchanged is not None else ():
                filled[adapter].write(*known)
            has_text = _embed(encoder, files, table, filled[adapter], is_known, threads)
        declared = TABLES[EMBEDDINGS[table]]
        columns = {key: declared.columns[key].type for key in declared.key}
        schema = pa.schema({**columns, "vector": pa.list_(pa.float32(), encoder.dimension)})
        rows = (
            batch
            for adapter, vectors in filled.items()
            for batch in _rows(files, table, has_text, adapter, schema, vectors)
        )
        written = write_table(output, declared.name, pa.RecordBatchReader.from_batches(schema, rows)) // len(filled)
    report(f"Embedded {written} of {total} {table}; {total - written} have no text.")
    if zeros := max(each.zeros for each in filled.values()):
        report(f"{zeros} have a text, but no word piece that the encoder knows; their vector is 0.")
    remove_state(state)


def _workers(threads: int) -> ThreadPoolExecutor:
    """Threads that each compute by themselves: last bits depend on how many share a product of matrices."""
    return ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))


def _switch_on(encoder: Encoder, model: Path, adapter: str) -> None:
    switch_on(encoder, read_adapter(encoder, model, adapter) if adapter else None)


def _embed(
    encoder: Encoder, files: Sequence[Path], table: str, vectors: "VectorFile", is_known: NDArray[np.bool_],
    threads: int,
) -> NDArray[np.bool_]:  # fmt: skip
    """Fill the file with the vectors that it does not have yet, of rows that are not known; tell which have a text."""
    start, on_gpu = vectors.reached_window, encoder.device.type == "cuda"
    has_text, size = np.zeros(len(is_known), np.bool_), encoder.window

    def noted() -> Iterator[Text]:
        for row, each in enumerate(texts_of(files, encoder.tokenizer, table)):
            has_text[row] = bool(each.text)
            yield each

    windows = tokenised_windows(noted(), encoder.tokenizer, start=start, size=size, is_known=is_known)
    # A transformer on a CPU, where each thread embeds a batch, would only lose threads to tokenising ahead.
    windows = ahead(windows) if on_gpu or encoder.reads == "bags" else windows
    bar = progress_bar(of="Embedding", unit=table, total=len(is_known), initial=start * size)
    workers = _workers(1 if on_gpu else threads)
    embed_rows: Any = embed_sums if encoder.tokenizer.reading.sentence_wise else embed_alike
    with bar, ExitStack() as stack:
        stack.callback(workers.shutdown, cancel_futures=True)
        for window in windows:
            batches = list(encoder.batches(window.tokens.lengths))
            vectors.check([row for some in batches[: vectors.progress.batches] for row in window.rows[some].tolist()])
            done = vectors.progress.batches
            left = batches[done:]
            bar.update(sum(map(len, batches[:done])))
            embedded = workers.map(partial(embed_rows, encoder, window.tokens), left)
            for some, their_vectors in zip(left, embedded, strict=True):
                is_finite = np.isfinite(their_vectors).all(axis=1)
                if not is_finite.all():
                    name = window.names[some[is_finite.argmin()]]
                    why = "its weights are broken, or too large for half precision"
                    raise InputError(f"The encoder gives document {name!r} a vector that is not finite; {why}.")
                vectors.put(window.rows[some], their_vectors)
                bar.update(len(some))
            vectors.end_window()
    return has_text


def _rows(
    files: Sequence[Path], table: str, has_text: NDArray[np.bool_], adapter: str, schema: pa.Schema,
    vectors: "VectorFile",
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    """The rows of the table by an adapter: the documents that have a text, with their vectors."""
    row, [key] = 0, TABLES[table].key
    read = (open_table(file, table).iter_batches(ROWS_WRITTEN, columns=[key]) for file in files)
    for batch in chain.from_iterable(read):
        kept = np.flatnonzero(has_text[row : row + len(batch)])
        found = vectors.read(row + kept)
        vectors.zeros += int(np.count_nonzero(~found.any(axis=1)))
        names = {"adapter": pa.array([adapter] * len(kept), pa.string()), schema.names[-2]: batch[key].take(kept)}
        columns = [names[name].cast(schema.field(name).type) for name in schema.names[:-1]]
        yield pa.record_batch([*columns, vector_column(found)], schema=schema)
        row += len(batch)


class Window(NamedTuple):
    """The documents of a window that have a text: their ids, their rows in the table, and their tokens."""

    names: list[Any]
    rows: Numbers
    tokens: Documents | Sentences


def tokenised_windows(
    texts: Iterator[Text], tokenizer: Tokenizer, *, start: int, size: int, is_known: NDArray[np.bool_] | None = None
) -> Iterator[Window]:
    """The windows of `size` documents, from number `start` on, without those that are known."""
    numbered = islice(enumerate(texts), start * size, None)
    while read := list(islice(numbered, size)):
        chosen = [(row, each) for row, each in read if each.text and not (is_known is not None and is_known[row])]
        rows, some = np.array([row for row, _ in chosen], dtype=np.int64), [each for _, each in chosen]
        yield Window([each.id for each in some], rows, tokenise_texts(some, tokenizer))


@dataclass(kw_only=True)
class Progress:
    """How far the file is filled."""

    checksums: list[int] = field(default_factory=list)
    """The CRC-32 of the rows of each window that is done, without zeros at its end."""
    batches: int = 0
    """Batches of the next window that are done."""
    checksum: int = 0
    """The CRC-32 of their vectors."""


class VectorFile:
    """The file of vectors in a folder, a new one if there is none, and how far it is filled."""

    def __init__(self, folder: Path, dimension: int, window: int) -> None:
        folder.mkdir(exist_ok=True)
        (folder / VECTORS).touch()
        self.file = (folder / VECTORS).open("r+b")
        self.reached = folder / REACHED
        self.width, self.window, self.synced_at = dimension * BYTES_OF_NUMBER, window, time.monotonic()
        self.progress = Progress(**read_json(self.reached)) if self.reached.exists() else Progress()
        self.zeros = 0  # vectors of nothing but zeros among those that were read for the table
        for number, checksum in enumerate(self.progress.checksums):
            if self._checksum(number) != checksum:
                self._begin_again(number)
                break
        # Checksums leave out zeros at the end of a window, which may be missing.
        self.file.truncate(max(self.file.seek(0, os.SEEK_END), self.reached_window * window * self.width))

    @property
    def reached_window(self) -> int:
        """The window at work, from 0."""
        return len(self.progress.checksums)

    def check(self, rows: Sequence[int]) -> None:
        """Begin the window at work again unless these rows, of its batches so far, have their checksum."""
        checksum = 0
        for row in rows:
            self.file.seek(row * self.width)
            checksum = zlib.crc32(self.file.read(self.width), checksum)
        if checksum != self.progress.checksum:
            self._begin_again(self.reached_window)

    def put(self, rows: Numbers, vectors: NDArray[np.float32]) -> None:
        """Write the vectors of the next batch to these rows."""
        self.write(rows, vectors)
        self.progress.batches += 1
        self.progress.checksum = zlib.crc32(vectors.data, self.progress.checksum)
        if time.monotonic() - self.synced_at >= SECONDS_BETWEEN_SYNCS:
            self.file.flush()
            os.fsync(self.file.fileno())
            write_checked_json(self.reached, asdict(self.progress))
            self.synced_at = time.monotonic()

    def write(self, rows: Numbers, vectors: NDArray[np.float32]) -> None:
        """Write vectors to these rows, if any."""
        if len(rows) == 0:
            return
        breaks = np.flatnonzero(np.diff(rows) != 1) + 1
        for start, stop in pairwise([0, *breaks.tolist(), len(rows)]):
            self.file.seek(int(rows[start]) * self.width)
            self.file.write(vectors[start:stop].data)

    def end_window(self) -> None:
        """Count the window at work as done."""
        self.progress = Progress(checksums=[*self.progress.checksums, self._checksum(self.reached_window)])

    def read(self, rows: Numbers) -> NDArray[np.float32]:
        """The vectors of some rows, rising and close to one another, rows × dimension."""
        numbers = self.width // BYTES_OF_NUMBER
        if len(rows) == 0:
            return np.empty((0, numbers), dtype=np.float32)
        self.file.seek(int(rows[0]) * self.width)
        content = self.file.read((int(rows[-1]) - int(rows[0]) + 1) * self.width)
        return np.frombuffer(content, dtype=np.float32).reshape(-1, numbers)[rows - rows[0]]

    def _begin_again(self, window: int) -> None:
        first = window * self.window
        report(f"{self.file.name}: vectors from document {first:,} on are not what was written; embedding them again")
        self.progress = Progress(checksums=self.progress.checksums[:window])

    def _checksum(self, window: int) -> int:
        # Behind the last vector of a window, the file may end, or go on with zeros.
        self.file.seek(window * self.window * self.width)
        return zlib.crc32(self.file.read(self.window * self.width).rstrip(b"\0"))
