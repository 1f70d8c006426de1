"""Excluded papers, validation queries and benchmark documents that training reads: by id, by twin and by title.

Training reads the papers and the texts in triplets/*/documents. Each paper or document that is found counts once: by
its id, else by a twin of it (table twins), else by the words of its title. Titles of one or two words, or of more than
five papers, are too common to count. Validation queries are only searched for among the training queries.
"""

from collections.abc import Iterable, Sequence
from glob import escape
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from duckdb import DuckDBPyConnection

from cocite.core.database import connect
from cocite.core.errors import InputError, explain_unreadable
from cocite.core.options import MemoryMb, Output, Threads
from cocite.core.progress import report
from cocite.core.tables.files import read_table, verified_files, write_table
from cocite.core.tables.papers import KEPT_OUT, VALIDATION, numbers_of, with_papers
from cocite.core.written_ids import sql_of_text_id
from cocite.corpus.matching import add_titles
from cocite.corpus.same_work import SHARED_BY

TOO_SHORT = 2
"""Words of the longest title that says nothing."""
EXAMPLES = 3

Documents = Annotated[
    Sequence[Path],
    typer.Option("--documents", help="Table documents of a benchmark, or its document_papers; repeat it for each."),
]

_COMMON = f"""
    CREATE TABLE common AS
    SELECT key FROM (SELECT key, id FROM reads UNION SELECT key, id FROM sought WHERE kind = 'split')
    WHERE key IS NOT NULL GROUP BY key HAVING count(*) > {SHARED_BY}
"""
_FOUND = f"""
    WITH read AS (SELECT id, key, words <= {TOO_SHORT} OR key IN (FROM common) AS is_common FROM reads WHERE {{read}}),
    works AS (SELECT "group" FROM twins SEMI JOIN read ON corpusid = id),
    marked AS (
        SELECT kind, name, text, any_value(example) AS title, CASE
            WHEN bool_or(id IN (SELECT id FROM read)) THEN 'id'
            WHEN bool_or("group" IN (FROM works)) THEN 'twin'
            WHEN bool_or(key IN (SELECT key FROM read WHERE NOT is_common)) THEN 'title'
            WHEN bool_or(key IN (SELECT key FROM read WHERE is_common)) THEN 'too common'
        END AS found_by
        FROM sought LEFT JOIN twins ON id = corpusid WHERE {{sought}} GROUP BY kind, name, text
    )
    SELECT kind, name, count(*) AS texts, count(*) FILTER (found_by = 'id') AS by_id,
        count(*) FILTER (found_by = 'twin') AS by_twin, count(*) FILTER (found_by = 'title') AS by_title,
        count(*) FILTER (found_by = 'too common') AS common_title, coalesce(min_by(
            concat_ws(': ', text, title), array_position(['title', 'twin', 'id'], found_by) || text, {EXAMPLES}
        ) FILTER (found_by <> 'too common'), []) AS examples
    FROM marked GROUP BY kind, name
"""


def read_in_training(
    db: DuckDBPyConnection,
    results: Path,
    queries: Path,
    *,
    read: Sequence[str],
    asked: Sequence[str],
    documents: Sequence[Path],
) -> pa.Table:
    """The rows of the table leaks_by_text, given the files of the documents that are read, and of training's examples.

    Needs the view `twins`.
    """
    _make_tables(db)
    if read:
        rows = "SELECT corpusid AS id, any_value(title) AS title FROM read_parquet($files, union_by_name = true)"
        add_titles(db, "reads", f"{rows} GROUP BY corpusid", {"files": list(read)})
    if asked:
        db.execute("INSERT INTO asked SELECT DISTINCT query FROM read_parquet($files)", {"files": list(asked)})
    splits = ", ".join(f"'{split}'" for split in (VALIDATION, *KEPT_OUT))
    chosen = f"SELECT corpusid, split FROM read_parquet($queries) WHERE split IN ({splits})"
    rows = f"""
        SELECT 'split' AS kind, split AS name, corpusid::VARCHAR AS text, corpusid AS id, title AS example, title
        FROM ({chosen}) LEFT JOIN read_parquet($papers) USING (corpusid)
    """
    papers = verified_files(results / "corpus/papers", "papers", ["corpusid", "title"])
    add_titles(db, "sought", rows, {"queries": verified_files(queries, "queries"), "papers": papers})
    _add_documents(db, documents)
    return _found(db)


