"""What the graph and the sets of triplets say of a paper and some others: why they may be near each other.

Both tables of citations and of pairs are in the order of their first column. So each is asked twice, for the paper on
either side of it, and DuckDB steps over the parts of files that cannot have a row of either.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import duckdb

from cocite.tools.inspection.tables import viewed_tables

TABLES = ("citations", "cocitations", "triplets", "sampled_examples")
"""The tables that are asked, as far as a run has them."""
_QUERIES: Mapping[str, str] = {
    "citations": """
        SELECT DISTINCT cited AS other, 'cites' AS relation, NULL AS name, NULL AS count
        FROM citations WHERE citing = $paper AND cited IN $others
        UNION ALL SELECT DISTINCT citing, 'is cited by', NULL, NULL
        FROM citations WHERE citing IN $others AND cited = $paper""",
    "cocitations": """
        SELECT other, 'co-cited', graph, count FROM cocitations WHERE paper = $paper AND other IN $others
        UNION ALL SELECT paper, 'co-cited', graph, count FROM cocitations WHERE paper IN $others AND other = $paper""",
    "triplets": """
        SELECT positive, 'positive', triplets, NULL FROM triplets WHERE query = $paper AND positive IN $others
        UNION SELECT negative, 'negative', triplets, NULL FROM triplets WHERE query = $paper AND negative IN $others""",
    "sampled_examples": """
        WITH of_query AS (FROM sampled_examples WHERE query = $paper), of_papers AS (
            SELECT unnest(positives) AS other, 'positive' AS role, triplets FROM of_query
            UNION SELECT unnest(negatives), 'negative', triplets FROM of_query)
        SELECT other, role, triplets, NULL FROM of_papers WHERE other IN $others""",
}
_ORDER = ("cites", "is cited by", "co-cited", "positive", "negative")


def relations(
    database: duckdb.DuckDBPyConnection, paper: int, others: Collection[int]
) -> dict[int, list[dict[str, Any]]]:
    """The relations of a paper to each of the others that has any, in the order of `_ORDER` and by name.

    A relation says what it is, from the paper to the other one; the graph or the set of triplets that knows it; and how
    often the two are co-cited.
    """
    found: dict[int, list[dict[str, Any]]] = {}
    for other, relation, name, count in _rows(database, paper, others):
        found.setdefault(other, []).append({"relation": relation, "name": name, "count": count})
    for of_other in found.values():
        of_other.sort(key=lambda each: (_ORDER.index(each["relation"]), each["name"] or ""))
    return found


def _rows(
    database: duckdb.DuckDBPyConnection, paper: int, others: Collection[int]
) -> Iterable[tuple[int, str, str | None, int | None]]:
    there = set(viewed_tables(database))
    for table, query in _QUERIES.items():
        if table in there:
            yield from database.execute(query, {"paper": paper, "others": list(others)}).fetchall()
