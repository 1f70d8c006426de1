"""How many of a query's neighbours are truly related to it, by their rank: the quality of a band of ranks.

Positives should come from ranks whose papers are co-cited with the query, or cite it or are cited by it; hard negatives
from ranks where few are. Measured on five ranks each: those up to every rank of a ladder, and up to the ranks that sets
of triplets are configured with.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import PositiveInt

from cocite.ground.database import connect
from cocite.tables.files import checked_files, write_table
from cocite.triplets.checks.relations import sample_queries

WIDTH = 5
LADDER = (5, 10, 25, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000)
_QUALITY = """
WITH bands AS (SELECT DISTINCT unnest($ranks)::INTEGER AS last_rank)
SELECT last_rank, greatest(last_rank - $width, 0) + 1 AS first_rank, count(DISTINCT found.query) AS queries,
    count(*) AS papers, count(*) FILTER (cocited > 0) AS cocited, count(*) FILTER (cited) AS cited
FROM read_parquet($neighbours) AS found
    JOIN bands ON rank <= last_rank AND rank > last_rank - $width
    LEFT JOIN read_parquet($relations) AS related ON related.query = found.query AND paper = neighbour
WHERE found.query IN (FROM sampled) GROUP BY last_rank ORDER BY last_rank
"""


@dataclass(frozen=True, kw_only=True)
class BandSettings:
    """Which bands are measured."""

    ranks: tuple[PositiveInt, ...] = ()
    """Last ranks of bands, beside those of the ladder."""


def measure_bands(
    neighbours: Sequence[Path],
    settings: BandSettings,
    *,
    relations: Path,
    queries: Path,
    seed: int,
    memory_mb: int,
    threads: int,
    output: Path,
) -> None:
    """Write the table `band_quality` of an embedding's neighbours; `relations` is the table `sampled_relations`."""
    parameters = {
        "neighbours": [str(path) for path in checked_files(neighbours, "neighbours")],
        "relations": [str(path) for path in checked_files(relations, "sampled_relations")],
        "ranks": [*LADDER, *settings.ranks],
        "width": WIDTH,
    }
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        db.register("sampled", sample_queries(queries, seed))
        write_table(output, "band_quality", db.sql(_QUALITY, params=parameters).to_arrow_reader())
