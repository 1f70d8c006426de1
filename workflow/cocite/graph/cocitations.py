"""Co-citations, counted bucket by bucket.

Two papers are co-cited as often as there are distinct papers that cite both (Small, 1973). Citations are sharded by
the citing paper, and all references of a paper lie in one bucket, so each bucket is counted alone and the counts of
the buckets add up. A pair is kept once, the smaller id first.

Held-out papers neither make nor join a pair: their citations are dropped before counting, in both directions.
"""

from pathlib import Path

from duckdb import DuckDBPyConnection

from cocite.database import connect
from cocite.files import atomic_path, scan_table, write_table

BATCH_ROWS = 100_000

# A pair of two queries is met from both of its ends; it counts from the smaller one.
PAIRS = {
    "query": "a.is_query AND a.cited <> b.cited AND (NOT b.is_query OR a.cited < b.cited)",
    "all": "a.cited < b.cited",
}


def count_cocitations(
    *, citations: Path, queries: Path, pairs: str, buckets: int, memory_mb: int, threads: int, output: Path
) -> None:
    """Count the pairs of references of the papers of one bucket of citing papers that cite a query.

    `pairs` is `query` for the pairs with a query paper at one end or both, or `all` for every pair (as CoCite, 2024,
    published it). Writes the folder `output` with one file of `counted_cocitations` for each bucket of the pair's
    smaller paper.
    """
    with atomic_path(output) as folder, connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        db.register("citations", scan_table(citations, "citations"))
        db.register("queries", scan_table(queries, "queries"))
        db.execute(REFERENCES)
        db.execute(f"""
            CREATE TEMP TABLE counted AS
            SELECT least(a.cited, b.cited) AS paper, greatest(a.cited, b.cited) AS other, count(*) AS count
            FROM refs AS a JOIN refs AS b USING (citing)
            WHERE {PAIRS[pairs]}
            GROUP BY paper, other
        """)
        folder.mkdir()
        for bucket in range(buckets):
            _write_bucket(db, f"SELECT * FROM counted WHERE paper % {buckets} = {bucket}", folder, bucket)


def merge_cocitations(*, counted: list[Path], bucket: int, memory_mb: int, threads: int, output: Path) -> int:
    """Add up one bucket of pairs over all buckets of citing papers; return the number of pairs."""
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        db.register("counted", scan_table([folder / f"{bucket}.parquet" for folder in counted], "counted_cocitations"))
        merged = db.sql("""
            SELECT paper, other, sum(count)::BIGINT AS count FROM counted GROUP BY paper, other ORDER BY paper, other
        """)
        return write_table(output, "cocitations", merged.to_arrow_reader(BATCH_ROWS))


REFERENCES = """
    CREATE TEMP TABLE refs AS
    WITH heldout AS (SELECT corpusid FROM queries WHERE split = 'holdout'),
    flagged AS (
        SELECT citing, cited, cited IN (SELECT corpusid FROM queries WHERE split <> 'holdout') AS is_query
        FROM citations
        WHERE citing NOT IN (FROM heldout) AND cited NOT IN (FROM heldout)
    )
    SELECT * FROM flagged WHERE citing IN (SELECT citing FROM flagged WHERE is_query)
"""
"""The references of the papers that cite a query, each marked as a query or not."""


def _write_bucket(db: DuckDBPyConnection, query: str, folder: Path, bucket: int) -> None:
    rows = db.sql(f"{query} ORDER BY paper, other").to_arrow_reader(BATCH_ROWS)
    write_table(folder / f"{bucket}.parquet", "counted_cocitations", rows)
