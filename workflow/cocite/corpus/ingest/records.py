"""Read records of papers and abstracts from the blocks of a shard: Arrow hands lines to DuckDB, which hands rows back.

A column is one SQL expression; both generations of the release are read by the same. Texts of white space only become
null, as do numbers that their column cannot store. Rows gather in memory and leave sorted by bucket. Citations have a
separate reader (`citations.py`).
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from cocite.core.database import connect
from cocite.core.written_ids import DIGITS
from cocite.corpus.ingest.accounting import BLANK, KEPT, MALFORMED, Tally, fault_of_record
from cocite.corpus.ingest.unpacking import BYTES_IN_BLOCK, Block, gather

BYTES_AT_ONCE = 8 * BYTES_IN_BLOCK
"""Text that one query reads: DuckDB's threads share it. A block with a long line can be as much by itself."""
SHARE_IN_MEMORY = 0.1
"""Share of the memory that rows fill before they are cut by bucket; sorting them takes as much again, twice."""


@dataclass(frozen=True, kw_only=True)
class Records:
    """One dataset: the columns taken from its records, and the records omitted."""

    structure: Mapping[str, Any]
    """The keys that are read and their types, as DuckDB's json_transform takes them."""
    columns: dict[str, str]
    """Column → expression over `record`, the structure filled from one line. Buckets are cut by the first."""
    texts: tuple[str, ...] = ()
    """Columns of text, named as the keys that they are taken from: a list or an object there is a fault."""
    omissions: Mapping[str, str] = field(default_factory=dict)
    """Reason → condition over the columns, for omitted rows; a row counts for its first reason."""


def sql_of_id(text: str) -> str:
    """SQL expression: the id that a text is, null for anything else."""
    # A plain cast would round 12.7, and take true for 1; a remainder of negative ids is no bucket.
    return f"CASE WHEN regexp_full_match({text}, '{DIGITS}') THEN TRY_CAST({text} AS BIGINT) END"


def sql_of_year(expression: str) -> str:
    """SQL expression: a year from 1000 to 2099, null for any other: one slip would make all papers look old."""
    return f"CASE WHEN {expression} BETWEEN 1000 AND 2099 THEN {expression} END"


NOT_BLANK = r"[^\s\v\x85\pZ]"
"""A character other than white space. In this syntax, \\s is ASCII white space without the vertical tab."""


def not_blank(expression: str) -> str:
    """SQL expression: a text, null if it is only white space."""
    return f"CASE WHEN regexp_matches({expression}, '{NOT_BLANK}') THEN {expression} END"


_FIELDS = """list_filter(
    coalesce(list_transform(record.s2fieldsofstudy, lambda field: field.category), []),
    lambda name, place: name <> ''
        AND list_position(list_transform(record.s2fieldsofstudy, lambda field: field.category), name) = place
)"""

_AUTHORS = f"""list_filter(
    list_transform(coalesce(record.authors, []), lambda author: {not_blank("author.name")}),
    lambda name: name IS NOT NULL
)"""

PAPERS = Records(
    structure={
        "corpusid": "VARCHAR",
        "title": "VARCHAR",
        "year": "SMALLINT",
        "publicationdate": "VARCHAR",
        "venue": "VARCHAR",
        "s2fieldsofstudy": [{"category": "VARCHAR"}],
        "externalids": {"DOI": "VARCHAR"},
        "citationcount": "INTEGER",
        "referencecount": "INTEGER",
    },
    columns={
        "corpusid": sql_of_id("record.corpusid"),
        "title": not_blank("record.title"),
        "year": sql_of_year("record.year"),
        "date": "TRY_CAST(regexp_extract(record.publicationdate, '^[0-9]{4}-[0-9]{2}-[0-9]{2}') AS DATE)",
        "venue": not_blank("record.venue"),
        "fields": _FIELDS,
        "doi": not_blank("record.externalids.DOI"),
        "citation_count": "record.citationcount",
        "reference_count": "record.referencecount",
    },
    texts=("title", "venue"),
)

PAPERS_WITH_AUTHORS = replace(
    PAPERS,
    structure={**PAPERS.structure, "authors": [{"name": "VARCHAR"}]},
    columns={**PAPERS.columns, "authors": _AUTHORS},
)

ABSTRACTS = Records(
    structure={"corpusid": "VARCHAR", "abstract": "VARCHAR"},
    columns={"corpusid": sql_of_id("record.corpusid"), "abstract": not_blank("record.abstract")},
    texts=("abstract",),
    omissions={"empty abstracts": "abstract IS NULL"},
)


