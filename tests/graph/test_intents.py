"""Each citation of a graph counts once: by its only intent, as several, or as none."""

import pyarrow as pa

from cocite.core.tables.files import read_table, write_table
from cocite.graph.intents import count_intents


def counted(folder, *buckets):
    """The citations of each class; a bucket is a list of the intents of its citations."""
    for bucket, intents in enumerate(buckets):
        rows = {
            "source": pa.array(range(len(intents)), pa.int64()),
            "target": pa.array([99] * len(intents), pa.int64()),
            "weight": pa.array([1.0] * len(intents), pa.float32()),
            "intents": pa.array(intents, pa.list_(pa.string())),
        }
        write_table(folder / f"edges/{bucket}.parquet", "edges", pa.table(rows))
    count_intents(folder / "edges", memory_mb=300, threads=1, output=folder / "intents.parquet")
    table = read_table(folder / "intents.parquet", "intent_counts")
    return list(zip(table["intent"].to_pylist(), table["citations"].to_pylist(), strict=True))


def test_citations_of_all_buckets_count_once(tmp_path):
    first = [["background"], ["background", "result"], []]
    second = [["background"], ["methodology"], ["background", "methodology", "result"], [], []]
    counts = [("background", 2), ("methodology", 1), ("result", 0), ("several", 2), ("none", 3)]
    assert counted(tmp_path, first, second) == counts


def test_a_graph_without_citations_has_a_zero_for_each_class(tmp_path):
    assert [citations for _, citations in counted(tmp_path, [])] == [0, 0, 0, 0, 0]
