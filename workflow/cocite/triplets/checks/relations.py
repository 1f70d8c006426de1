"""How a sample of the queries is truly related to other papers: in come the citations, out goes `sampled_relations`.

It is the truth that the neighbours of a graph embedding are held against. It is read from the citations themselves and
not from a graph, which may hold a part of them only. Papers that are kept out do not count, here as in every graph.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from cocite.ground.database import connect
from cocite.ground.progress import report
from cocite.ground.randomness import priorities
from cocite.tables.files import checked_files, write_table
from cocite.tables.splits import read_kept_out, read_queries

QUERIES_SAMPLED = 500
_RELATIONS = """
WITH known AS (
    SELECT citing, cited FROM read_parquet($citations)
    WHERE citing NOT IN (FROM kept_out) AND cited NOT IN (FROM kept_out)
),
citing AS (SELECT citing, cited AS query FROM known WHERE cited IN (FROM sampled)),
cocited AS (
    SELECT query, cited AS paper, count(*) AS cocited
    FROM citing JOIN known USING (citing) WHERE cited <> query GROUP BY ALL
),
either_way AS (
    SELECT query, citing AS paper FROM citing UNION SELECT citing, cited FROM known WHERE citing IN (FROM sampled)
)
SELECT query, paper, coalesce(cocited, 0) AS cocited, either_way.paper IS NOT NULL AS cited
FROM cocited FULL JOIN either_way USING (query, paper) WHERE paper <> query ORDER BY query, paper
"""


def sample_queries(queries: Path, seed: int) -> pa.Table:
    """The queries that are looked at, the same for all embeddings: corpusid."""
    asked = read_queries(queries).select(["corpusid"])
    order = np.argsort(priorities(seed, "queries that are looked at", asked["corpusid"].to_numpy()))
    return asked.take(pa.array(np.sort(order[:QUERIES_SAMPLED])))


def relate_sample(
    citations: Sequence[Path], queries: Path, *, seed: int, memory_mb: int, threads: int, output: Path
) -> None:
    """Write the table `sampled_relations` of the citations in these files."""
    files = [str(path) for path in checked_files(citations, "citations")]
    sampled = sample_queries(queries, seed)
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        db.register("sampled", sampled)
        db.register("kept_out", read_kept_out(queries).select(["corpusid"]))
        related = db.sql(_RELATIONS, params={"citations": files}).to_arrow_reader()
        written = write_table(output, "sampled_relations", related)
    report(f"{len(sampled):,} queries are related to {written:,} papers.")
