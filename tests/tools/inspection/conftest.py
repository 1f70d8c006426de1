"""Small results of a finished run: five papers, and what is related to them."""

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from tests.papers import papers_table

from cocite.core.tables.files import write_table
from cocite.report.writing import write_views

TITLES = {1: "Bees", 2: "Nectar", 3: "Flowers [of spring]", 4: "Compilers", 5: "Loops"}


def _write_pairs(path: Path, *rows: tuple[int, int, int]) -> None:
    papers, others, counts = zip(*rows, strict=True)
    write_table(path, "cocitations", pa.table({"paper": papers, "other": others, "count": counts}))


def _write_neighbours(path: Path, query: int, *found: tuple[int, float]) -> None:
    neighbours, distances = zip(*found, strict=True)
    columns = {"query": [query] * len(found), "rank": range(1, len(found) + 1), "neighbour": neighbours}
    write_table(path, "neighbours", pa.table({**columns, "distance": pa.array(distances, pa.float32())}))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Co-citations of two graphs, neighbours in one embedding, triplets, citations, and the views over them."""
    texts = {paper: (title, f"Abstract {paper}.") for paper, title in TITLES.items()}
    years = [2001, 2002, 2003, 2004, 2005]
    odd, even = ({paper: texts[paper] for paper in texts if paper % 2 == rest} for rest in (1, 0))
    write_table(
        tmp_path / "corpus/papers/0.parquet",
        "papers",
        papers_table(even, year=years[1::2], date=[date(2002, 5, 1), None]),
    )
    write_table(tmp_path / "corpus/papers/1.parquet", "papers", papers_table(odd, year=years[::2]))
    citations = {"citing": [3, 4, 5], "cited": [2, 2, 1], "influential": [False, True, False], "intents": [[], [], []]}
    columns = {**citations, "intents": pa.array(citations["intents"], pa.list_(pa.string()))}
    write_table(tmp_path / "corpus/citations/0.parquet", "citations", pa.table(columns))
    _write_pairs(tmp_path / "graph/all/cocitations/0.parquet", (2, 3, 4), (2, 4, 1))
    _write_pairs(tmp_path / "graph/all/cocitations/1.parquet", (1, 2, 7), (1, 3, 9))
    _write_pairs(tmp_path / "graph/few/cocitations/0.parquet", (1, 2, 1))
    _write_neighbours(tmp_path / "neighbours/dot/neighbours/0.parquet", 2, (3, 0.25), (1, 0.5))
    triplet = {"query": [2], "positive": [3], "negative": [5], "split": ["train"], "negative_kind": ["hard"]}
    ranks = {f"{role}_rank": pa.array([rank], pa.int32()) for role, rank in (("positive", 1), ("negative", 9))}
    write_table(tmp_path / "triplets/near/triplets.parquet", "triplets", pa.table({**triplet, **ranks}))
    write_views(tmp_path, tmp_path / "cocite.duckdb")
    return tmp_path
