"""What a set of triplets holds: triplets a query, papers without a text, papers of benchmarks, collisions.

In come the set, the queries, the papers with a text and the documents of benchmarks; out go the tables
`triplets_per_query`, `triplet_checks` and `collisions`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from cocite.ground.id_sets import IdSet, are_in
from cocite.tables import TABLES, empty_schema
from cocite.tables.documents import corpus_ids_of
from cocite.tables.files import open_table, write_table
from cocite.tables.splits import read_queries
from cocite.triplets.checks.collisions import collision_curve, count_collisions
from cocite.triplets.cutting import ROLES
from cocite.triplets.papers import read_papers

COLLISION, NO_TEXT, IN_BENCHMARK = "collision", "no text", "in benchmark"


@dataclass(frozen=True, kw_only=True)
class Checks:
    """The tables that are written."""

    checks: Path
    """triplet_checks."""
    per_query: Path
    """triplets_per_query."""
    collisions: Path
    """collisions."""


def check_triplets(
    triplets: Path,
    *,
    neighbours: Sequence[Path],
    queries: Path,
    papers: Path,
    benchmarks: Sequence[Path],
    outputs: Checks,
) -> None:
    """Write the checks of one set of triplets.

    `neighbours` are the files that it was drawn from, none if it was not drawn from any; `papers` is the folder
    of the table papers; `benchmarks` are tables `documents`, each in the folder of its benchmark.
    """
    table = open_table(triplets, "triplets").read()
    write_table(outputs.per_query, "triplets_per_query", per_query(table, read_queries(queries)))
    found = sorted(_checks(table, read_papers(papers, queries), benchmarks))
    columns = dict(zip(("check", "part", "found", "among"), zip(*found, strict=True), strict=True))
    write_table(outputs.checks, "triplet_checks", pa.table(columns))
    nothing = empty_schema(TABLES["collisions"]).empty_table()
    write_table(outputs.collisions, "collisions", collision_curve(table, neighbours) if neighbours else nothing)


def per_query(triplets: pa.Table, queries: pa.Table) -> pa.Table:
    """How many queries of each split have how many triplets; those that could not be served have 0."""
    served, counts = np.unique(triplets["query"].to_numpy(), return_counts=True)
    asked, split = queries["corpusid"].to_numpy(), queries["split"].to_numpy(zero_copy_only=False)
    place = np.minimum(np.searchsorted(served, asked), len(served) - 1)
    numbers = np.where(served[place] == asked, counts[place], 0)
    rows = pa.table({"split": split, "count": numbers}).group_by(["split", "count"]).aggregate([([], "count_all")])
    return rows.rename_columns({"count_all": "queries"}).sort_by([("split", "ascending"), ("count", "ascending")])


def _checks(triplets: pa.Table, papers: IdSet, benchmarks: Sequence[Path]) -> Iterator[tuple[str, str, int, int]]:
    """The rows of `triplet_checks`."""
    yield (COLLISION, "pairs", *count_collisions(triplets))
    of_role = {role: np.unique(triplets[role].to_numpy()) for role in ROLES}
    for role, ids in of_role.items():
        yield NO_TEXT, role, int(np.count_nonzero(~are_in(papers, ids))), len(ids)
    held = np.unique(np.concatenate(list(of_role.values())))
    for documents in benchmarks:
        ids = np.unique(corpus_ids_of(documents)[0])
        yield IN_BENCHMARK, documents.parent.name, len(np.intersect1d(ids, held, assume_unique=True)), len(ids)