def read_documents(
    blocks: Iterable[Block], tally: Tally, records: Records, *, buckets: int, memory_mb: int, threads: int, spill: Path
) -> Iterator[pa.RecordBatch]:
    """The table of the records, a batch a bucket, some at a time; every line is counted."""
    (key, *_) = records.columns
    with connect(memory_mb=memory_mb // 2, threads=threads, spill_to=spill) as connection:
        texts = gather(map(lines_of, blocks), BYTES_AT_ONCE)
        tables = (_read_lines(connection, records, tally, some) for some in texts)
        for gathered in gather(tables, SHARE_IN_MEMORY * memory_mb * 1e6):
            yield from cut_by_bucket(key, buckets, pa.concat_tables(gathered))
            gathered.clear()


def lines_of(block: Block) -> pa.StringArray:
    """The lines of a block as strings; one that is not UTF-8 becomes a null."""
    text = block.text[: block.length].tobytes()
    ends = np.flatnonzero(block.text[: block.length] == ord("\n")) + 1
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    lines = pa.StringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(text))
    with suppress(pa.ArrowInvalid):
        lines.validate(full=True)
        return lines
    decoded: list[str | None] = []
    for line in text.split(b"\n")[:-1]:
        try:
            decoded.append(line.decode())
        except UnicodeDecodeError:
            decoded.append(None)
    return pa.array(decoded, pa.string())


def _read_lines(
    connection: duckdb.DuckDBPyConnection, records: Records, tally: Tally, texts: list[pa.StringArray]
) -> pa.Table:
    """The rows of the records that are kept; every line is counted."""
    lines = pa.chunked_array(texts)
    connection.register("lines", pa.table({"line": lines, "place": np.arange(len(lines))}))
    columns = ", ".join(f"{expression} AS {name}" for name, expression in records.columns.items())
    (key, *_) = records.columns
    # DuckDB gives the JSON of a list or an object in place of a text; few lines need to be parsed again for it.
    no_text = [
        f"CASE WHEN {name}[1] IN ('[', '{{') THEN json_type(line, '$.{name}') IN ('ARRAY', 'OBJECT') ELSE false END"
        for name in records.texts
    ]
    is_blank, is_malformed = r"NOT valid AND regexp_full_match(line, '\s*')", " OR ".join([f"{key} IS NULL", *no_text])
    outcome = outcome_of(is_blank, is_malformed, records.omissions)
    rows = connection.sql(f"""
        SELECT {", ".join(records.columns)}, place, {outcome} AS outcome
        FROM (SELECT place, line, valid, {columns} FROM (
            SELECT *, CASE WHEN valid THEN json_transform(line, '{json.dumps(records.structure)}') END AS record
            FROM (SELECT *, json_valid(line) AS valid FROM lines)
        ))
    """).to_arrow_table()
    outcomes, found = [KEPT, BLANK, MALFORMED, *records.omissions], rows.column("outcome").to_numpy()
    malformed = np.sort(rows.column("place").to_numpy()[found == outcomes.index(MALFORMED)])
    lines_before = tally.lines
    for place in malformed.tolist():
        tally.note_malformed(lines_before + place + 1, fault_of_record(lines[place].as_py(), key, records.texts))
    counts = np.bincount(found, minlength=len(outcomes)).tolist()
    tally.outcomes.update({name: n for name, n in zip(outcomes, counts, strict=True) if name != MALFORMED})
    return rows.filter(pa.array(found == outcomes.index(KEPT))).select(list(records.columns))


def outcome_of(is_blank: str, is_malformed: str, omissions: Mapping[str, str]) -> str:
    """SQL expression for the outcome of a row: 0 kept, 1 blank, 2 malformed, and from 3 on the omissions."""
    conditions = (is_blank, is_malformed, *omissions.values())
    outcomes = " ".join(f"WHEN {condition} THEN {number}" for number, condition in enumerate(conditions, start=1))
    return f"(CASE {outcomes} ELSE 0 END)::UTINYINT"


def cut_by_bucket(key: str, buckets: int, rows: pa.Table) -> list[pa.RecordBatch]:
    """The rows of each bucket that has any, by the id in the column `key`."""
    bucket = (rows.column(key).to_numpy() % buckets).astype(np.uint16)
    order = np.argsort(bucket, kind="stable")
    starts = np.searchsorted(bucket[order], np.arange(buckets + 1)).tolist()
    sorted_rows = rows.add_column(0, "bucket", pa.array(bucket)).take(order).combine_chunks()
    cuts = (sorted_rows.slice(start, stop - start) for start, stop in pairwise(starts) if stop > start)
    return [batch for rows in cuts for batch in rows.to_batches()]
