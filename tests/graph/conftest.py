"""Small tables of citations and queries, and what counting makes of them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from cocite.config.graphs import PAIRS, CocitationCounting, Counting, CouplingCounting
from cocite.core.tables.files import read_table, write_table
from cocite.graph.citations import split_citations, unite_citations
from cocite.graph.pairs import FIXED_MB, count_pairs

SOURCES = {"cocitation": "citations", "sentence-cocitation": "contexts", "coupling": "citations_by_cited"}


def write_citations(
    path: Path,
    citations: Iterable[tuple[int, int]],
    intents: Mapping[tuple[int, int], list[str]] = MappingProxyType({}),
) -> None:
    names = {"citing": pa.int64(), "cited": pa.int64(), "influential": pa.bool_(), "intents": pa.list_(pa.string())}
    rows = [dict(zip(names, (*row, False, intents.get(row, [])), strict=True)) for row in sorted(citations)]
    write_table(path, "citations", pa.Table.from_pylist(rows, schema=pa.schema(names)))


def write_queries(path: Path, splits: dict[int, str], works: Mapping[int, int] = MappingProxyType({})) -> None:
    """`works` are the papers that stand for twins."""
    ids = sorted(splits)
    columns = {"corpusid": pa.array(ids, pa.int64()), "split": pa.array([splits[paper] for paper in ids], pa.string())}
    if works:
        columns["work"] = pa.array([works.get(paper) for paper in ids], pa.int64())
    write_table(path, "queries", pa.table(columns))


def shard(folder: Path, citations: Iterable, splits: dict[int, str], buckets: int, **more: Any) -> None:
    """Write citations and queries."""
    write_queries(folder / "queries.parquet", splits)
    for bucket in range(buckets):
        path = folder / f"citations/{bucket}.parquet"
        write_citations(path, {citation for citation in citations if citation[0] % buckets == bucket}, **more)


def shard_by_cited(folder: Path, buckets: int) -> None:
    """Write the citations by the cited paper as well."""
    limits, split = {"memory_mb": 300, "threads": 1}, [folder / f"split/{part}" for part in range(buckets)]
    asked = {"queries": folder / "queries.parquet", "buckets": buckets, **limits}
    for bucket in range(buckets):
        split_citations(folder / f"citations/{bucket}.parquet", **asked, output=split[bucket])
    for bucket in range(buckets):
        unite_citations(split, bucket=bucket, **limits, output=folder / f"citations_by_cited/{bucket}.parquet")


def pair_counting(signal: str, **settings: Any) -> Counting:
    """How the pairs of a signal are counted."""
    kind = CocitationCounting if signal == "cocitation" else CouplingCounting
    return kind(signal=signal, **settings)


def count_bucket(folder: Path, settings: Counting, bucket: int, buckets: int) -> None:
    files = [folder / f"{SOURCES[settings.signal]}/{part}.parquet" for part in range(buckets)]
    written = {"output": folder / f"{PAIRS[settings.signal]}/{bucket}.parquet"}
    written["omissions"] = folder / f"omissions/{bucket}.parquet"
    asked = {"bucket": bucket, "buckets": buckets, "memory_mb": FIXED_MB}
    count_pairs(files, folder / "queries.parquet", settings, **asked, **written)


def count_all(folder: Path, settings: Counting, buckets: int) -> pa.Table:
    """All buckets of the pairs."""
    if settings.signal == "coupling":
        shard_by_cited(folder, buckets)
    for bucket in range(buckets):
        count_bucket(folder, settings, bucket, buckets)
    return read_table(folder / PAIRS[settings.signal], PAIRS[settings.signal])


def count(folder: Path, settings: Counting, buckets: int) -> dict[tuple[int, int], tuple[int, float]]:
    """Count and strength of each pair; without a strength, the count stands for it."""
    rows = count_all(folder, settings, buckets).to_pylist()
    return {(row["paper"], row["other"]): (row["count"], row.get("strength", row["count"])) for row in rows}


def left_out(folder: Path) -> dict[str, int]:
    """What was left out, summed over the buckets."""
    counts: dict[str, int] = {}
    for row in read_table(folder / "omissions", "omissions").to_pylist():
        counts[row["reason"]] = counts.get(row["reason"], 0) + row["count"]
    return counts
