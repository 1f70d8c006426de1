"""A paper that a question is about: its id, and what it is called."""

import duckdb

from cocite.errors import InputError

NO_RECORD = "of which the corpus has no record"
LARGEST = 2**63 - 1
"""The largest corpus id that the tables have room for."""


def corpus_id(text: str) -> int:
    """The corpus id that a text is. Raises `InputError` where it is none, or too large for one."""
    if not text.strip().isdecimal():
        raise InputError(f"{text!r} is no corpus id, which is a whole number such as 100000047.")
    paper = int(text)
    if paper > LARGEST:
        raise InputError(f"{text.strip()} is too large for a corpus id: none has more than 19 digits.")
    return paper


def known_as(db: duckdb.DuckDBPyConnection, paper: int) -> str | None:
    """Title and year of a paper; none where the corpus has no record of it, as of many that are cited."""
    if db.execute("FROM duckdb_views() WHERE view_name = 'papers' AND temporary").fetchall():
        return "whose title is not known without the table papers"
    records = db.execute("SELECT title, year FROM papers WHERE corpusid = $paper", {"paper": paper}).fetchall()
    if not records:
        return None
    title, year = records[0]
    return (f"“{title}”" if title else "without a title") + (f" ({year})" if year else "")
