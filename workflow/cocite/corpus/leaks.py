"""Check that the finished tables contain none of the excluded papers: by ids, by twins and by the words of titles.

The table `leaks` has a row for each column of corpus ids. The table `leaks_by_text` also covers validation queries, and
benchmarks with other ids, as far as training reads them. What is found counts once: by its id, else by a twin, else by
the words of its title; titles of one or two words, or of more than five papers, are too common to count.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pyarrow as pa
import typer
from duckdb import DuckDBPyConnection

from cocite.config.cuts import is_later
from cocite.core.database import connect
from cocite.core.errors import InputError, explain_unreadable
from cocite.core.options import MemoryMb, Output, Queries, Results, Threads
from cocite.core.progress import report
from cocite.core.tables import TABLES, Table, empty_schema
from cocite.core.tables.files import checked_files, count_rows, read_table, verified_files, write_table
from cocite.core.tables.papers import EXCLUDED, KEPT_OUT, LATER, VALIDATION, numbers_of, read_kept_out, with_papers
from cocite.core.tables.places import as_name, files_by_place
from cocite.core.written_ids import sql_of_text_id
from cocite.corpus.matching import add_titles
from cocite.corpus.same_work import SHARED_BY

STAGES = ("graph", "embeddings", "neighbours", "triplets")
CONTEXTS = "corpus/contexts/*.parquet"
IDS_NAMED = 5
READ, ASKED = ("training_documents", "validation_documents"), ("training_examples",)
"""The tables that training reads, and those that contain its queries."""
ANSWERS = "answers_of"
"""The column of the benchmarks whose answers a table contains."""

TOO_SHORT = 2
"""Words of the longest title that says nothing."""
EXAMPLES = 3

Documents = Annotated[
    Sequence[Path],
    typer.Option("--documents", help="Table documents of a benchmark, or its document_papers; repeat it for each."),
]

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
    db.execute("CREATE TABLE reads (id BIGINT, words INTEGER, key UBIGINT); CREATE TABLE asked (id BIGINT)")
    of_texts = "kind VARCHAR, name VARCHAR, text VARCHAR, id BIGINT, example VARCHAR"
    db.execute(f"CREATE TABLE sought ({of_texts}, words INTEGER, key UBIGINT)")


def _read_texts(db: DuckDBPyConnection, path: Path) -> None:
    """Add the titles in the rows of a file, or in the objects in them, to `reads`."""
    reader, file = "read_parquet" if path.suffix == ".parquet" else "read_json", {"file": escape(str(path))}
    rows = f"{reader}($file, hive_partitioning = false)"
    read = db.sql(f"FROM {rows}", params=file)
    columns = list(zip(read.columns, read.types, strict=True))
    objects = [("", columns, rows)]
    for name, of in columns:
        inner: Any = dict(of.children)["child"] if of.id == "list" else of
        each = f"(SELECT unnest({as_name(name)}) AS {as_name(name)} FROM {rows})" if of.id == "list" else rows
        objects.append((f"{as_name(name)}.", inner.children if inner.id == "struct" else [], each))
    selections = []
    for at, fields, of_rows in objects:
        # DuckDB cannot cast fields that are null in all rows of a Parquet file.
        keys = {name for name, of in fields if of.id not in ("null", "sqlnull")}
        abstract = f"{at}abstract::VARCHAR" if "abstract" in keys else "NULL"
        if "title" in keys:
            selections.append(f"SELECT {at}title::VARCHAR AS title, {abstract} AS abstract FROM {of_rows}")
    if not selections:
        raise InputError(f"{path}: no column is a title or an object with one, as query, pos and neg of triplets are.")
    text_id, texts = sql_of_text_id("title", "abstract", is_query=False), " UNION ALL ".join(selections)
    add_titles(db, "reads", f"SELECT {text_id} AS id, any_value(title) AS title FROM ({texts}) GROUP BY id", file)


def _add_documents(db: DuckDBPyConnection, documents: Sequence[Path]) -> None:
    """Add the documents of benchmarks to `sought`, with the papers that they are known to be. A document without a
    title that is no paper has the id of its text."""
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
            FROM known JOIN read_parquet($files, hive_partitioning = false) USING (document)
        """
        files = verified_files(path, "documents", ["document", "title", "abstract"])
        add_titles(db, "sought", rows, {"name": path.parent.name, "files": files})


