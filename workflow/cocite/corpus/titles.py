"""Titles as they are compared: by hashes of their words, which DuckDB joins and spills."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from duckdb import DuckDBPyConnection

from cocite.corpus.same_work import title_words

TITLES_AT_ONCE = 8_192


def add_titles(db: DuckDBPyConnection, table: str, rows: str, given: Mapping[str, Any]) -> None:
    """Add the rows of a query to a table, which is made if there is none, by the words of their titles.

    The column `title` becomes `words`, their number, and `key`, their hash, which is null if there are none.
    """
    empty = f"SELECT * EXCLUDE title, 0::INTEGER AS words, NULL::UBIGINT AS key FROM ({rows}) LIMIT 0"
    db.execute(f"CREATE TABLE IF NOT EXISTS {table} AS {empty}", given)
    with db.cursor() as reading:
        for batch in reading.sql(rows, params=given).to_arrow_reader(TITLES_AT_ONCE):
            words = [title_words(title) for title in batch["title"].to_pylist()]
            counts, joined = pa.array(map(len, words), pa.int32()), pa.array(map("".join, words), pa.string())
            columns = {name: batch[name] for name in batch.schema.names if name != "title"}
            db.register("batch", pa.table(columns | {"words": counts, "joined": joined}))
            db.execute(f"INSERT INTO {table} SELECT * EXCLUDE joined, if(words > 0, hash(joined), NULL) FROM batch")
            db.unregister("batch")
