"""What two tables of a user have: their columns, how much there is to learn from, and where to cut by time."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cocite.config.settings import parse_settings, validated
from cocite.config.table_files import ENDINGS, CitationTable, CsvFormat, PaperTable, TableFiles
from cocite.core.database import connect, number
from cocite.core.errors import InputError
from cocite.core.tables.places import as_text
from cocite.corpus.ingest.cells import cells_of, cited_in, citing_in, paper_in, stripped
from cocite.corpus.ingest.outside import Cited, counted, explain, find_misread
from cocite.corpus.ingest.user_files import check_columns, columns_in, read_rows
from cocite.corpus.ingest.user_tables import YEAR

Ask = Callable[[str, Sequence[str], str | None], str]
"""Asks which of some columns is meant; with a default, if it is not needed."""
OF_PAPERS = {
    "id": "id paperid articleid corpusid openalexid omid pmid doi key",
    "title": "title papertitle articletitle displayname name",
    "abstract": "abstract abstracttext paperabstract summary",
    "year": "year publicationyear pubyear publicationdate pubdate published date",
}
OF_CITATIONS = {
    "citing": f"citing citingid citingpaperid citingcorpusid citingdoi citingpmid from source {OF_PAPERS['id']}",
    "cited": "cited citedid citedpaperid citedcorpusid citeddoi citedpmid referenced to target references cite "
    "referencedworks",
}
USUAL_NAMES = {"papers": OF_PAPERS, "citations": OF_CITATIONS}
"""Table → key of a column → its usual names, the likeliest first, without case, spaces and signs. A table of papers
with lists of references can be that of citations, too."""
NEEDED = ("id", "title", "citing", "cited")
REFERENCES = 5
"""Papers that a held-out paper must cite: as many as a benchmark ranks."""
LEARNING, MEASURING = 100, 30
"""Held-out papers from which a ranking can be learned, and by which it can be measured, at least."""
OUTSIDE = 0.999
"""As the default of corpus.outside."""
_FEW_ABSTRACTS = "2 * count_if(has_abstract) < count(*)"
_PAPERS = f"""
    CREATE TABLE records AS
    SELECT id, max({YEAR}) AS year,
        bool_or(has_title) IS TRUE AS has_title, bool_or(has_abstract) IS TRUE AS has_abstract
    FROM rows WHERE id IS NOT NULL GROUP BY id;
    CREATE VIEW papers AS SELECT id FROM records;
    CREATE VIEW texts AS SELECT id, year FROM records
    WHERE has_title AND (has_abstract OR (SELECT {_FEW_ABSTRACTS} FROM records));
"""
"""Papers, and those with a title and an abstract, or with a title if fewer than half have an abstract."""
_UNREAD_YEARS = f"SELECT count(*), min(year) FROM rows WHERE trim(year) <> '' AND {YEAR} IS NULL"
_LINKS = """
    DELETE FROM citations WHERE citing IS NULL OR cited IS NULL OR citing = cited;
    CREATE TABLE links AS SELECT DISTINCT citing, cited FROM citations
    SEMI JOIN papers AS one ON citing = one.id SEMI JOIN papers AS two ON cited = two.id;
"""
_CUTS = f"""
    WITH spans AS (
        SELECT list_sort(list(earlier.year))[{REFERENCES}] + 1 AS first, any_value(paper.year) AS last
        FROM links JOIN texts AS paper ON citing = paper.id JOIN texts AS earlier ON cited = earlier.id
        WHERE paper.year IS NOT NULL AND earlier.year IS NOT NULL
        GROUP BY paper.id HAVING count(*) >= {REFERENCES}
    ), cuts AS (
        SELECT year AS cut, sum(count(*)) OVER (ORDER BY year DESC) / sum(count(*)) OVER () AS later
        FROM records WHERE year IS NOT NULL GROUP BY year
    )
    SELECT cut, count(last) FROM cuts LEFT JOIN spans ON cut BETWEEN first AND last
    WHERE later BETWEEN 0.1 AND 0.3 GROUP BY cut ORDER BY cut DESC