def _found(db: DuckDBPyConnection) -> pa.Table:
    """The rows of the table leaks_by_text. Validation queries are only searched for among the training queries; all
    others in everything that training reads."""
    db.execute(f"""
        CREATE TABLE common AS
        SELECT key FROM (SELECT key, id FROM reads UNION SELECT key, id FROM sought WHERE kind = 'split')
        WHERE key IS NOT NULL GROUP BY key HAVING count(*) > {SHARED_BY}
    """)
    is_validation = f"kind = 'split' AND name = '{VALIDATION}'"
    queries = _FOUND.format(read="id IN (FROM asked)", sought=is_validation)
    others = _FOUND.format(read="true", sought=f"NOT ({is_validation})")
    return db.sql(f"FROM ({queries}) UNION ALL FROM ({others}) ORDER BY kind, name").to_arrow_table()


class Finished(NamedTuple):
    """A table on disk."""

    table: Table
    path: Path
    """Its file, or the folder of its buckets."""
    files: list[Path]
    columns: list[str]
    """The columns of corpus ids."""


def check_leaks(
    tables: Annotated[
        Sequence[Path], typer.Argument(help="Files of tables, or folders of their buckets. Default: all.")
    ] = (),
    *,
    results: Results,
    queries: Queries,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    by_text: Annotated[Path, typer.Option(help="Table leaks_by_text to write.")],
    documents: Documents = (),
    holdout_from: Annotated[str | None, typer.Option(help="First year or day of papers that are kept out.")] = None,
    without_twins: Annotated[
        bool, typer.Option("--without-twins", help="Whether all papers of a work but one are excluded as twins.")
    ] = False,
    oracles: Annotated[
        str, typer.Option(help="Sets with the answers of benchmarks, and the names of these benchmarks, as JSON.")
    ] = "{}",
) -> None:
    """Check that the finished tables contain no held-out or excluded paper; count twins and titles that training reads.

    Oracles contain documents of benchmarks on purpose: their rows are marked, and their texts are not compared. Raises
    `InputError` with the name of every column that has a leak, and then writes nothing.
    """
    answers_in: dict[str, list[str]] = json.loads(oracles)
    chosen = _choose(results, tables)
    kept_out = read_kept_out(queries)
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        db.register("kept_out", kept_out)
        db.read_parquet(verified_files(results / "corpus/twins.parquet", "twins")).create_view("twins")
        _forbid(db, results, holdout_from, without_twins)
        leaks: list[str] = []
        searched = [(one, row) for one in chosen for row in _search(db, one, results, answers_in, leaks)]
        if leaks:
            raise InputError("\n  ".join([f"Papers that {queries} keeps out are in finished tables:", *leaks]))
        compared = {one.path: one for one, row in searched if row[ANSWERS] is None}.values()
        _make_tables(db)
        _read_training(db, compared)
        _seek_splits(db, results, queries)
        _add_documents(db, documents)
        read_by_text = _found(db)
    rows = sorted((row for _, row in searched), key=lambda row: (row["path"], row["column_name"]))
    schema = empty_schema(TABLES["leaks"])
    if not answers_in:
        schema = schema.remove(schema.get_field_index(ANSWERS))
    write_table(output, "leaks", pa.Table.from_pylist(rows, schema))
    write_table(by_text, "leaks_by_text", read_by_text)
    checked = f"{len(chosen)} tables checked, {len(searched)} columns of corpus ids"
    report(f"{checked}: none of the {len(kept_out):,} papers that are kept out is in them.")
    for answers in sorted({(row["path"], row[ANSWERS]) for row in rows if row[ANSWERS]}):
        report("{} contains the answers of {}: it is an oracle, and so are models trained on it.".format(*answers))


def _read_training(db: DuckDBPyConnection, tables: Iterable[Finished]) -> None:
    """Fill `reads` with the documents that training reads, and `asked` with its queries."""
    documents = [one for one in tables if one.table.name in READ]
    if read := [file for one in documents for file in verified_files(one.files, one.table.name, ["title"])]:
        files = "read_parquet($files, hive_partitioning = false, union_by_name = true)"
        rows = f"SELECT corpusid AS id, any_value(title) AS title FROM {files} GROUP BY corpusid"
        add_titles(db, "reads", rows, {"files": read})
    if asked := [str(file) for one in tables if one.table.name in ASKED for file in one.files]:
        rows = "SELECT DISTINCT query FROM read_parquet($files, hive_partitioning = false)"
        db.execute(f"INSERT INTO asked {rows}", {"files": asked})


def _seek_splits(db: DuckDBPyConnection, results: Path, queries: Path) -> None:
    """Add the validation queries and the papers that are kept out to `sought`."""
    splits = ", ".join(f"'{split}'" for split in (VALIDATION, *KEPT_OUT))
    chosen = f"SELECT corpusid, split FROM read_parquet($queries, hive_partitioning = false) WHERE split IN ({splits})"
    rows = f"""
        SELECT 'split' AS kind, split AS name, corpusid::VARCHAR AS text, corpusid AS id, title AS example, title
        FROM ({chosen}) LEFT JOIN read_parquet($papers, hive_partitioning = false) USING (corpusid)
    """
    papers = verified_files(results / "corpus/papers", "papers", ["corpusid", "title"])
    add_titles(db, "sought", rows, {"queries": verified_files(queries, "queries"), "papers": papers})


