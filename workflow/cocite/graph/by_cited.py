"""Citations sharded by the cited paper: each bucket of them is cut, then the cuts of all are put together.

The release's citations are sharded by the citing paper, but bibliographic coupling and undirected edges ask who cites
a paper. Both steps sort within a memory limit, and each citation is written twice, however many buckets there are.
"""

from collections.abc import Sequence
from pathlib import Path

from cocite.ground.database import connect
from cocite.tables.files import atomic_path, scan_table, write_table
from cocite.tables.splits import read_kept_out

BATCH_ROWS = 100_000


def split_citations(
    *, citations: Path, queries: Path, buckets: int, memory_mb: int, threads: int, output: Path
) -> None:
    """Cut one bucket of citations into a folder with a file for each bucket of the cited paper.

    Citations by or of papers that are kept out are dropped.
    """
    with atomic_path(output) as folder, connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        db.register("citations", scan_table(citations, "citations"))
        db.register("kept_out", read_kept_out(queries).select(["corpusid"]))
        db.execute(f"""
            CREATE TEMP TABLE kept AS
            SELECT cited % {buckets} AS bucket, citing, cited FROM citations
            WHERE citing NOT IN (FROM kept_out) AND cited NOT IN (FROM kept_out)
            ORDER BY bucket, cited, citing
        """)
        folder.mkdir()
        for bucket in range(buckets):
            rows = db.sql(f"SELECT citing, cited FROM kept WHERE bucket = {bucket} ORDER BY cited, citing")
            write_table(folder / f"{bucket}.parquet", "split_citations", rows.to_arrow_reader(BATCH_ROWS))


def unite_citations(*, split: Sequence[Path], bucket: int, memory_mb: int, threads: int, output: Path) -> int:
    """Put one bucket of cited papers together from the folders that `split_citations` wrote; return its rows."""
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        files = [folder / f"{bucket}.parquet" for folder in split]
        db.read_parquet(scan_table(files, "split_citations").files).create_view("split")
        rows = db.sql("FROM split ORDER BY cited, citing")
        return write_table(output, "citations_by_cited", rows.to_arrow_reader(BATCH_ROWS))
