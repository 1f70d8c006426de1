"""The sampler of CoCite and SciNCL: positives and hard negatives from bands of the ranked neighbours.

Positives of a query are its neighbours of ranks (k⁺ − c, k⁺], hard negatives those of ranks (k⁻ − h, k⁻], where c is
the number of triplets of a query and h the hard ones among them (CoCite, 2024: h = c = 7; Ostendorff et al., 2022,
"SciNCL": c = 5, h = 2). Easy negatives are random papers outside the k nearest that the search found.
"""

from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow.compute as pc

from cocite.files import scan_table
from cocite.triplets.pairing import Ids, Sampled, draw_easy_negatives, first, pair, shuffled, with_text

SPARE_DRAWS = 20
"""Random papers drawn beyond the easy negatives asked for, since some turn out to be neighbours."""


@dataclass(frozen=True, kw_only=True)
class NeighbourSettings:
    """How triplets are drawn from ranked neighbours."""

    k_positive: int
    """Last rank of the band of positives."""
    k_negative: int
    """Last rank of the band of hard negatives."""
    per_query: int
    """Triplets of each query."""
    easy: int
    """Triplets among them with a random negative."""


def sample_from_neighbours(
    neighbours: Path, queries: pl.DataFrame, pool: Ids, settings: NeighbourSettings, seed: int
) -> Sampled:
    """Sample triplets from the table `neighbours`; `pool` are the papers that have a text."""
    hard = settings.per_query - settings.easy
    positive_band = _band(neighbours, settings.k_positive - settings.per_query, settings.k_positive, "positive")
    negative_band = _band(neighbours, settings.k_negative - hard, settings.k_negative, "negative")
    positives = with_text(positive_band, "positive", pool)
    hard_negatives = with_text(negative_band, "negative", pool)
    easy_negatives = _easy_negatives(neighbours, queries, pool, settings, seed)
    negatives = pl.concat(
        [
            hard_negatives.with_columns(negative_kind=pl.lit("hard")),
            easy_negatives.with_columns(negative_kind=pl.lit("easy")),
        ]
    )
    sampled = pair(
        queries, shuffled(positives, "positive", seed), shuffled(negatives, "negative", seed), settings.per_query
    )
    sampled.omissions["positives without text"] = len(positive_band) - len(positives)
    sampled.omissions["hard negatives without text"] = len(negative_band) - len(hard_negatives)
    return sampled


def _band(neighbours: Path, after: int, last: int, column: str) -> pl.DataFrame:
    """The neighbours of ranks (after, last]: query, `column`, `column`_rank."""
    rank = pc.field("rank")
    band = scan_table(neighbours, "neighbours").to_table(
        columns=["query", "neighbour", "rank"], filter=(rank > after) & (rank <= last)
    )
    return pl.DataFrame(band).rename({"neighbour": column, "rank": f"{column}_rank"})


def _easy_negatives(
    neighbours: Path, queries: pl.DataFrame, pool: Ids, settings: NeighbourSettings, seed: int
) -> pl.DataFrame:
    drawn = draw_easy_negatives(queries, pool, settings.easy + SPARE_DRAWS, seed)
    known = pl.scan_parquet(neighbours, glob=False).select("query", negative="neighbour")
    outside = drawn.lazy().join(known, on=["query", "negative"], how="anti").collect(engine="streaming")
    return first(outside, settings.easy).select("query", "negative", negative_rank=pl.lit(None, pl.Int32))
