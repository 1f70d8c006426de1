"""The contents of results: a list of their tables, the first rows of one, and its rows about a paper. The views over
the tables are in memory, over the files that exist in the folder, whether its run is finished or not."""

import difflib
import re
import shlex
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from glob import escape
from pathlib import Path

import duckdb
import pyarrow as pa

from cocite.config.started import program
from cocite.core.errors import InputError
from cocite.core.progress import byte_size, report
from cocite.core.tables import ID, TABLES, Table
from cocite.core.tables.files import checked_files
from cocite.core.tables.places import NUMBERS, SHARDS, Place, as_text, files_by_place, rows_of
from cocite.core.written_ids import LARGEST_ID, is_id
from cocite.plan.recorded import configuration_of, configured_in
from cocite.tools.answers import Answer, fetched

ROWS = 20
"""Default number of rows if the output is not a terminal."""
FRAME = 5
"""Lines of a terminal for the heading, the names of columns, and what is left out."""
WHOLE = 1000
"""More characters than any meaning has."""
NO_RECORD = "of which the corpus has no record"


def list_tables(db: duckdb.DuckDBPyConnection, results: Path, *, for_people: bool) -> Answer:
    """Every table that has a view: rows, size, columns and meaning. Raises `InputError` if there is none."""
    rows = []
    for name in viewed_tables(db):
        try:
            ((count,),) = db.execute(f"SELECT count(*) FROM {name}").fetchall()
            length = sum(path.stat().st_size for paths in _places(results, TABLES[name]).values() for path in paths)
            columns = [column for column, *_ in db.execute(f"DESCRIBE {name}").fetchall()]
            rows.append((name, count, length, columns, TABLES[name].description))
        except (duckdb.Error, FileNotFoundError) as error:
            _report_left_out(name, error)
    if not rows:
        raise InputError(f"{results} holds no tables yet; start a run, or name the folder of another with --results.")
    heading = f"{len(rows)} tables in {results}"
    if not for_people:
        return Answer(heading, ["table", "rows", "bytes", "columns", "meaning"], rows)
    shown = [
        (name, f"{count:,}", byte_size(length, ".3g"), f"{meaning}\n({', '.join(columns)})")
        for name, count, length, columns, meaning in rows
    ]
    return Answer(heading, ["table", "rows", "size", "what it holds (its columns)"], shown, WHOLE)


def columns_of(name: str) -> Answer:
    """The columns of a table, those from its files' paths first. Raises `InputError` if there is no such table."""
    if name not in TABLES:
        raise InputError(f"There is no table {name}; {_similar(name) or 'there are ' + ', '.join(TABLES) + '.'}")
    table = TABLES[name]
    in_path = [each for each in re.findall(r"{(\w+)}", table.path) if each not in (*SHARDS, *table.columns)]
    rows = [(each, "int32" if each in NUMBERS else "string", f"the {each} whose table it is") for each in in_path]
    for each, column in table.columns.items():
        of = column.type
        rows.append((each, f"list of {of.value_type}" if pa.types.is_list(of) else str(of), column.meaning))
    return Answer(f"{name}: {table.description}", ["column", "type", "meaning"], rows, WHOLE)


def first_rows(
    db: duckdb.DuckDBPyConnection,
    results: Path,
    table: Table,
    of: str | None,
    limit: int | None,
    where: str | None = None,
    order: str | None = None,
) -> Answer:
    """The first rows of a table, as many as fit the terminal without a limit: of all graphs, embeddings and so on, or
    of one; `where` and `order` are SQL. Raises `InputError` if the SQL is wrong."""
    places = _chosen_places(results, table, of)
    limit = limit or max(1, shutil.get_terminal_size((0, ROWS + FRAME)).lines - FRAME)
    sql = f"SELECT * FROM {table.name} WHERE ({_condition(places)})"
    sql += (f" AND ({where})" if where else "") + (f" ORDER BY {order}" if order else "")
    try:
        columns, rows = fetched(db.execute(f"{sql} LIMIT {limit}"))
    except duckdb.Error as error:
        if where or order:
            raise InputError(f"--where or --order: {str(error).partition(chr(10))[0]}") from None
        raise
    heading = f"{table.name}: {'its first rows' if rows else 'it has no such rows' if where else 'it has no rows'}"
    heading += f"{' of ' + _described(places[0]) if of else ''} (--columns describes the columns)"
    return Answer(heading, columns, rows, fits=True)


