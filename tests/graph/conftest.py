"""Small tables of citations and queries, and what counting makes of them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from tests.rows import write_rows

from cocite.config.graphs import PAIRS, CocitationCounting, Counting, CouplingCounting
from cocite.core.tables.files import read_table
from cocite.core.written_ids import text_id
from cocite.graph.citations import split_citations, unite_citations
from cocite.graph.pairs import FIXED_MB, count_pairs

SENTENCES = st.lists(
    st.tuples(st.integers(1, 12), st.sets(st.integers(1, 12), min_size=1, max_size=5)), min_size=1, max_size=30
)
"""A citing paper, and those that one sentence of it cites."""
SOURCES = {"cocitation": "citations", "sentence-cocitation": "contexts", "coupling": "citations_by_cited"}


def write_citations(
    path: Path,
    citations: Iterable[tuple[int, int]],
    intents: Mapping[tuple[int, int], list[str]] = MappingProxyType({}),
) -> None:
    rows = [(*ends, False, intents.get(ends, [])) for ends in sorted(citations)]
    write_rows(path, "citations", "citing cited influential intents", rows)


def write_queries(path: Path, splits: Mapping[int, str], works: Mapping[int, int] = MappingProxyType({})) -> None:
    """`works` are the papers that stand for twins."""
    rows = [(paper, split, works.get(paper)) for paper, split in sorted(splits.items())]
    if works:
        write_rows(path, "queries", "corpusid split work", rows)
    else:
        write_rows(path, "queries", "corpusid split", [row[:2] for row in rows])


def shard(folder: Path, citations: Iterable, splits: dict[int, str], buckets: int, **more: Any) -> None:
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
    kind = CocitationCounting if signal == "cocitation" else CouplingCounting
    return kind(signal=signal, **settings)


def count_bucket(folder: Path, settings: Counting, bucket: int, buckets: int) -> None:
    files = [folder / f"{SOURCES[settings.signal]}/{part}.parquet" for part in range(buckets)]
    written = {"output": folder / f"{PAIRS[settings.signal]}/{bucket}.parquet"}
    written["omissions"] = folder / f"omissions/{bucket}.parquet"
    asked = {"bucket": bucket, "buckets": buckets, "memory_mb": FIXED_MB}
    count_pairs(files, folder / "queries.parquet", settings, **asked, **written)


def count_all(folder: Path, settings: Counting, buckets: int) -> pa.Table:
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
    counts: Counter[str] = Counter()
    for row in read_table(folder / "omissions", "omissions").to_pylist():
        counts[row["reason"]] += row["count"]
    return dict(counts)


def weights_in(folder: Path) -> dict[tuple[int, int], float]:
    return {(row["source"], row["target"]): row["weight"] for row in read_table(folder, "edges").to_pylist()}


def write_contexts(folder, sentences, buckets):
    """Write sentences, each the number of its place in the list, into buckets by the citing paper."""
    for bucket in range(buckets):
        rows = sorted(
            (citing, text_id(f"sentence {number}", None, is_query=True), sorted(cited), f"sentence {number}")
            for number, (citing, cited) in enumerate(sentences)
            if citing % buckets == bucket
        )
        write_rows(folder / f"contexts/{bucket}.parquet", "contexts", "citing context cited sentence", rows)
