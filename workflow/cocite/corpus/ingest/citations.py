"""Read citations from the blocks of a shard with the scanner, and odd lines with Python's parser.

Rows gather in memory by the million and leave sorted by bucket, so that the rows of a bucket are contiguous. So do the
contexts of citations, the sentences that cite, as unparsed JSON: `merge_contexts` parses them, in many concurrent jobs.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.config.graphs import INTENTS
from cocite.core.tables import ID, TABLES, empty_schema
from cocite.core.tables.files import table_writer
from cocite.core.written_ids import is_id
from cocite.corpus.ingest.accounting import BLANK, CONTEXTS, KEPT, MalformedError, Tally, parse_record
from cocite.corpus.ingest.citation_scanner import (
    NO_CITED,
    NO_CITING,
    NO_TEXTS,
    NONE,
    SELF,
    overlapping_words,
    scan_citations,
)
from cocite.corpus.ingest.merge import INFLUENTIAL, UNKNOWN_INTENT
from cocite.corpus.ingest.records import cut_by_bucket
from cocite.corpus.ingest.unpacking import Block

BYTES_TO_GATHER = 1 << 26
"""Text of contexts that gathers before it is cut by bucket; there is three times as much while it is written."""
NO_LIST = "citations whose contexts are not a list of texts (kept, without contexts)"
WITHOUT = "citations without contexts"
LEFT_OUT = {
    NO_CITING: "citations without a citing id",
    NO_CITED: "citations without a cited id",
    SELF: "citations of a paper by itself",
}
ROWS_IN_MEMORY = 1 << 21
ODD_LINES_AT_ONCE = 1 << 12
LISTS_AT_ONCE = 1 << 14
"""Rows that are scanned at once if their contexts are gathered, more than a block has most of the time."""
Rows = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]
"""Citation ids (−1 if the release has none), citing ids, cited ids, traits, bits that copies unite by a bitwise or."""


class GatheredContexts:
    """The contexts of citations, lists of JSON; a thread writes those that have gathered while others are read."""

    def __init__(self, write: Callable[[pa.RecordBatch], object], thread: ThreadPoolExecutor, buckets: int) -> None:
        self._write, self._thread, self._buckets = write, thread, buckets
        self._batches, self._bytes = list[pa.RecordBatch](), 0
        self._writing: Future[None] | None = None

    def add_scanned(self, text: NDArray[np.uint8], places: NDArray[np.uint64], rows: Any) -> int:
        """Append the lists between these places of a text, one a row, and return how many are not empty."""
        chosen = np.flatnonzero(places[:, 1])
        if len(chosen):
            bounds = places[chosen].ravel().astype(np.int32)
            buffers = [None, pa.py_buffer(bounds), pa.py_buffer(text)]
            pieces = pa.Array.from_buffers(pa.binary(), len(bounds) - 1, buffers)  # lists, and what is between them
            self.add(rows[1][chosen], rows[2][chosen], pieces.take(pa.array(np.arange(0, len(pieces), 2))))
        return len(chosen)

    def add(self, citing: Any, cited: Any, lists: Any) -> None:
        """Append lists, one for each citation."""
        ids = {"citing": pa.array(citing, ID), "cited": pa.array(cited, ID)}
        self._batches.append(pa.record_batch({**ids, "contexts": pa.array(lists, pa.binary())}))
        self._bytes += self._batches[-1].nbytes
        if self._bytes >= BYTES_TO_GATHER:
            self.pass_on()

    def pass_on(self) -> Future[None]:
        """Have what has gathered written, as soon as what was passed on before is."""

        def cut_and_write(batches: list[pa.RecordBatch]) -> None:
            for batch in cut_by_bucket("citing", self._buckets, pa.Table.from_batches(batches)) if batches else ():
                self._write(batch)

        if self._writing is not None:
            self._writing.result()
        self._writing = self._thread.submit(cut_and_write, self._batches)
        self._batches, self._bytes = [], 0
        return self._writing


@contextmanager
def gather_contexts(path: Path, buckets: int) -> Iterator[GatheredContexts]:
    """What gathers the contexts of the citations of some shards, and writes the table `ingested_contexts`."""
    table = "ingested_contexts"
    schema = empty_schema(TABLES[table])
    with table_writer(path, table, schema, sync_every=BYTES_TO_GATHER) as write, ThreadPoolExecutor(1) as thread:
        gathered = GatheredContexts(write, thread, buckets)
        yield gathered
        gathered.pass_on().result()


def read_citations(
    blocks: Iterable[Block], tally: Tally, *, buckets: int, keep_ids: bool, contexts: GatheredContexts | None = None
) -> Iterator[pa.RecordBatch]:
    """The table `ingested_citations` in batches of one bucket, some million rows at a time; every line is counted.
    Citation ids are null unless `keep_ids`."""
    rows, written = _empty_rows(ROWS_IN_MEMORY), 0

    def cut() -> list[pa.RecordBatch]:
        citationid, citing, cited, traits = (column[:written] for column in rows)
        numbers = pa.array(citationid, mask=citationid == NONE) if keep_ids else pa.nulls(written, ID)
        columns = {"citationid": numbers, "citing": citing, "cited": cited, "traits": traits}
        return cut_by_bucket("citing", buckets, pa.table(columns))

    for block in blocks:
        position = 0
        while position < block.length:
            position, written = _scan(block, position, rows, written, tally, contexts=contexts)
            if written >= ROWS_IN_MEMORY:
                yield from cut()
                written = 0
    yield from cut()


def read_citation_ids(blocks: Iterable[Block], tally: Tally) -> Iterator[NDArray[np.int64]]:
    """The citation id of every line, also of lines that give no row; lines without one are malformed."""
    for block in blocks:
        position = 0
        while position < block.length:
            rows = _empty_rows(ODD_LINES_AT_ONCE)
            position, written = _scan(block, position, rows, 0, tally, ids_only=True)
            yield rows[0][:written]


def _empty_rows(count: int) -> Rows:
    ids = (np.empty(count + ODD_LINES_AT_ONCE, dtype=np.int64) for _ in range(3))
    return (*ids, np.empty(count + ODD_LINES_AT_ONCE, dtype=np.uint8))  # type: ignore[return-value]


def _scan(
    block: Block,
    start: int,
    rows: Rows,
    written: int,
    tally: Tally,
    *,
    ids_only: bool = False,
    contexts: GatheredContexts | None = None,
) -> tuple[int, int]:
    """Append rows until memory is full or the block ends; return where it stopped and the number of rows."""
    counts, odd = np.zeros(len(LEFT_OUT) + 1, dtype=np.int64), np.empty((ODD_LINES_AT_ONCE, 2), dtype=np.uint64)
    places = np.empty((LISTS_AT_ONCE if contexts else 0, 2), dtype=np.uint64)
    room = tuple(column[written : len(column) - ODD_LINES_AT_ONCE] for column in rows)
    words, bounds = overlapping_words(block.text), (np.uint64(start), np.uint64(block.length))
    stop, found, skipped = scan_citations(words, *bounds, room, odd, counts, ids_only, places)
    number, counted = tally.lines, start
    tally.outcomes[KEPT] += found
    tally.outcomes.update({reason: int(counts[place]) for place, reason in LEFT_OUT.items()})
    if contexts:
        lists = contexts.add_scanned(block.text, places[:found], room)
        _count_contexts(tally, kept=found, lists=lists, faulty=int(counts[NO_TEXTS]))
    written += found
    odd_lists: list[tuple[int, int, bytes]] = []
    for first, after in odd[:skipped].tolist():
        number += int(np.count_nonzero(block.text[counted:after] == ord("\n")))
        counted = after
        line = block.text[first:after].tobytes()
        if not line.strip():
            tally.outcomes[BLANK] += 1
            continue
        try:
            row = _read_odd(line, tally, ids_only=ids_only, lists=odd_lists if contexts else None)
        except MalformedError as error:
            tally.note_malformed(number, str(error))
            continue
        if row is not None:
            for place, value in enumerate(row):
                rows[place][written] = value
            written += 1
    if contexts and odd_lists:
        contexts.add(*zip(*odd_lists, strict=True))
    return int(stop), written


def _read_odd(
    line: bytes, tally: Tally, *, ids_only: bool, lists: list[tuple[int, int, bytes]] | None
) -> tuple[int, ...] | None:
    """The row of a line that the scanner leaves to Python, if it gives one; its contexts are appended to `lists`."""
    if ids_only:
        record = parse_record(line, ("citationid",), null_ids=False)
        tally.outcomes[KEPT] += 1
        return (record["citationid"],)
    record = parse_record(line, ("citingcorpusid", "citedcorpusid"), null_ids=True)
    citing, cited = record["citingcorpusid"], record["citedcorpusid"]
    number: Any = record.get("citationid")
    left_out = NO_CITING if citing is None else NO_CITED if cited is None else SELF if citing == cited else None
    tally.outcomes[KEPT if left_out is None else LEFT_OUT[left_out]] += 1
    if left_out is not None:
        return None
    if lists is not None:
        texts = [] if record.get("contexts") is None else record["contexts"]
        is_list = isinstance(texts, list) and all(text is None or isinstance(text, str) for text in texts)
        is_filled = is_list and any(text is not None for text in texts)
        if is_filled:
            lists.append((citing, cited, json.dumps(texts).encode()))
        _count_contexts(tally, kept=1, lists=int(is_filled), faulty=int(not is_list))
    named = set(_texts_in(record.get("intents")))
    traits = sum(1 << bit for bit, intent in enumerate(INTENTS) if intent in named)
    traits |= UNKNOWN_INTENT if named.difference(INTENTS) else 0
    traits |= INFLUENTIAL if record.get("isinfluential") is True else 0
    return int(number) if is_id(number) else NONE, citing, cited, traits


def _count_contexts(tally: Tally, *, kept: int, lists: int, faulty: int) -> None:
    tally.beside[CONTEXTS].update({KEPT: lists, NO_LIST: faulty, WITHOUT: kept - lists - faulty})


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts_in(item)