def named_table(results: Path, name: str) -> Table:
    """The table of this name. Raises `InputError` with the existing ones if these results have none."""
    if name in TABLES and _places(results, TABLES[name]):
        return TABLES[name]
    if name in TABLES and files_by_place(results, TABLES[name]):
        raise InputError(f"{results} holds table {name} only for entries that its configuration no longer has.")
    present = [table.name for table in TABLES.values() if _places(results, table)]
    choices = f"there are {', '.join(present) or 'none at all'}."
    if name in TABLES:
        raise InputError(f"{results} holds no table {name} yet; {choices}")
    raise InputError(f"{results} holds no table {name}; {_similar(name) or choices}")


def _similar(name: str) -> str:
    close = difflib.get_close_matches(name.lower(), TABLES, n=1)
    return f"did you mean {close[0]}?" if close else ""


def _chosen_places(results: Path, table: Table, of: str | None) -> list[Place]:
    """The places of a table that `of` names: a graph, for example, or model/seed; without it, all places."""
    places = {place: [value for _, value in place] for place in _places(results, table)}
    chosen = [place for place, named in places.items() if of in (None, "/".join(named), *named)]
    if not chosen:
        raise InputError(f"There is no table {table.name} of {of!r}; --of can be {_choices(places)}.")
    return chosen


def _places(results: Path, table: Table) -> dict[Place, list[Path]]:
    """The files of a table of the configured entries."""
    return files_by_place(results, table, configured_in(configuration_of(results)))


def _condition(places: list[Place]) -> str:
    return " OR ".join(" AND ".join(["true", *(f'"{name}" = {as_text(of)}' for name, of in it)]) for it in places)


def _described(place: Place) -> str:
    return ", ".join(f"{name} {value}" for name, value in place)


def _choices(places: Iterable[Place]) -> str:
    names = ["/".join(value for _, value in place) for place in places if place]
    return " or ".join(names) or "left out: there is only one"


def corpus_id(text: str) -> int:
    """The corpus id in a text. Raises `InputError` if the text is not one, or the number is too large."""
    written = text.strip()
    if not is_id(written):
        raise InputError(f"{written} is not a corpus id; it must be a whole number from 0 to {LARGEST_ID:,}.")
    return int(written)


def known_as(db: duckdb.DuckDBPyConnection, paper: int) -> str | None:
    """Title and year of a paper; None if the corpus has no record of it, as of many cited papers."""
    if db.execute("FROM duckdb_views() WHERE view_name = 'papers' AND temporary").fetchall():
        return "whose title is not known without the table papers"
    record = db.execute("SELECT title, year FROM papers WHERE corpusid = $paper", {"paper": paper}).fetchone()
    if record is None:
        return None
    title, year = record
    return (f"“{title}”" if title else "without a title") + (f" ({year})" if year else "")


_PAIRS = """
    SELECT if(paper = $paper, other, paper) AS corpusid, count, strength,
        row_number() OVER (ORDER BY coalesce(strength, count) DESC, count DESC, corpusid) AS place
    FROM chosen WHERE paper = $paper OR other = $paper"""

RELATIONS = {
    "cocitations": _PAIRS,
    "couplings": _PAIRS,
    "citations": """
    SELECT if(citing = $paper, cited, citing) AS corpusid, if(citing = $paper, 'cited', 'citing') AS role,
        influential, intents, row_number() OVER (ORDER BY influential DESC, role, corpusid) AS place
    FROM chosen WHERE citing = $paper OR cited = $paper""",
    "edges": """
    SELECT if(source = $paper, target, source) AS corpusid, if(source = $paper, 'target', 'source') AS role, weight,
        row_number() OVER (ORDER BY weight DESC, role, corpusid) AS place
    FROM chosen WHERE source = $paper OR target = $paper""",
    "neighbours": """
    SELECT neighbour AS corpusid, rank, distance, rank AS place FROM chosen WHERE query = $paper""",
}
"""Table → the papers related to one paper: corpus ids, their columns, and their place from the strongest on."""

_WITH_TITLES = """
    SELECT found.* EXCLUDE place, papers.year, papers.title
    FROM found LEFT JOIN papers USING (corpusid) ORDER BY place"""

_TRIPLETS = """
    SELECT positive, positive_rank, p.title AS positive_title, negative, negative_rank, negative_kind,
        n.title AS negative_title
    FROM chosen LEFT JOIN papers p ON p.corpusid = positive LEFT JOIN papers n ON n.corpusid = negative
    WHERE query = $paper ORDER BY positive_rank, positive, negative LIMIT $limit"""


