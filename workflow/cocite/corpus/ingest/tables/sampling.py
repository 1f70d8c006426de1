"""Before a run: the first citations of each file, looked up among all papers, so that a plan shows the misread ones."""

from collections.abc import Sequence
from pathlib import Path

import duckdb

from cocite.config.table_files import CitationTable, PaperTable
from cocite.core.tables.sql import as_text
from cocite.corpus.ingest.tables.cells import cells_of, cited_in, citing_in, paper_in
from cocite.corpus.ingest.tables.files import read_rows
from cocite.corpus.ingest.tables.outside import Cited, counted, explain, find_misread

FILES, ROWS = 20, 10_000
"""Files of citations that are sampled, and rows of each."""
MOST_BYTES = 4e9
"""Length of the files of papers beyond which a plan does not read them: that would take more than a minute."""


def shares_in_words(papers: PaperTable, citations: CitationTable, largest: float, *, numbers: bool) -> str:
    """What a plan says of the cited ids that are no paper; ids are compared as numbers or as texts."""
    files = [Path(path) for path in papers.paths()]
    if sum(path.stat().st_size for path in files) > MOST_BYTES:
        return "Which cited ids are no paper is counted by the run: the files of papers are too long for a plan."
    sampled = [Path(path) for path in citations.paths()[:FILES]]
    found = _sampled(papers, files, citations, sampled, numbers=numbers)
    misread = find_misread(found, largest)
    lines = [f"    {each.in_words} are no paper" for each in found]
    stop = [f"The run would stop. {explain(misread, largest)}"] if misread else []
    return "\n".join([f"In the first {ROWS:,} rows of each file of citations:", *lines, *stop])


def _sampled(
    papers: PaperTable, files: Sequence[Path], citations: CitationTable, sampled: Sequence[Path], *, numbers: bool
) -> list[Cited]:
    def one_form(text: str) -> str:
        return f"TRY_CAST({text} AS BIGINT)::VARCHAR" if numbers else text

    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE citations (shard VARCHAR, citing VARCHAR, cited VARCHAR)")
        connection.execute("CREATE TABLE papers (id VARCHAR)")
        for path in sampled:
            cells, columns = cells_of(citations, path), [citations.columns.citing, citations.columns.cited.column]
            statement = f"""
                INSERT INTO citations SELECT * FROM (
                    SELECT {as_text(str(path))}, {one_form("citing")} AS citing, {one_form("cited")} AS cited FROM (
                        SELECT {citing_in(citations, cells)} AS citing, unnest({cited_in(citations, cells)}) AS cited
                        FROM (FROM given LIMIT {ROWS})))
                WHERE citing <> cited
            """
            read_rows(connection, citations, path, columns, statement, batches=1)
        connection.execute("CREATE TABLE ends AS SELECT DISTINCT unnest([citing, cited]) AS id FROM citations")
        for path in files:
            paper = one_form(paper_in(papers, cells_of(papers, path)))
            look_up = f"""
                INSERT INTO papers SELECT id FROM (SELECT {paper} AS id FROM given) SEMI JOIN ends USING (id)
                UNION ALL SELECT min({paper}) FROM given HAVING min({paper}) IS NOT NULL -- an example of an id
            """
            read_rows(connection, papers, path, [papers.columns.id], look_up)
        return counted(connection)
