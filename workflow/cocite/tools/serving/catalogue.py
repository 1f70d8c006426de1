"""The titles of all papers, looked up by id and by words, from a small file beside the vectors' indexes.

SQLite finds words in the titles by its full-text index (FTS5). Rows stand in the order of how often papers are cited,
so that the first titles with some words are those of the best-known papers, and none has to be ranked.
"""

import re
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import duckdb

from cocite.core.progress import progress_bar

FILE = "papers.sqlite"
ROWS_AT_ONCE = 10_000
_TABLES = """
    CREATE TABLE papers (place INTEGER PRIMARY KEY, corpusid INTEGER NOT NULL, title TEXT, year INTEGER);
    CREATE VIRTUAL TABLE words USING fts5 (
        title, content = 'papers', content_rowid = 'place', tokenize = 'unicode61 remove_diacritics 2');"""
_INDEXES = """
    INSERT INTO words (rowid, title) SELECT place, title FROM papers WHERE title IS NOT NULL;
    INSERT INTO words (words) VALUES ('optimize');
    CREATE UNIQUE INDEX by_id ON papers (corpusid);"""
_PAPERS = "SELECT corpusid, title, year FROM papers ORDER BY citation_count DESC NULLS LAST, corpusid"
_WITH_WORDS = """
    SELECT corpusid, papers.title, year FROM words JOIN papers ON place = words.rowid
    WHERE words MATCH ? ORDER BY words.rowid LIMIT ?"""


@dataclass(frozen=True, kw_only=True)
class Paper:
    """What a list of papers shows of one."""

    corpusid: int
    title: str | None
    year: int | None


def make_catalogue(results: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Write the file of all papers of the view `papers` into a folder."""
    ((papers,),) = results.execute("SELECT count(*) FROM papers").fetchall()
    connection = sqlite3.connect(folder / FILE)
    try:
        connection.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_TABLES}")
        found = results.execute(_PAPERS)
        with progress_bar(of="list titles", unit="papers", total=papers) as bar:
            while rows := found.fetchmany(ROWS_AT_ONCE):
                connection.executemany("INSERT INTO papers (corpusid, title, year) VALUES (?, ?, ?)", rows)
                bar.update(len(rows))
        connection.commit()
        connection.executescript(_INDEXES)
    finally:
        connection.close()


class Catalogue:
    """The papers in a file that `make_catalogue` has written, which several threads may ask."""

    def __init__(self, folder: Path) -> None:
        where = f"{(folder / FILE).resolve().as_uri()}?mode=ro&immutable=1"
        self._connection = sqlite3.connect(where, uri=True, check_same_thread=False)
        self._lock = Lock()
        self.size: int = self._rows("SELECT count(*) FROM papers", ())[0][0]

    def papers(self, ids: Collection[int]) -> dict[int, Paper]:
        """Those of the papers of which the corpus has a record, by id."""
        marks = ", ".join("?" * len(ids))
        rows = self._rows(f"SELECT corpusid, title, year FROM papers WHERE corpusid IN ({marks})", tuple(ids))
        return {row[0]: _paper(row) for row in rows}

    def with_words(self, text: str, limit: int) -> list[Paper]:
        """The most cited papers whose titles have all words of a text; the last one may be the beginning of a word."""
        words = re.findall(r"\w+", text)
        if not words:
            return []
        # Within quotation marks, no word is an operator of the search.
        asked = " ".join(f'"{word}"' for word in words)
        return [_paper(row) for row in self._rows(_WITH_WORDS, (f"{asked}*", limit))]

    def _rows(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()


def _paper(row: tuple[Any, ...]) -> Paper:
    corpusid, title, year = row
    return Paper(corpusid=corpusid, title=title, year=year)