def compare_texts(
    texts: Annotated[
        Sequence[Path],
        typer.Argument(
            help="Parquet or JSON Lines whose rows have a title, or objects or lists of objects with one, such as "
            "query, pos and neg."
        ),
    ],
    *,
    documents: Documents,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Count the documents of benchmarks whose titles occur in texts, such as published triplets.

    Raises `InputError` for a file that cannot be read.
    """
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        _make_tables(db)
        db.execute('CREATE TABLE twins (corpusid BIGINT, "group" BIGINT)')
        for path in texts:
            with explain_unreadable(path, "file of texts"):
                _read_texts(db, path)
        _add_documents(db, documents)
        found = _found(db)
    write_table(output, "leaks_by_text", found)
    for row in found.to_pylist():
        report("{name}: {by_title:,} of {texts:,} documents by title, {common_title:,} titles too common".format(**row))


def _make_tables(db: DuckDBPyConnection) -> None:
    db.execute("CREATE TABLE reads (id BIGINT, words INTEGER, key UBIGINT)")
    of_texts = "kind VARCHAR, name VARCHAR, text VARCHAR, id BIGINT, example VARCHAR"
    db.execute(f"CREATE TABLE sought ({of_texts}, words INTEGER, key UBIGINT)")
    db.execute("CREATE TABLE asked (id BIGINT)")


def _read_texts(db: DuckDBPyConnection, path: Path) -> None:
    """Add the titles in the rows of a file, or in the objects in them, to `reads`."""
    rows, file = f"{'read_parquet' if path.suffix == '.parquet' else 'read_json'}($file)", {"file": escape(str(path))}
    read = db.sql(f"FROM {rows}", params=file)
    keys = _keys(zip(read.columns, read.types, strict=True))
    titled = [("", keys, rows)] if "title" in keys else []
    for name, of in zip(read.columns, read.types, strict=True):
        objects: Any = dict(of.children)["child"] if of.id == "list" else of
        keys = _keys(objects.children) if objects.id == "struct" else set()
        if "title" in keys:
            each = f'(SELECT unnest("{name}") AS "{name}" FROM {rows})' if of.id == "list" else rows
            titled.append((f'"{name}".', keys, each))
    if not titled:
        raise InputError(f"{path}: no column is a title or an object with one, as query, pos and neg of triplets are.")
    texts = " UNION ALL ".join(
        f"SELECT {at}title::VARCHAR AS title, {f'{at}abstract::VARCHAR' if 'abstract' in keys else 'NULL'} AS abstract "
        f"FROM {of_rows}"
        for at, keys, of_rows in titled
    )
    text_id = sql_of_text_id("title", "abstract", is_query=False)
    add_titles(db, "reads", f"SELECT {text_id} AS id, any_value(title) AS title FROM ({texts}) GROUP BY id", file)


def _keys(columns: Iterable[tuple[str, Any]]) -> set[str]:
    """The names of columns that have a type; DuckDB cannot cast those that are null in all rows of a Parquet file."""
    return {name for name, of in columns if of.id not in ("null", "sqlnull")}


def _add_documents(db: DuckDBPyConnection, documents: Sequence[Path]) -> None:
    """Add the documents of benchmarks to `sought`, with the papers that they are known to be.

    A document without a title that is no paper has the id of its text.
    """
    for path, found in with_papers(documents):
        db.register("numbers", numbers_of(path))
        known = "SELECT document, number AS id FROM numbers"
        if found:
            db.register("papers_of", read_table(found, "document_papers", ["document", "corpusid"]))
            known = "SELECT document, corpusid AS id FROM numbers LEFT JOIN papers_of USING (document)"
        db.execute(f"CREATE OR REPLACE TABLE known AS {known}")
        of_text = sql_of_text_id("title", "abstract", is_query=False)
        rows = f"""
            SELECT 'benchmark' AS kind, $name AS name, document AS text,
                if(id IS NULL AND title IS NULL AND abstract IS NOT NULL, {of_text}, id) AS id, title AS example, title
            FROM known JOIN read_parquet($files) USING (document)
        """
        files = verified_files(path, "documents", ["document", "title", "abstract"])
        add_titles(db, "sought", rows, {"name": path.parent.name, "files": files})


def _found(db: DuckDBPyConnection) -> pa.Table:
    """The rows of the table leaks_by_text."""
    db.execute(_COMMON)
    is_validation = f"kind = 'split' AND name = '{VALIDATION}'"
    queries = _FOUND.format(read="id IN (FROM asked)", sought=is_validation)
    others = _FOUND.format(read="true", sought=f"NOT ({is_validation})")
    return db.sql(f"FROM ({queries}) UNION ALL FROM ({others}) ORDER BY kind, name").to_arrow_table()
