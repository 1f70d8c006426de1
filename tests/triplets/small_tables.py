"""Small tables that the tests of triplets are worked out on."""

import pyarrow as pa

from cocite.core.tables.files import write_table


def write_queries(folder, splits):
    """splits: corpus id → split, in rising order."""
    table = pa.table({"corpusid": list(splits), "split": list(splits.values())})
    write_table(folder / "queries.parquet", "queries", table)
    return folder / "queries.parquet"


def write_neighbours(path, ranked):
    """ranked: query → its neighbours from rank 1."""
    rows = [(query, rank, paper) for query in sorted(ranked) for rank, paper in enumerate(ranked[query], start=1)]
    columns = {
        "query": [row[0] for row in rows],
        "rank": pa.array([row[1] for row in rows], pa.int32()),
        "neighbour": [row[2] for row in rows],
        "distance": pa.array([0.5] * len(rows), pa.float32()),
    }
    write_table(path, "neighbours", pa.table(columns))
    return path
