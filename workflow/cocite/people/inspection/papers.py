"""A paper that a question is about: its id, and what it is called."""

import duckdb

from cocite.ground.errors import InputError
from cocite.ground.written_ids import LARGEST_ID, is_id

NO_RECORD = "of which the corpus has no record"


def corpus_id(text: str) -> int:
    """The corpus id that a text is. Raises `InputError` where it is none, or too large for one."""
    written = text.strip()
    if not is_id(written):
        raise InputError(f"{written} is not a corpus id; it must be a whole number from 0 to {LARGEST_ID:,}.")
    return int(written)


def known_as(db: duckdb.DuckDBPyConnection, paper: int) -> str | None:
    """Title and year of a paper; none where the corpus has no record of it, as of many that are cited."""
    if db.execute("FROM duckdb_views() WHERE view_name = 'papers' AND temporary").fetchall():
        return "whose title is not known without the table papers"
    records = db.execute("SELECT title, year FROM papers WHERE corpusid = $paper", {"paper": paper}).fetchall()
    if not records:
        return None
    title, year = records[0]
    return (f"“{title}”" if title else "without a title") + (f" ({year})" if year else "")