"""
"""The years to cut at, the last first, and how many papers from then on cite enough papers from before."""
_BY_CHANCE = f"""
    SELECT count(*) FROM (
        SELECT citing FROM links SEMI JOIN texts AS one ON citing = one.id SEMI JOIN texts AS two ON cited = two.id
        WHERE citing IN (SELECT cited FROM links GROUP BY cited HAVING count(*) > 1)
        GROUP BY citing HAVING count(*) >= {REFERENCES})
"""
SEPARATORS = ";|, "
"""Signs that may separate the ids in a cell."""
_BETWEEN = f"""
    WITH known AS (SELECT lower(id) AS id FROM rows),
        cells AS (SELECT lower(cited) AS id FROM citations WHERE contains(cited, {{sign}})),
        items AS (SELECT {stripped("unnest(string_split(id, {sign}))")} AS id FROM cells)
    SELECT (SELECT count(*) FROM items SEMI JOIN known USING (id))
        - (SELECT count(*) FROM cells SEMI JOIN known USING (id))
"""
"""How many more papers are cited if cells are split at a sign."""
_SPLIT = f"""
    CREATE OR REPLACE TABLE citations AS
    SELECT shard, citing, nullif({stripped("unnest(string_split(cited, {sign}))")}, '') AS cited FROM citations
"""
_IN_TWO_CASES = r"""
    SELECT count(DISTINCT id) > count(DISTINCT lower(id))
    FROM (SELECT id FROM rows UNION ALL SELECT unnest([citing, cited]) FROM citations)
    WHERE regexp_matches(id, '(?i)^(doi:|https?://(dx\.)?doi\.org/)?10\.')
"""
_TO_LOWERCASE = """
    UPDATE rows SET id = lower(id);
    UPDATE citations SET citing = lower(citing), cited = lower(cited);
"""
_OTHER_IDS = """
    SELECT count(*) FROM (SELECT id FROM papers UNION ALL SELECT unnest([citing, cited]) FROM citations)
    WHERE (TRY_CAST(id AS BIGINT)::VARCHAR = id AND id NOT LIKE '-%') IS NOT TRUE
