"""Which documents of a benchmark are which papers of the corpus, where the ids of the two are of different origin.

In: the table documents of a benchmark and, where papers are matched with Semantic Scholar's, the table matches. Out:
the table `document_papers`, which is empty where nothing leads from the one to the other; that is counted and reported.
"""

from pathlib import Path

from cocite.ground.database import connect
from cocite.ground.progress import report
from cocite.tables.documents import numbers_of
from cocite.tables.files import scan_table, write_omissions, write_table

NO_NUMBER = "documents whose id is no number"
NOT_MATCHED = "documents whose id no paper of the corpus is matched with"
NOT_COMPARED = "documents whose id is of another origin than the corpus's, and nothing matches the two"


def find_documents(
    documents: Path, matches: Path | None, *, output: Path, omissions: Path, memory_mb: int, threads: int
) -> None:
    """Write the table `document_papers` of a benchmark, and how many of its documents are not in it, and why."""
    numbers = numbers_of(documents)
    numbered = numbers.filter(numbers["number"].is_valid())
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as connection:
        connection.register("numbered", numbered)
        if matches is None:
            connection.execute(
                "CREATE VIEW matches AS SELECT 0::BIGINT AS corpusid, 0::BIGINT AS s2_corpusid, '' AS matched_by "
                "WHERE false"
            )
        else:
            connection.read_parquet(scan_table(matches, "matches").files).create_view("matches")
        found = connection.sql(
            "SELECT document, corpusid, matched_by FROM numbered JOIN matches ON number = s2_corpusid ORDER BY document"
        ).to_arrow_table()
    write_table(output, "document_papers", found)
    unknown = NOT_COMPARED if matches is None else NOT_MATCHED
    left_out = {NO_NUMBER: len(numbers) - len(numbered), unknown: len(numbered) - len(found)}
    write_omissions(omissions, left_out)
    report(f"{len(found):,} of {len(numbers):,} documents are papers of the corpus by their matches")
    for reason, count in left_out.items():
        report(f"{count:,} {reason}")
