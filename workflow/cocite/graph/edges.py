"""Edges: what a graph embedding is trained on, in one shape for every signal.

An undirected pair stands once, source < target; whoever trains on both directions mirrors it. Held-out papers have
no edge.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cocite.database import connect
from cocite.files import scan_table, write_table

BATCH_ROWS = 100_000


def edges_of_cocitations(*, cocitations: Path, min_count: int, output: Path) -> int:
    """Turn one bucket of co-citations into undirected edges weighted by their count; return how many."""
    return write_table(output, "edges", _frequent(cocitations, min_count))


def edges_of_citations(
    *,
    citations: list[Path],
    queries: Path,
    directed: bool,
    bucket: int,
    buckets: int,
    memory_mb: int,
    threads: int,
    output: Path,
) -> int:
    """Turn citations into the edges of one bucket of sources, each of weight 1; return how many.

    Directed edges lead from the citing to the cited paper. Undirected, two papers that cite each other have one edge.
    """
    ends = "citing AS source, cited AS target" if directed else "least(citing, cited), greatest(citing, cited)"
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        db.register("citations", scan_table(citations, "citations"))
        db.register("queries", scan_table(queries, "queries"))
        edges = db.sql(f"""
            WITH heldout AS (SELECT corpusid FROM queries WHERE split = 'holdout'),
            ends(source, target) AS (
                SELECT {ends} FROM citations
                WHERE citing NOT IN (FROM heldout) AND cited NOT IN (FROM heldout)
            )
            SELECT DISTINCT source, target, 1::FLOAT AS weight FROM ends
            WHERE source % {buckets} = {bucket}
            ORDER BY source, target
        """)
        return write_table(output, "edges", edges.to_arrow_reader(BATCH_ROWS))


def _frequent(cocitations: Path, min_count: int) -> Iterator[pa.RecordBatch]:
    for batch in scan_table(cocitations, "cocitations").to_batches():
        pairs = batch.filter(pc.greater_equal(batch["count"], min_count))
        columns = {"source": pairs["paper"], "target": pairs["other"], "weight": pairs["count"].cast(pa.float32())}
        yield pa.record_batch(columns)