def _forbid(db: DuckDBPyConnection, results: Path, holdout_from: str | None, without_twins: bool) -> None:
    """Make the table `forbidden`: the papers that are kept out or from `holdout_from` on, twins, and the sentences of
    one or that cite one. Twins of a paper may be read if it is excluded only for its year, or because another one
    represents the work."""
    papers = verified_files(results / "corpus/papers", "papers", ["corpusid", "year", "date"])
    is_from = "false" if holdout_from is None else is_later(holdout_from, ">=")
    later = f"SELECT corpusid, NULL FROM read_parquet($papers, hive_partitioning = false) WHERE {is_from}"
    kept = "SELECT corpusid AS id, NULL::BIGINT AS twin_of FROM kept_out"
    db.execute(f"CREATE TABLE forbidden AS {kept} UNION {later}", {"papers": papers})
    db.execute(f"""
        INSERT INTO forbidden
        SELECT twin.corpusid, min(kept.corpusid)
        FROM kept_out JOIN twins AS kept USING (corpusid) JOIN twins AS twin ON kept."group" = twin."group"
        WHERE split <> '{LATER}' AND NOT ({without_twins} AND split = '{EXCLUDED}' AND kept.corpusid <> kept."group")
        AND twin.corpusid NOT IN (SELECT id FROM forbidden) GROUP BY twin.corpusid
    """)
    if files := sorted(results.glob(CONTEXTS)):
        naming = """
            INSERT INTO forbidden
            WITH papers AS (SELECT id FROM forbidden)
            SELECT context, NULL FROM read_parquet($files, hive_partitioning = false) WHERE citing IN (FROM papers)
            UNION
            SELECT context, NULL
            FROM (SELECT context, unnest(cited) AS paper FROM read_parquet($files, hive_partitioning = false))
            WHERE paper IN (FROM papers)
        """
        db.execute(naming, {"files": verified_files(files, "contexts", ["citing", "cited", "context"])})


def _choose(results: Path, tables: Sequence[Path]) -> list[Finished]:
    """The tables of the stages in the results folder that have a column of corpus ids: these, or all."""
    on_disk: dict[Path, Finished] = {}
    for table in TABLES.values():
        columns = [name for name, column in table.columns.items() if column.of_papers]
        if columns and table.path.partition("/")[0] in STAGES:
            for files in files_by_place(results, table).values():
                path = files[0].parent if "{bucket}" in table.path else files[0]
                on_disk[path.resolve()] = Finished(table, path, checked_files(files, table.name), columns)
    for path in tables:
        if path.resolve() not in on_disk:
            raise InputError(f"{path}: is not the file or folder of a table of papers in {results}.")
    return [on_disk[path.resolve()] for path in tables or on_disk]


def _search(
    db: DuckDBPyConnection, one: Finished, results: Path, answers_in: Mapping[str, Sequence[str]], leaks: list[str]
) -> Iterator[dict[str, Any]]:
    """The row of the table leaks for each column of a table; forbidden entries are added to `leaks`."""
    path = one.path.relative_to(results).as_posix()
    rows, files = count_rows(one.files), verified_files(one.files, one.table.name, one.columns)
    stage, entry, *_ = path.split("/")
    answers = ", ".join(answers_in.get(entry, ())) if stage == "triplets" else ""
    for name in one.columns:
        id_ = f'unnest("{name}")' if pa.types.is_list(one.table.columns[name].type) else f'"{name}"'
        query = f"""
            SELECT count(*), (SELECT count(*) FROM kept_out), min(filename), count(DISTINCT id),
                list(DISTINCT [id, twin_of] ORDER BY [id, twin_of])[:{IDS_NAMED}]
            FROM (
                SELECT filename, {id_} AS id FROM read_parquet($files, hive_partitioning = false, filename = true)
            ) JOIN forbidden USING (id)
        """
        ((leaked, kept_out, file, count, ids),) = db.sql(query, params={"files": files}).fetchall()
        if leaked:
            papers = ", ".join(str(id_) if twin_of is None else f"{id_}, a twin of {twin_of}" for id_, twin_of in ids)
            more = ", …" if count > len(ids) else ""
            sentences = "; negative ids are of sentences that name one" if ids[0][0] < 0 else ""
            leaks.append(f"{file} (table {one.table.name}), column {name}: {count} ({papers}{more}{sentences})")
        described = {"path": path, "table_name": one.table.name, "rows": rows, "column_name": name}
        yield {**described, "kept_out": kept_out, "leaked": leaked, ANSWERS: answers or None}
