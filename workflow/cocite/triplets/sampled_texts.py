"""Texts of examples that are no papers, such as short queries: written in the order of their ids, and found again.

A text's id follows from its content (`written_ids`), so ids are spread evenly. Texts come in any order and more than
once; they are dealt out to ranges of ids on the disk, and memory holds those of one range, however many there are.

Texts must not bring papers that are kept out back under another name. Titles are compared by their words, without
case, accents and punctuation; only hashes of them are held: eight bytes a paper.
"""

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.core.id_sets import Ids
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import checked_files, open_table, table_in, write_table
from cocite.core.tables.papers import read_kept_out
from cocite.core.written_ids import look_up, normalised, text_ids

SCHEMA = empty_schema(TABLES["sampled_texts"])
USER_SUPPLIED_QUERIES = pa.schema([("corpusid", pa.int64()), ("split", pa.string())])
RANGE_BITS = 6
ID_BITS = 62
"""Negative ids lie between −2⁶² and −1."""
ROWS_AT_ONCE = 50_000
"""Texts that are found together, and those of a row group."""


def texts_table(
    titles: Sequence[str | None], abstracts: Sequence[str | None], *, is_query: bool, among: Ids | None = None
) -> pa.Table:
    """The rows of `sampled_texts` for some texts, in their order; if given, of those whose ids are `among` some."""
    ids = text_ids(titles, abstracts, is_query=is_query)
    columns = [ids, titles, abstracts, np.full(len(titles), is_query)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    table = pa.table(arrays, SCHEMA.names)
    return table if among is None else table.filter(pa.array(np.isin(ids, among)))


def write_texts(output: Path, texts: Iterable[pa.RecordBatch]) -> int:
    """Write texts, each once, as the table `sampled_texts`; return how many there are."""
    from cocite.core.database import spill_folder

    with spill_folder(output.parent) as folder:
        paths = [Path(folder) / str(number) for number in range(1 << RANGE_BITS)]
        _deal_out(texts, paths)
        return write_table(output, "sampled_texts", (batch for path in paths for batch in _in_order(path)))


def _deal_out(texts: Iterable[pa.RecordBatch], paths: Sequence[Path]) -> None:
    """Write texts to the files of ranges of ids, from the lowest."""
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with ExitStack() as stack:
        files = [stack.enter_context(pa.ipc.new_stream(str(path), SCHEMA, options=options)) for path in paths]
        for some in _gathered(texts):
            numbers = (some["text"].to_numpy() + (1 << ID_BITS)) >> (ID_BITS - RANGE_BITS)
            order = np.argsort(numbers, kind="stable")
            ends = np.searchsorted(numbers[order], np.arange(len(files) + 1))
            for file, first, last in zip(files, ends[:-1], ends[1:], strict=True):
                if first < last:
                    file.write_table(some.take(pa.array(order[first:last])))


def _gathered(texts: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Some batches at a time as one table with the declared columns."""
    held: list[pa.RecordBatch] = []
    for batch in texts:
        held.append(batch.select(SCHEMA.names).cast(SCHEMA))
        if sum(map(len, held)) >= ROWS_AT_ONCE:
            yield pa.Table.from_batches(held).combine_chunks()
            held = []
    if held:
        yield pa.Table.from_batches(held).combine_chunks()


def _in_order(path: Path) -> Iterator[pa.RecordBatch]:
    """The texts of a range by their ids, each once."""
    with pa.ipc.open_stream(str(path)) as file:
        rows = file.read_all()
    yield from _first_of_each(rows, "text").combine_chunks().to_batches(ROWS_AT_ONCE)


def _first_of_each(rows: pa.Table, column: str) -> pa.Table:
    """The first of the rows that have the same value in a column, in its order."""
    return rows.take(pa.array(np.unique(rows[column].to_numpy(), return_index=True)[1]))


def user_supplied_queries(sets: Sequence[Path]) -> pa.Table:
    """The queries of some sets that are texts: their ids, rising, and the split of each."""
    found = [USER_SUPPLIED_QUERIES.empty_table()]
    for path in sets:
        for batch in open_table(path, table_in(path)).iter_batches(columns=["query", "split"]):
            texts = pa.Table.from_batches([batch.filter(pc.less(batch["query"], 0))])
            found.append(texts.rename_columns(USER_SUPPLIED_QUERIES.names))
    return _first_of_each(pa.concat_tables(table.cast(USER_SUPPLIED_QUERIES) for table in found), "corpusid")


def find_texts(wanted: Ids, found: NDArray[np.bool_], files: Sequence[Path]) -> Iterator[pa.RecordBatch]:
    """The texts that are wanted, by their rising ids, from tables `sampled_texts`; their places in `found` become true.

    Row groups that hold none of them are not read.
    """
    opened = [open_table(path, "sampled_texts") for path in files]
    for first in range(0, len(wanted), ROWS_AT_ONCE):
        ids = wanted[first : first + ROWS_AT_ONCE]
        is_found = np.zeros(len(ids), dtype=bool)
        pieces = [SCHEMA.empty_table()]
        for file in opened:
            for number in range(file.num_row_groups):
                bounds = file.metadata.row_group(number).column(0).statistics
                if bounds.min <= ids[-1] and bounds.max >= ids[0]:
                    rows = file.read_row_group(number, SCHEMA.names)
                    place, is_asked = look_up(ids, rows["text"].to_numpy())
                    is_new = is_asked & ~is_found[place]
                    is_found[place[is_new]] = True
                    pieces.append(rows.filter(pa.array(is_new)).cast(SCHEMA))
        found[first : first + ROWS_AT_ONCE] = is_found
        yield from pa.concat_tables(pieces).sort_by("text").combine_chunks().to_batches()


@dataclass(frozen=True, kw_only=True)
class Titles:
    """The titles of some papers."""

    hashes: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    """Rising."""
    longest: int = 0
    """Characters of the longest one, as it is compared."""

    def __contains__(self, title: str | None) -> bool:
        """Whether a text is one of them."""
        # Few texts are so short: of the others, none is normalised.
        if not title or len(self.hashes) == 0 or len(title) > 2 * self.longest + 100:
            return False
        hashed = np.uint64(_hash(normalised(title)))
        place = int(np.searchsorted(self.hashes, hashed))
        return place < len(self.hashes) and self.hashes[place] == hashed


def kept_out_titles(papers: Path, queries: Path) -> Titles:
    """The titles of the papers that are held out or excluded, from the folder of the table papers."""
    ids = read_kept_out(queries)["corpusid"].combine_chunks()
    hashes, longest = array("Q"), 0
    for path in checked_files(papers, "papers") if len(ids) else ():
        for batch in open_table(path, "papers").iter_batches(columns=["corpusid", "title"]):
            titles = batch["title"].filter(pc.is_in(batch["corpusid"], value_set=ids)).drop_null()
            for text in filter(None, map(normalised, titles.to_pylist())):
                hashes.append(_hash(text))
                longest = max(longest, len(text))
    return Titles(hashes=np.unique(np.array(hashes, dtype=np.uint64)), longest=longest)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
