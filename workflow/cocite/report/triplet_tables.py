"""The report's tables of neighbours and of sets of triplets: what they hold, as frames of text."""

from collections.abc import Mapping

import polars as pl

from cocite.report.results import RELATIONS

CHECKS = {"collision": "colliding {}", "no text": "{} papers without text", "in benchmark": "papers of {}"}
"""The checks of a set of triplets, and what a part of each is called."""


def band_quality(bands: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Two rows an embedding: the share of the neighbours of some ranks that are related to the query, %."""
    rows = [
        {
            "embedding": name,
            "neighbours": label,
            **{
                f"ranks {band['first_rank']}–{band['last_rank']}": f"{100 * band[column] / band['papers']:.1f}"
                for band in table.iter_rows(named=True)
            },
        }
        for name, table in bands.items()
        for column, label in RELATIONS.items()
    ]
    columns = sorted({column for row in rows for column in list(row)[2:]}, key=_last)
    return pl.DataFrame(rows, schema=["embedding", "neighbours", *columns], orient="row").fill_null("–")


def triplet_sets(per_query: Mapping[str, pl.DataFrame], checks: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """One row a set of triplets: its size, the queries it serves, and what should not be in it."""
    rows = []
    for name, counts in per_query.items():
        served = counts.filter(pl.col("count") > 0)["queries"].sum()
        row = {
            "triplets": name,
            "number": f"{(counts['count'] * counts['queries']).sum():,}",
            "queries served": f"{served:,} of {counts['queries'].sum():,}",
        }
        for check, part, found, among in checks[name].select("check", "part", "found", "among").rows():
            row[CHECKS[check].format(part)] = f"{found:,} of {among:,}"
        rows.append(row)
    return pl.DataFrame(rows) if rows else pl.DataFrame(schema=["triplets"])


def _last(column: str) -> int:
    return int(column.rpartition("–")[2])
