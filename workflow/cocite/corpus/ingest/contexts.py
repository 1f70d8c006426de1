"""Gather the contexts of citations while a shard is scanned, and write them beside the citations, in another thread.

A context is a sentence that cites. A citation has a list of them, which is kept as the JSON that it is: reading it is
left to `merge_contexts`, of which many jobs run at once, so that a shard is held up by little more than copying. Lists
gather in one of two stores of memory and leave sorted by bucket, as the citations do.
"""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import table_writer
from cocite.corpus.ingest.accounting import CONTEXTS, KEPT, Tally
from cocite.corpus.ingest.scanning import copy_contexts, cut_contexts
from cocite.corpus.ingest.unpacking import BYTES_IN_BLOCK, LONGEST_LINE

TABLE = "ingested_contexts"
BYTES_IN_STORE = 1 << 27
"""Text of the lists that gather before they are cut by bucket; there are two stores."""
LONGEST_TEXT = LONGEST_LINE + BYTES_IN_BLOCK
"""Bytes that one block can add at most, and so the least room of a store."""
SHORTEST_LIST = 64
"""Bytes of a list, on average at least: a store has room for so many rows that only shorter ones fill it first."""
NO_LIST = "citations whose contexts are not a list of texts (kept, without contexts)"
WITHOUT = "citations without contexts"


@dataclass(kw_only=True)
class Store:
    """Lists of contexts, one after the other."""

    citing: NDArray[np.int64]
    cited: NDArray[np.int64]
    ends: NDArray[np.int64]
    """Where the list of each row ends."""
    text: NDArray[np.uint8]
    cut: NDArray[np.uint8]
    """The lists of one bucket, again in one piece."""
    rows: int = 0
    length: int = 0
    """Bytes of all lists."""

    @classmethod
    def empty(cls) -> "Store":
        """A store with nothing in it; the kernel gives memory only for what is filled."""
        size = max(BYTES_IN_STORE, LONGEST_TEXT)
        citing, cited, ends = (np.empty(size // SHORTEST_LIST, dtype=np.int64) for _ in range(3))
        text, cut = np.empty(size, dtype=np.uint8), np.empty(0, dtype=np.uint8)
        return cls(citing=citing, cited=cited, ends=ends, text=text, cut=cut)

    def has_room(self, rows: int, length: int) -> bool:
        """Whether so much more fits."""
        return self.rows + rows <= len(self.ends) and self.length + length <= len(self.text)

    def add(self, words: NDArray[np.uint64], contexts: NDArray[np.uint64], count: int, rows: Any) -> None:
        """Append the contexts of the first `count` rows that were scanned, which fit."""
        into = self.citing, self.cited, self.ends, self.text, self.rows
        self.rows, self.length = copy_contexts(words, contexts, count, rows, into)

    def add_list(self, citing: int, cited: int, text: bytes) -> None:
        """Append one list, which fits."""
        self.text[self.length : self.length + len(text)] = np.frombuffer(text, dtype=np.uint8)
        self.length += len(text)
        self.citing[self.rows], self.cited[self.rows], self.ends[self.rows] = citing, cited, self.length
        self.rows += 1

    def by_bucket(self, buckets: int) -> Iterator[pa.RecordBatch]:
        """The rows of each bucket that has any; a batch is valid until the next one is asked for."""
        ends, bucket = self.ends[: self.rows], (self.citing[: self.rows] % buckets).astype(np.uint16)
        order = np.argsort(bucket, kind="stable")
        starts = np.searchsorted(bucket[order], np.arange(buckets + 1))
        lengths = np.diff(ends, prepend=0)
        for first, last in pairwise(starts.tolist()):
            if first < last:
                rows = order[first:last]
                offsets, length = np.empty(len(rows) + 1, dtype=np.int32), int(lengths[rows].sum())
                if length > len(self.cut):
                    self.cut = np.empty(length + length // 2, dtype=np.uint8)
                cut_contexts(self.text, ends, rows, offsets, self.cut)
                buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.cut)]
                yield pa.record_batch(
                    {
                        "bucket": bucket[rows],
                        "citing": self.citing[rows],
                        "cited": self.cited[rows],
                        "contexts": pa.Array.from_buffers(pa.binary(), len(rows), buffers),
                    }
                )


class Gathered:
    """The contexts of a shard as they are found; a thread writes those of a full store while the other one fills."""

    def __init__(self, write: Callable[[pa.RecordBatch], object], thread: ThreadPoolExecutor, buckets: int) -> None:
        self._write, self._thread, self._buckets = write, thread, buckets
        self._store, self._other = Store.empty(), Store.empty()
        self._writing: Future[None] | None = None

    def add(self, words: NDArray[np.uint64], places: NDArray[np.uint64], rows: Any, *, count: int, lists: int) -> None:
        """Append the contexts of `count` rows that were scanned, `lists` of which have some."""
        length = int((places[:count, 1] - places[:count, 0]).sum())
        self._with_room(lists, length).add(words, places, count, rows)

    def add_list(self, citing: int, cited: int, text: bytes) -> None:
        """Append the contexts of one citation."""
        self._with_room(1, len(text)).add_list(citing, cited, text)

    def _with_room(self, rows: int, length: int) -> Store:
        """A store in which so much more fits; no block has more than an empty one takes."""
        if not self._store.has_room(rows, length):
            self.pass_on()
        return self._store

    def pass_on(self) -> None:
        """Have what is there written, and go on with the other store as soon as that has been written."""
        self.wait()
        self._store, self._other = self._other, self._store
        self._writing = self._thread.submit(self._empty, self._other)

    def wait(self) -> None:
        """Wait until what was passed on is written, or has failed."""
        if self._writing is not None:
            self._writing.result()

    def _empty(self, store: Store) -> None:
        for batch in store.by_bucket(self._buckets):
            self._write(batch)
        store.rows = store.length = 0


@contextmanager
def gather_contexts(path: Path, buckets: int) -> Iterator[Gathered]:
    """What gathers the contexts of the citations of some shards, and writes the table `ingested_contexts`."""
    schema = empty_schema(TABLES[TABLE])
    with table_writer(path, TABLE, schema, sync_every=BYTES_IN_STORE) as write, ThreadPoolExecutor(1) as thread:
        gathered = Gathered(write, thread, buckets)
        yield gathered
        gathered.pass_on()
        gathered.wait()


def list_of_texts(value: Any) -> bytes | None:
    """Contexts that Python has parsed, as JSON; empty where there are none, None where they are no list of texts."""
    texts = [] if value is None else value
    if not isinstance(texts, list) or not all(text is None or isinstance(text, str) for text in texts):
        return None
    return json.dumps(texts).encode() if any(text is not None for text in texts) else b""


def count_contexts(tally: Tally, *, kept: int, lists: int, faulty: int) -> None:
    """Count what became of the contexts of so many kept citations."""
    tally.beside[CONTEXTS].update({KEPT: lists, NO_LIST: faulty, WITHOUT: kept - lists - faulty})