def rows_about(
    db: duckdb.DuckDBPyConnection, results: Path, table: Table, paper: int, of: str | None, limit: int
) -> Answer:
    """The rows of the table about a paper: related papers with their titles, or the rows that contain it. Raises
    `InputError` if the table has no corpus ids, `of` fits several places, or the paper is not in it."""
    ids = {name: column.type for name, column in table.columns.items() if column.of_papers}
    if not ids:
        raise InputError(f"Table {table.name} holds no corpus ids; leave --paper out to see its first rows.")
    places = _chosen_places(results, table, of)
    if len(places) > 1:
        raise InputError(f"There are several tables {table.name}: choose one with --of {_choices(places)}.")
    if table.name == "triplets":
        query = _TRIPLETS
    elif table.name in RELATIONS:
        query = f", found AS ({RELATIONS[table.name]} ORDER BY place LIMIT $limit) {_WITH_TITLES}"
    else:
        holds = (f"{name} = $paper" if kind == ID else f"$paper IN {name}" for name, kind in ids.items())
        query = f"SELECT * FROM chosen WHERE {' OR '.join(holds)} LIMIT $limit"
    chosen = f"WITH chosen AS (FROM {table.name} WHERE {_condition(places)})"
    columns, rows = fetched(db.execute(f"{chosen} {query}", {"paper": paper, "limit": limit}))
    whose = f"{table.name}{' of ' + _described(places[0]) if places[0] else ''}"
    title = known_as(db, paper)
    if not rows and title is None:
        raise InputError(f"There is no paper {paper} in the corpus, nor in {whose}.")
    if not rows:
        where = "which holds queries alone" if table.key[0] == "query" else f"in no column of {' or '.join(ids)}"
        raise InputError(f"Paper {paper}, {title}, is not in {whose}, {where}.")
    cut = f", the first {limit} (--limit gives more)" if len(rows) == limit else ""
    return Answer(f"Paper {paper}, {title or NO_RECORD}: {whose}{cut}", columns, rows)


@contextmanager
def open_results(results: Path, tables: Collection[str] | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Views over the tables of these names that have files, or over all, in a bounded memory; `papers` may be empty.
    A file that cannot be read is left out and named. Raises `InputError` if reading fails later."""
    configured = configured_in(configuration_of(results))
    with (
        tempfile.TemporaryDirectory(prefix="cocite-") as spill,
        duckdb.connect(config={"memory_limit": "2GB", "temp_directory": spill}) as database,
    ):
        for table in TABLES.values():
            if tables is None or table.name in tables:
                _make_view(database, table, files_by_place(results, table, configured))
        try:
            yield database
        except duckdb.Error as error:
            raise changed_files(results, error) from error


def viewed_tables(db: duckdb.DuckDBPyConnection) -> list[str]:
    """The names of the tables that have a view, in the order of the stages."""
    views = db.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal AND NOT temporary").fetchall()
    return [name for name in TABLES if (name,) in views]


def changed_files(results: Path, error: duckdb.Error) -> InputError:
    """The error if a table could be opened and not read."""
    what = f"a file is broken, or was replaced while it was read ({str(error).splitlines()[0]})"
    return InputError(f"{results}: {what}; `{checking_command(results)}` names what is broken.")


def _make_view(database: duckdb.DuckDBPyConnection, table: Table, places: Mapping[Place, list[Path]]) -> None:
    def listed(paths: Collection[Path]) -> str:
        return f"[{', '.join(as_text(escape(str(path))) for path in paths)}]"

    try:
        if rows := {place: kept for place, paths in places.items() if (kept := _readable(paths, table.name))}:
            database.execute(f"CREATE VIEW {table.name} AS {rows_of(table, rows, listed)}")
            return
    except (InputError, duckdb.Error) as error:
        _report_left_out(table.name, error)
    if table.name == "papers":
        columns = ", ".join(f"NULL AS {name}" for name in table.columns)
        database.execute(f"CREATE TEMP VIEW papers AS SELECT {columns} WHERE false")


def _report_left_out(table: str, error: Exception) -> None:
    report(f"Left out: table {table}, a file of which is broken or being replaced ({str(error).splitlines()[0]})")


def checking_command(results: Path) -> str:
    """The command that finds broken files."""
    return f"{program('cocite', Path.cwd())} check --results {shlex.quote(str(results))}"


def _readable(paths: Iterable[Path], table: str) -> list[Path]:
    """The readable files of a table; the others are reported."""
    kept: list[Path] = []
    for path in paths:
        try:
            kept += checked_files(path, table)
        except InputError as error:
            report(f"Left out: {error}")
    return kept
