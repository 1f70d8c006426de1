"""Read citations from the blocks of a shard with the scanner, and odd lines with Python's parser.

Rows gather in memory by the million and leave sorted by bucket, so that what a bucket needs later lies together.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.config.aspects import INTENTS
from cocite.core.tables import ID
from cocite.core.written_ids import is_id
from cocite.corpus.ingest.accounting import BLANK, KEPT, MalformedError, Tally, parse_record
from cocite.corpus.ingest.contexts import Gathered, count_contexts, list_of_texts
from cocite.corpus.ingest.records import INFLUENTIAL, UNKNOWN_INTENT
from cocite.corpus.ingest.scanning import (
    NO_CITED,
    NO_CITING,
    NO_TEXTS,
    NONE,
    SELF,
    overlapping_words,
    scan_citations,
    scatter_by_bucket,
)
from cocite.corpus.ingest.unpacking import Block

IDS = ("citingcorpusid", "citedcorpusid")
LEFT_OUT = {
    NO_CITING: "citations without a citing id",
    NO_CITED: "citations without a cited id",
    SELF: "citations of a paper by itself",
}
ROWS_IN_MEMORY = 1 << 21
ODD_LINES_AT_ONCE = 1 << 12
LISTS_AT_ONCE = 1 << 14
"""Rows that are scanned at once where their contexts are gathered, more than a block has most of the time."""

Rows = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]
"""Citation ids (−1 where the release has none), citing ids, cited ids, traits."""


def read_citations(
    blocks: Iterable[Block], tally: Tally, *, buckets: int, keep_ids: bool, contexts: Gathered | None = None
) -> Iterator[pa.RecordBatch]:
    """The table `ingested_citations`, a batch a bucket, some million rows at a time; every line is counted.

    Citation ids are null unless `keep_ids`: only updates need them. `contexts` gathers the contexts of the citations
    that are kept. A batch is valid until the next one is asked for: new memory would have to be cleared by the kernel,
    which takes as long as sorting.
    """
    rows, sorted_rows, written = _empty_rows(ROWS_IN_MEMORY), _empty_rows(ROWS_IN_MEMORY), 0
    for block in blocks:
        position = 0
        while position < block.length:
            position, written = _scan(block, position, rows, written, tally, contexts=contexts)
            if written >= ROWS_IN_MEMORY:
                yield from _cut_by_bucket(_first(rows, written), _first(sorted_rows, written), buckets, keep_ids)
                written = 0
    yield from _cut_by_bucket(_first(rows, written), _first(sorted_rows, written), buckets, keep_ids)


def read_citation_ids(blocks: Iterable[Block], tally: Tally) -> Iterator[NDArray[np.int64]]:
    """The citation id of every line, also of lines that give no row; lines without one are malformed."""
    for block in blocks:
        position = 0
        while position < block.length:
            rows = _empty_rows(ODD_LINES_AT_ONCE)
            position, written = _scan(block, position, rows, 0, tally, ids_only=True)
            yield rows[0][:written]


def _empty_rows(count: int) -> Rows:
    """Memory for so many rows, and for those of odd lines beyond."""
    ids = (np.empty(count + ODD_LINES_AT_ONCE, dtype=np.int64) for _ in range(3))
    return (*ids, np.empty(count + ODD_LINES_AT_ONCE, dtype=np.uint8))  # type: ignore[return-value]


def _first(rows: Rows, count: int) -> Rows:
    return tuple(column[:count] for column in rows)  # type: ignore[return-value]


def _scan(
    block: Block,
    start: int,
    rows: Rows,
    written: int,
    tally: Tally,
    *,
    ids_only: bool = False,
    contexts: Gathered | None = None,
) -> tuple[int, int]:
    """Append rows until memory is full or the block ends; return where it stopped and how many rows there are now."""
    counts, odd = np.zeros(len(LEFT_OUT) + 1, dtype=np.int64), np.empty((ODD_LINES_AT_ONCE, 2), dtype=np.uint64)
    places = np.empty((LISTS_AT_ONCE if contexts else 0, 2), dtype=np.uint64)
    room = tuple(column[written : len(column) - ODD_LINES_AT_ONCE] for column in rows)
    words, bounds = overlapping_words(block.text), (np.uint64(start), np.uint64(block.length))
    stop, found, skipped = scan_citations(words, *bounds, room, odd, counts, ids_only, places)
    number, counted = tally.lines, start
    tally.outcomes[KEPT] += found
    tally.outcomes.update({LEFT_OUT[place]: int(count) for place, count in enumerate(counts[: len(LEFT_OUT)])})
    if contexts:
        lists = int(np.count_nonzero(places[:found, 1]))
        contexts.add(words, places, room, count=found, lists=lists)
        count_contexts(tally, kept=found, lists=lists, faulty=int(counts[NO_TEXTS]))
    written += found
    for first, after in odd[:skipped].tolist():
        number += int(np.count_nonzero(block.text[counted:after] == ord("\n")))
        counted = after
        line = block.text[first:after].tobytes()
        if not line.strip():
            tally.outcomes[BLANK] += 1
            continue
        try:
            row = _read_odd_id(line, tally) if ids_only else _read_odd(line, tally, contexts)
        except MalformedError as error:
            tally.note_malformed(number, str(error))
            continue
        if row is not None:
            for place, value in enumerate(row):
                rows[place][written] = value
            written += 1
    return int(stop), written


def _read_odd(line: bytes, tally: Tally, contexts: Gathered | None) -> tuple[int, ...] | None:
    """The row of a line that the scanner leaves to Python, if it gives one; the line is counted."""
    record = parse_record(line, IDS, null_ids=True)
    citing, cited = (record[key] for key in IDS)
    left_out = NO_CITING if citing is None else NO_CITED if cited is None else SELF if citing == cited else None
    tally.outcomes[KEPT if left_out is None else LEFT_OUT[left_out]] += 1
    if left_out is not None:
        return None
    if contexts:
        texts = list_of_texts(record.get("contexts"))
        if texts:
            contexts.add_list(citing, cited, texts)
        count_contexts(tally, kept=1, lists=int(bool(texts)), faulty=int(texts is None))
    return _citation_id(record), citing, cited, _traits(record)


def _read_odd_id(line: bytes, tally: Tally) -> tuple[int, ...]:
    number = parse_record(line, ("citationid",), null_ids=False)["citationid"]
    tally.outcomes[KEPT] += 1
    return (number,)


def _citation_id(record: dict[str, Any]) -> int:
    number: Any = record.get("citationid")
    return int(number) if is_id(number) else NONE


def _traits(record: dict[str, Any]) -> int:
    """Influence and intents as the bits that the scanner gives."""
    named = set(_texts_in(record.get("intents")))
    intents = sum(1 << bit for bit, intent in enumerate(INTENTS) if intent in named)
    unknown = UNKNOWN_INTENT if named.difference(INTENTS) else 0
    return intents | unknown | (INFLUENTIAL if record.get("isinfluential") is True else 0)


def _texts_in(value: Any) -> Iterator[str]:
    """The texts in lists, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts_in(item)


def _cut_by_bucket(rows: Rows, sorted_rows: Rows, buckets: int, keep_ids: bool) -> list[pa.RecordBatch]:
    """The rows of each bucket that has any, in the memory of `sorted_rows`."""
    starts = scatter_by_bucket(rows, buckets, sorted_rows)
    citationid, citing, cited, traits = sorted_rows
    batch = pa.record_batch(
        {
            "bucket": np.repeat(np.arange(buckets, dtype=np.uint16), np.diff(starts)),
            "citationid": pa.array(citationid, mask=citationid == NONE) if keep_ids else pa.nulls(len(citing), ID),
            "citing": citing,
            "cited": cited,
            "traits": traits,
        }
    )
    return [batch.slice(start, stop - start) for start, stop in pairwise(starts.tolist()) if stop > start]
