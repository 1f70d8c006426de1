"""How many of the cited ids are no paper, file by file, and when a file must have been misread.

In a real corpus most citations may lead outside of it: 57% in hci, 92% in synergy. But ids that are written in another
way than those of the papers lead to no paper in their whole file. Citations between two papers outside are left out of
the share that is judged. A plan looks up the first citations of each file before a run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import duckdb
import pyarrow as pa
import typer

from cocite.config.table_files import CitationTable, PaperTable
from cocite.core.database import connect
from cocite.core.errors import InputError
from cocite.core.options import MemoryMb, Omissions, Output, Threads
from cocite.core.progress import report
from cocite.core.tables.files import read_table, verified_files, write_omissions, write_table
from cocite.core.tables.places import as_text
from cocite.corpus.ingest.cells import cells_of, cited_in, citing_in, paper_in
from cocite.corpus.ingest.user_files import read_rows
from cocite.corpus.release.manifest import ManifestFile, read_manifest

EXPECTED = 75
"""Citations to papers that a file must be expected to have, by the share of the others, before it counts that it has
none. Of 20,538 citing papers in hci and synergy, each taken as a file, the furthest off had none of 60."""
NAMED = 20
"""Files that the omissions name: those with most cited ids that are no paper."""
FILES, ROWS = 20, 10_000
"""Files of citations that are sampled, and rows of each."""
MOST_BYTES = 4e9
"""Length of the files of papers that a plan reads; more would take over a minute."""


@dataclass(frozen=True, kw_only=True)
class Cited:
    """The citations of one file, by what their ends are."""

    shard: str
    citations: int
    """Those that have two ids, not the same."""
    touching: int
    """Those with at least one end that is a paper."""
    inside: int
    """Those that lead to a paper."""
    outside_example: str | None
    paper_example: str | None

    @property
    def outside(self) -> int:
        """Citations that lead to no paper."""
        return self.citations - self.inside

    @property
    def judged(self) -> float:
        """The share of the citations of papers that lead to no paper; of all citations if none is of a paper."""
        return 1 - self.inside / max(self.touching or self.citations, 1) if self.citations else 0.0

    @property
    def in_words(self) -> str:
        """The file, and the share of all its cited ids that are no paper."""
        return f"{self.shard}: {self.outside / max(self.citations, 1):.1%} of {self.citations:,} cited ids"


def count_cited(
    *,
    manifest: ManifestFile,
    papers: Annotated[Path, typer.Option(help="Folder of the table ingested_papers.")],
    citations: Annotated[Path, typer.Option(help="Folder of the table ingested_citations, one file per source file.")],
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
    names: Annotated[Path | None, typer.Option(help="Table names, if ids are texts.")] = None,
) -> None:
    """Count the cited ids in each file of citations that are papers."""
    shards = read_manifest(manifest).datasets["citations"].shards
    paths = [citations / f"{part}.parquet" for part in range(len(shards))]
    parts = verified_files(paths, "ingested_citations", ["citing", "cited"])
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        connection.read_parquet(verified_files(papers, "ingested_papers", ["corpusid"])).create_view("ingested_papers")
        connection.execute("CREATE TEMP TABLE papers AS SELECT DISTINCT corpusid AS id FROM ingested_papers")
        connection.register("parts", pa.table({"filename": parts, "shard": [shard.name for shard in shards]}))
        connection.read_parquet(parts, filename=True).create_view("ingested_citations")
        connection.execute("CREATE TEMP VIEW citations AS FROM ingested_citations JOIN parts USING (filename)")
        if names:
            connection.read_parquet(verified_files(names, "names")).create_view("names")
        written = "(SELECT name FROM names WHERE corpusid = {})" if names else "{}::VARCHAR"
        write_table(output, "cited_ids", counted(connection, written))


def counted(connection: duckdb.DuckDBPyConnection, written: str = "{}") -> pa.Table:
    """The table `citations` (shard, citing, cited) counted by file, given the table `papers` (id)."""
    query = f"""
        WITH found AS (
            SELECT shard, count(*) AS citations, count(*) FILTER (of_paper OR to_paper) AS touching,
                count(*) FILTER (to_paper) AS inside, min(cited) FILTER (NOT to_paper) AS example
            FROM (SELECT shard, cited, citing IN (FROM papers) AS of_paper, cited IN (FROM papers) AS to_paper
                FROM citations)
            GROUP BY shard
        )
        SELECT shard, citations, touching, inside, {written.format("example")} AS outside_example,
            {written.format("paper")} AS paper_example
        FROM found, (SELECT min(id) AS paper FROM papers) ORDER BY shard
    """
    return connection.sql(query).to_arrow_table()


def check_cited(
    file: Annotated[Path, typer.Argument(help="Table cited_ids.")],
    *,
    outside: Annotated[float, typer.Option(help="Largest share of citations whose cited id is not a paper.")],
    omissions: Omissions,
) -> None:
    """Report the cited ids that are not papers; stop if a table was probably misread.

    Raises `InputError` if the share of such ids is larger than `outside`, in all files together or in one whose share
    differs from that of the others.
    """
    files = [Cited(**row) for row in read_table(file, "cited_ids").to_pylist()]
    worst = sorted(files, key=lambda each: (-each.outside, each.shard))[:NAMED]
    others = [_together([each for each in files if each not in worst], "other files")] if len(files) > NAMED else []
    for each in [*worst, *others]:
        report(f"{each.in_words} are no paper.")
    if misread := find_misread(files, outside):
        raise InputError(explain(misread, outside))
    said = "cited ids that are no paper (kept, in no triplet)"
    write_omissions(omissions, {f"{said}, {each.in_words}": each.outside for each in [*worst, *others]})


def find_misread(files: Sequence[Cited], largest: float) -> Cited | None:
    """The file whose ids must have been misread, or all of them together; None if there is none."""
    whole = _together(files, "all files")
    if whole.judged > largest:
        return whole if len(files) > 1 else files[0]
    for each in files:
        others = whole.citations - each.citations
        expected = each.citations * (whole.inside - each.inside) / max(others, 1)
        if each.judged > largest and expected >= EXPECTED:
            return each
    return None


def explain(misread: Cited, largest: float) -> str:
    """Why a run stops."""
    if misread.paper_example is None:
        return f"{misread.in_words} are no paper: the files of corpus.papers have no row with an id."
    return (
        f"{misread.in_words} are no paper, and {misread.judged:.2%} of those in citations of papers, more than the "
        f"share of {largest} that corpus.outside allows: the two tables write ids differently. A cited id is "
        f"{misread.outside_example!r}, a paper's is {misread.paper_example!r}; see prefix, lowercase, separator and "
        "columns of corpus.papers and corpus.citations, or set corpus.outside: 1 if this is as it should be."
    )


def _together(files: Sequence[Cited], name: str) -> Cited:
    counts = {count: sum(getattr(each, count) for each in files) for count in ("citations", "touching", "inside")}
    outside = next((each.outside_example for each in files if each.outside_example), None)
    return Cited(shard=name, **counts, outside_example=outside, paper_example=files[0].paper_example if files else None)


def shares_in_words(papers: PaperTable, citations: CitationTable, largest: float, *, numbers: bool) -> str:
    """What a plan says of the cited ids that are no paper; ids are compared as numbers or as texts."""
    files = [Path(path) for path in papers.paths()]
    if sum(path.stat().st_size for path in files) > MOST_BYTES:
        return "Which cited ids are no paper is counted by the run: the files of papers are too long for a plan."
    found = _sampled(papers, files, citations, numbers=numbers)
    misread = find_misread(found, largest)
    lines = [f"In the first {ROWS:,} rows of each file of citations:"]
    lines += [f"    {each.in_words} are no paper" for each in found]
    if misread:
        lines.append(f"The run would stop. {explain(misread, largest)}")
    return "\n".join(lines)


def _sampled(papers: PaperTable, files: Sequence[Path], citations: CitationTable, *, numbers: bool) -> list[Cited]:
    def one_form(text: str) -> str:
        return f"TRY_CAST({text} AS BIGINT)::VARCHAR" if numbers else text

    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE citations (shard VARCHAR, citing VARCHAR, cited VARCHAR)")
        connection.execute("CREATE TABLE papers (id VARCHAR)")
        for path in map(Path, citations.paths()[:FILES]):
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
        return [Cited(**row) for row in counted(connection).to_pylist()]
