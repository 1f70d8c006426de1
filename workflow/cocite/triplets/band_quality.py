"""How many of a query's neighbours are truly related to it, by rank: the quality of a band of ranks.

Positives should come from ranks whose papers are co-cited with the query, cite it or are cited by it; hard negatives
from ranks with few such papers. Each band has five ranks: those up to every rank of a ladder, and up to the configured
ranks of sets of triplets. Relations of a sample of the queries are read from the citations, because a graph may have
only some of them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer

from cocite.config.entries import Count, Entry
from cocite.config.settings import GivenAsJson
from cocite.core.database import READ_BY_TRAINING, connect, view_citations_of_works
from cocite.core.options import MemoryMb, Output, Queries, Seed, Threads
from cocite.core.progress import report
from cocite.core.randomness import priorities
from cocite.core.tables.files import verified_files, write_table
from cocite.core.tables.papers import read_kept_out, read_queries, read_twins

QUERIES_SAMPLED = 500
_RELATED = """
WITH citing AS (SELECT citing, cited AS query FROM known WHERE cited IN (FROM sampled)),
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
WIDTH = 5
LADDER = (5, 10, 25, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000)
_MEASURED = """
WITH bands AS (SELECT DISTINCT unnest($ranks)::INTEGER AS last_rank)
SELECT last_rank, greatest(last_rank - $width, 0) + 1 AS first_rank, count(DISTINCT found.query) AS queries,
    count(*) AS papers, count(*) FILTER (cocited > 0) AS cocited, count(*) FILTER (cited) AS cited
FROM read_parquet($neighbours) AS found
    JOIN bands ON rank <= last_rank AND rank > last_rank - $width
    LEFT JOIN twins ON neighbour = corpusid
    LEFT JOIN read_parquet($relations) AS related ON related.query = found.query AND paper = coalesce(work, neighbour)
WHERE found.query IN (FROM sampled) GROUP BY last_rank ORDER BY last_rank
"""


class BandSettings(Entry):
    """Which bands are measured."""

    ranks: tuple[Count, ...] = ()
    """Last ranks of bands, in addition to those of the ladder."""


def sample_queries(queries: Path, seed: int) -> pa.Table:
    """The sample of the queries, the same for all embeddings: corpusid."""
    asked = read_queries(queries).select(["corpusid"])
    order = np.argsort(priorities(seed, "queries that are looked at", asked["corpusid"].to_numpy()))
    return asked.take(pa.array(np.sort(order[:QUERIES_SAMPLED])))


def relate_sample(
    citations: Annotated[Sequence[Path], typer.Argument(help="Files of the table citations.")],
    queries: Queries,
    *,
    seed: Seed,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Find out how a sample of the queries is related to other papers: the truth that neighbours are held against."""
    files = verified_files(citations, "citations", ["citing", "cited"])
    sampled = sample_queries(queries, seed)
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        db.register("sampled", sampled)
        db.register("kept_out", read_kept_out(queries).select(["corpusid"]))
        db.register("twins", read_twins(queries).as_table())
        db.read_parquet(files).create_view("citations")
        db.execute(READ_BY_TRAINING)
        view_citations_of_works(db, "read_by_training", "known")
        written = write_table(output, "sampled_relations", db.sql(_RELATED).to_arrow_reader())
    report(f"{len(sampled):,} queries are related to {written:,} papers.")


def measure_bands(
    neighbours: Annotated[Sequence[Path], typer.Argument(help="Files of the table neighbours.")],
    settings: GivenAsJson[BandSettings],
    *,
    relations: Annotated[Path, typer.Option(help="Table sampled_relations.")],
    queries: Queries,
    seed: Seed,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Measure how many neighbours are truly related to the query, by their rank."""
    parameters = {
        "neighbours": verified_files(neighbours, "neighbours"),
        "relations": verified_files(relations, "sampled_relations"),
        "ranks": [*LADDER, *settings.ranks],
        "width": WIDTH,
    }
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        db.register("sampled", sample_queries(queries, seed))
        db.register("twins", read_twins(queries).as_table())
        write_table(output, "band_quality", db.sql(_MEASURED, params=parameters).to_arrow_reader())
