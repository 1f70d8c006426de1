"""The sampler of SPECTER (Cohan et al., 2020): positives are cited by the query.

Hard negatives are cited by a paper that the query cites, but not by the query itself; easy negatives are random
papers that are neither these nor cited by the query. Works on the edges of a directed citation graph, block of queries
by block, so that memory does not grow with their number.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from cocite.files import scan_table
from cocite.triplets.pairing import Ids, Sampled, draw_easy_negatives, first, pair, shuffled, with_text

QUERIES_IN_MEMORY = 10_000
SPARE_DRAWS = 10
"""Random papers drawn beyond the easy negatives asked for, since some turn out to be cited."""


@dataclass(frozen=True, kw_only=True)
class CitationSettings:
    """How triplets are drawn from citations."""

    per_query: int
    """Triplets of each query."""
    easy: int
    """Triplets among them with a random negative."""


def sample_from_citations(
    edges: Path, queries: pl.DataFrame, pool: Ids, settings: CitationSettings, seed: int
) -> Sampled:
    """Sample triplets from the edges (citing → cited) in the folder `edges`; `pool` are the papers with text."""
    blocks = [_sample_block(edges, block, pool, settings, seed) for block in _blocks(queries)]
    omissions: dict[str, int] = {}
    for block in blocks:
        for reason, count in block.omissions.items():
            omissions[reason] = omissions.get(reason, 0) + count
    triplets = pl.concat([block.triplets for block in blocks]).sort("query", "positive", "negative")
    return Sampled(triplets=triplets, omissions=omissions)


def _blocks(queries: pl.DataFrame) -> Iterator[pl.DataFrame]:
    return queries.sort("query").iter_slices(QUERIES_IN_MEMORY)


def _sample_block(edges: Path, queries: pl.DataFrame, pool: Ids, settings: CitationSettings, seed: int) -> Sampled:
    cited = pl.scan_parquet(scan_table(edges, "edges").files, glob=False).select(citing="source", cited="target")
    joined = queries.lazy().join(cited, left_on="query", right_on="citing").select("query", "cited")
    direct = joined.collect(engine="streaming")
    positives = with_text(direct.rename({"cited": "positive"}), "positive", pool)
    hard = _two_citations_away(direct, cited, pool)
    chosen = _preferred(shuffled(hard, "negative", seed), settings.per_query - settings.easy, "hard")
    easy = _easy_negatives(direct, queries, pool, settings, seed).join(chosen, on=["query", "negative"], how="anti")
    negatives = pl.concat([chosen, _preferred(easy, settings.easy, "easy")])
    sampled = pair(
        queries,
        shuffled(positives, "positive", seed).with_columns(positive_rank=pl.lit(None, pl.Int32)),
        shuffled(negatives, "negative", seed),
        settings.per_query,
    )
    sampled.omissions["citations of queries to papers without text"] = len(direct) - len(positives)
    sampled.omissions["queries that cite no paper with text"] = len(queries) - positives["query"].n_unique()
    sampled.omissions["queries without a paper two citations away"] = len(queries) - hard["query"].n_unique()
    return sampled


def _two_citations_away(direct: pl.DataFrame, cited: pl.LazyFrame, pool: Ids) -> pl.DataFrame:
    """What papers cited by the query cite, unless the query cites it too: query, negative."""
    indirect = (
        direct.lazy()
        .join(cited, left_on="cited", right_on="citing", suffix="_next")
        .select("query", negative="cited_next")
        .filter(pl.col("query") != pl.col("negative"))
        .unique()
        .join(direct.lazy(), left_on=["query", "negative"], right_on=["query", "cited"], how="anti")
        .collect(engine="streaming")
    )
    return with_text(indirect, "negative", pool)


def _easy_negatives(
    direct: pl.DataFrame, queries: pl.DataFrame, pool: Ids, settings: CitationSettings, seed: int
) -> pl.DataFrame:
    drawn = draw_easy_negatives(queries, pool, settings.easy + SPARE_DRAWS, seed)
    return drawn.join(direct, left_on=["query", "negative"], right_on=["query", "cited"], how="anti")


def _preferred(ordered: pl.DataFrame, count: int, kind: str) -> pl.DataFrame:
    """The first `count` negatives of each query, marked as of this kind."""
    return first(ordered, count).select(
        "query", "negative", negative_rank=pl.lit(None, pl.Int32), negative_kind=pl.lit(kind)
    )
