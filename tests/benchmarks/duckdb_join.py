"""A rival of counting: DuckDB joins the citations with themselves and counts, within a memory limit, spilling to disk.

It counts the pairs with a query at one end or both, each once, and writes them sorted, as `cocite graph count` does.
"""

import sys
from pathlib import Path

import duckdb

PAIRS = """
    WITH marked AS (
        SELECT citing, cited, cited IN (SELECT corpusid FROM read_parquet($queries)) AS is_query
        FROM read_parquet($citations)
    )
    SELECT least(query.cited, partner.cited) AS paper, greatest(query.cited, partner.cited) AS other,
        count(*)::INTEGER AS count
    FROM marked AS query JOIN marked AS partner ON query.citing = partner.citing
    WHERE query.is_query AND query.cited != partner.cited AND (query.cited < partner.cited OR NOT partner.is_query)
    GROUP BY ALL ORDER BY paper, other
"""
DIGEST = "SELECT count(*), sum(hash(paper, other, count)) FROM read_parquet($pairs)"


def join(citations: Path, queries: Path, output: Path, memory_mb: int, threads: int) -> None:
    """Write the pairs of the citations in a folder."""
    connection = duckdb.connect(
        config={
            "memory_limit": f"{memory_mb}MB",
            "threads": threads,
            "temp_directory": str(output.with_suffix(".spill")),
            "preserve_insertion_order": False,
        }
    )
    files = {"citations": f"{citations}/*.parquet", "queries": str(queries)}
    connection.execute(f"COPY ({PAIRS}) TO '{output}' (FORMAT parquet, COMPRESSION zstd)", files)


def check(ours: Path, theirs: Path) -> None:
    """Exit with an error unless a folder and a file hold the same pairs and counts."""
    one, other = (duckdb.execute(DIGEST, {"pairs": str(pairs)}).fetchall() for pairs in (ours / "*.parquet", theirs))
    if one != other:
        sys.exit(f"{ours} and {theirs} hold other pairs: {one} and {other}")


if __name__ == "__main__":
    paths = [Path(path) for path in sys.argv[2:5]]
    if sys.argv[1] == "join":
        join(*paths, *map(int, sys.argv[5:]))
    else:
        check(*paths)
