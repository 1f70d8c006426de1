"""Read papers and abstracts from the blocks of a shard: Arrow hands lines to DuckDB, which hands rows back.

Rows gather in memory and leave sorted by bucket, so that the rows of a bucket are contiguous.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from cocite.core.database import connect
from cocite.corpus.ingest.accounting import (
    BLANK,
    KEPT,
    MALFORMED,
    MalformedError,
    Tally,
    fault_of_line,
    parse_record,
    quoted,
)
from cocite.corpus.ingest.records import Records
from cocite.corpus.ingest.unpacking import BYTES_IN_BLOCK, Block, gather

BYTES_AT_ONCE = 8 * BYTES_IN_BLOCK
"""Text that one query reads: DuckDB's threads share it. A block with a long line can be as much by itself."""
SHARE_IN_MEMORY = 0.1
"""Share of the memory that rows fill before they are cut by bucket; sorting them takes as much again, twice."""


def read_documents(
    blocks: Iterable[Block], tally: Tally, records: Records, *, buckets: int, memory_mb: int, threads: int, spill: Path
) -> Iterator[pa.RecordBatch]:
    """The table of the records, a batch a bucket, some at a time; every line is counted."""
    (key, *_) = records.columns
    with connect(memory_mb=memory_mb // 2, threads=threads, spill_to=spill) as connection:
        texts = gather(map(lines_of, blocks), BYTES_AT_ONCE)
        tables = (_read_lines(connection, records, tally, some) for some in texts)
        for gathered in gather(tables, SHARE_IN_MEMORY * memory_mb * 1e6):
            yield from cut_by_bucket(key, buckets, gathered)
            gathered.clear()


def lines_of(block: Block) -> pa.StringArray:
    """The lines of a block as strings; one that is not UTF-8 becomes a null."""
    text = block.text[: block.length].tobytes()
    ends = np.flatnonzero(block.text[: block.length] == ord("\n")) + 1
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    lines = pa.StringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(text))
    try:
        lines.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array(map(_decoded, text.split(b"\n")[:-1]), pa.string())
    return lines


def _decoded(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


def _read_lines(
    connection: duckdb.DuckDBPyConnection, records: Records, tally: Tally, texts: list[pa.StringArray]
) -> pa.Table:
    """The rows of the records that are kept; every line is counted."""
    lines = pa.chunked_array(texts)
    connection.register("lines", pa.table({"line": lines, "place": np.arange(len(lines))}))
    rows = connection.sql(_query(records)).to_arrow_table()
    outcomes = [KEPT, BLANK, MALFORMED, *records.omissions]
    outcome = rows.column("outcome").to_numpy()
    malformed = np.sort(rows.column("place").to_numpy()[outcome == outcomes.index(MALFORMED)])
    lines_before = tally.lines
    for place in malformed.tolist():
        tally.note_malformed(lines_before + place + 1, _fault(lines[place].as_py(), records))
    counts = np.bincount(outcome, minlength=len(outcomes)).tolist()
    tally.outcomes.update({name: n for name, n in zip(outcomes, counts, strict=True) if name != MALFORMED})
    return rows.filter(pa.array(outcome == outcomes.index(KEPT))).select(list(records.columns))


def _query(records: Records) -> str:
    """Query for the columns of the records in `lines`, and the outcome of each line as a number."""
    columns = ", ".join(f"{expression} AS {name}" for name, expression in records.columns.items())
    (key, *_) = records.columns
    malformed = " OR ".join([f"{key} IS NULL", *map(_is_no_text, records.texts)])
    is_blank = r"NOT valid AND regexp_full_match(line, '\s*')"
    return f"""
        SELECT {", ".join(records.columns)}, place, {outcome_of(is_blank, malformed, records.omissions)} AS outcome
        FROM (
            SELECT place, line, valid, {columns} FROM (
                SELECT *, CASE WHEN valid THEN json_transform(line, '{records.structure}') END AS record
                FROM (SELECT *, json_valid(line) AS valid FROM lines)
            )
        )
    """


def outcome_of(is_blank: str, is_malformed: str, omissions: Mapping[str, str]) -> str:
    """SQL expression for the outcome of a row: 0 kept, 1 blank, 2 malformed, and from 3 on the omissions."""
    conditions = (is_blank, is_malformed, *omissions.values())
    outcomes = " ".join(f"WHEN {condition} THEN {number}" for number, condition in enumerate(conditions, start=1))
    return f"(CASE {outcomes} ELSE 0 END)::UTINYINT"


def _is_no_text(name: str) -> str:
    """SQL expression: whether a text is a list or an object, of which DuckDB gives the JSON; few need to be parsed."""
    return f"CASE WHEN {name}[1] IN ('[', '{{') THEN json_type(line, '$.{name}') IN ('ARRAY', 'OBJECT') ELSE false END"


def _fault(line: str | None, records: Records) -> str:
    (key, *_) = records.columns
    try:
        record = {} if line is None else parse_record(line.encode(), (key,), null_ids=False)
    except MalformedError as error:
        return str(error)
    for name in records.texts:
        if isinstance(record.get(name), list | dict):
            return f"{name} is {quoted(record[name])}, not text"
    return fault_of_line(line)


def cut_by_bucket(key: str, buckets: int, gathered: list[pa.Table]) -> list[pa.RecordBatch]:
    """The rows of each bucket that has any, by the id in the column `key`."""
    rows = pa.concat_tables(gathered)
    bucket = (rows.column(key).to_numpy() % buckets).astype(np.uint16)
    order = np.argsort(bucket, kind="stable")
    starts = np.searchsorted(bucket[order], np.arange(buckets + 1)).tolist()
    sorted_rows = rows.append_column("bucket", pa.array(bucket)).take(order).combine_chunks()
    cuts = (sorted_rows.slice(start, stop - start) for start, stop in pairwise(starts) if stop > start)
    return [batch for rows in cuts for batch in rows.to_batches()]
