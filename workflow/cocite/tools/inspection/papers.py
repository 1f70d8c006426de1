"""What a table knows of one paper: its strongest co-citations, its neighbours, its triplets, with their titles.

A relation is a query on its table that gives the related papers, strongest first. Any other table with corpus ids shows
the rows that contain the paper.
"""

from pathlib import Path

import duckdb

from cocite.core.errors import InputError
from cocite.core.tables import ID, Table
from cocite.core.written_ids import LARGEST_ID, is_id
from cocite.tools.inspection.answers import Answer, fetched
from cocite.tools.inspection.tables import condition, described, one_place

NO_RECORD = "of which the corpus has no record"


def corpus_id(text: str) -> int:
    """The corpus id in a text. Raises `InputError` where the text is not one, or the number is too large."""
    written = text.strip()
    if not is_id(written):
        raise InputError(f"{written} is not a corpus id; it must be a whole number from 0 to {LARGEST_ID:,}.")
    return int(written)


def known_as(db: duckdb.DuckDBPyConnection, paper: int) -> str | None:
    """Title and year of a paper; None where the corpus has no record of it, as for many cited papers."""
    if db.execute("FROM duckdb_views() WHERE view_name = 'papers' AND temporary").fetchall():
        return "whose title is not known without the table papers"
    records = db.execute("SELECT title, year FROM papers WHERE corpusid = $paper", {"paper": paper}).fetchall()
    if not records:
        return None
    title, year = records[0]
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
    """What the table holds of a paper.

    Raises `InputError` where the table has no corpus ids, where `of` fits several, or where the paper is not in it.
    """
    if not _ids(table):
        raise InputError(f"Table {table.name} holds no corpus ids; leave --paper out to see its first rows.")
    place = one_place(results, table, of)
    chosen = f"WITH chosen AS (FROM {table.name} WHERE {condition([place])})"
    columns, rows = fetched(db.execute(f"{chosen} {_query(table)}", {"paper": paper, "limit": limit}))
    whose = f"{table.name}{' of ' + described(place) if place else ''}"
    title = known_as(db, paper)
    if not rows and title is None:
        raise InputError(f"There is no paper {paper} in the corpus, nor in {whose}.")
    if not rows:
        raise InputError(f"Paper {paper}, {title}, is not in {whose}, {_where(table)}.")
    cut = f", the first {limit} (--limit gives more)" if len(rows) == limit else ""
    return Answer(f"Paper {paper}, {title or NO_RECORD}: {whose}{cut}", columns, rows)


def _query(table: Table) -> str:
    """The query on the rows of the table that are `chosen`."""
    if table.name == "triplets":
        return _TRIPLETS
    if table.name in RELATIONS:
        return f", found AS ({RELATIONS[table.name]} ORDER BY place LIMIT $limit) {_WITH_TITLES}"
    holds = (f"{name} = $paper" if table.columns[name].type == ID else f"$paper IN {name}" for name in _ids(table))
    return f"SELECT * FROM chosen WHERE {' OR '.join(holds)} LIMIT $limit"


def _ids(table: Table) -> list[str]:
    return [name for name, column in table.columns.items() if column.of_papers]


def _where(table: Table) -> str:
    return "which holds queries alone" if table.key[0] == "query" else f"in no column of {' or '.join(_ids(table))}"