"""


@dataclass(frozen=True, kw_only=True)
class Survey:
    """Counts of what two tables have."""

    papers: int
    texts: int
    are_titles_enough: bool
    """Whether fewer than half of the papers have an abstract."""
    citations: int
    links: int
    """Distinct citations between two of the papers."""
    other_ids: int
    """Ids that are no whole numbers."""
    separator: str | None
    """The sign between the cited ids in a cell, if they are lists that were written as text."""
    are_in_two_cases: bool
    """Whether a DOI is written in uppercase and in lowercase letters."""
    unread_years: int
    unread_year: str
    """One of the years that cannot be read."""
    cut: int | None
    """First year of the later papers; none if time cannot be cut."""
    later: int
    """Papers from then on that can be held out."""
    by_chance: int
    """Papers that can be held out by chance."""


def files_of(files: str) -> TableFiles:
    """A table in some files. Raises `InputError` if they cannot be named so, or if there are none."""
    table = parse_settings(TableFiles, json.dumps({"files": files}), "A table")
    if not table.paths():
        raise InputError(f"There is no file {files}; name another, or a pattern of several, such as 'papers/*.csv'.")
    return table


def described(kind: str, files: str, given: Mapping[str, str], ask: Ask | None = None) -> tuple[dict[str, Any], Any]:
    """A table as a configuration describes it, with the columns that are given, have a usual name, or are asked for;
    and the entry that this becomes. Raises `InputError` if a column that is needed is unknown."""
    written: dict[str, Any] = {"files": files}
    table = files_of(files)
    paths = [Path(path) for path in table.paths()]
    if (form := table.format_of(str(paths[0]))) is None:
        endings = ", ".join(ENDINGS)
        raise InputError(f"{paths[0]}: the name of a table must end in {endings}, or in one of them and .gz.")
    if isinstance(form, CsvFormat):  # other delimiters show in a header that is read as one column
        header = columns_in(validated(TableFiles, written | {"format": {"kind": "csv", "quotes": False}}), paths[0])
        if len(header) == 1 and (sign := next((sign for sign in ";\t|" if sign in header[0]), None)):
            written["format"] = {"kind": "csv", "delimiter": sign}
    found = columns_in(validated(TableFiles, written), paths[0])
    plain = {re.sub(r"[\W_]", "", name).lower(): name for name in reversed(found)}
    columns: dict[str, str] = {}
    for key, usual in USUAL_NAMES[kind].items():
        name = given.get(key) or next((plain[each] for each in usual.split() if each in plain), None)
        if name is None and ask:
            name = ask(f"Which column of {files} is `{key}`?", found, None if key in NEEDED else "")
        elif name is None and key in NEEDED:
            lacks = f"{files} has no column that is clearly `{key}`; it has {', '.join(found)}"
            raise InputError(f"{lacks}. Name one with --column {key}=…, or another table.")
        columns |= {key: name} if name else {}
    if kind == "papers" and "doi" not in columns and (name := plain.get("doi")):
        columns["doi"] = name  # it may be the id as well
    written["columns"] = columns
    entry = validated(PaperTable if kind == "papers" else CitationTable, written)
    check_columns(entry, paths, key=f"corpus.{kind}")
    return written, entry


def survey(papers: PaperTable, citations: CitationTable, *, spill_to: Path, cores: int, memory_mb: int) -> Survey:
    """Count what two tables have, on some cores and in some MB. Raises `InputError` if they write ids differently."""
    with connect(memory_mb=memory_mb, threads=cores, spill_to=spill_to) as connection:
        connection.execute("CREATE TABLE rows (id VARCHAR, has_title BOOLEAN, has_abstract BOOLEAN, year VARCHAR)")
        named = [papers.columns.title, papers.columns.abstract, papers.columns.year]
        for path in map(Path, papers.paths()):
            cells = cells_of(papers, path)
            title, abstract, year = (cells.value(name) if name else "NULL" for name in named)
            query = f"SELECT {paper_in(papers, cells)}, trim({title}) <> '', trim({abstract}) <> '', {year} FROM given"
            read_rows(connection, papers, path, [papers.columns.id, *filter(None, named)], f"INSERT INTO rows {query}")
        connection.execute("CREATE TABLE citations (shard VARCHAR, citing VARCHAR, cited VARCHAR)")
        for path in map(Path, citations.paths()):
            cells, ends = cells_of(citations, path), [citations.columns.citing, citations.columns.cited.column]
            pairs = f"SELECT {citing_in(citations, cells)}, unnest({cited_in(citations, cells)}) FROM given"
            query = f"SELECT {as_text(str(path))}, * FROM ({pairs})"
            read_rows(connection, citations, path, ends, f"INSERT INTO citations {query}")
        between = {sign: number(connection, _BETWEEN.format(sign=as_text(sign))) for sign in SEPARATORS}
        separator = max(SEPARATORS, key=between.__getitem__)
        if is_split := between[separator] > 0:
            connection.execute(_SPLIT.format(sign=as_text(separator)))
        if are_in_two_cases := bool(number(connection, _IN_TWO_CASES)):
            connection.execute(_TO_LOWERCASE)
        connection.execute(_PAPERS + _LINKS)
        if misread := find_misread([Cited(**row) for row in counted(connection).to_pylist()], OUTSIDE):
            raise InputError(explain(misread, OUTSIDE))
        ((unread_years, unread_year),) = connection.execute(_UNREAD_YEARS).fetchall()
        cuts = connection.sql(_CUTS).fetchall()
        cut, later = next((each for least in (LEARNING, MEASURING) for each in cuts if each[1] >= least), (None, 0))
        counts = ("papers", "texts", "citations", "links")
        return Survey(
            **{name: number(connection, f"SELECT count(*) FROM {name}") for name in counts},
            are_titles_enough=bool(number(connection, f"SELECT {_FEW_ABSTRACTS} FROM records")),
            other_ids=number(connection, _OTHER_IDS),
            separator=separator if is_split else None,
            are_in_two_cases=are_in_two_cases,
            unread_years=unread_years,
            unread_year=unread_year,
            cut=cut,
            later=later,
            by_chance=number(connection, _BY_CHANCE),
        )
