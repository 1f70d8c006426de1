"""Small results of a finished run: five papers, and what is related to them."""

from datetime import date
from pathlib import Path

import pytest
from tests.papers import papers_table
from tests.rows import write_rows

from cocite.core.tables.files import write_table
from cocite.report.writing import write_views

TITLES = {1: "Bees", 2: "Nectar", 3: "Flowers [of spring]", 4: "Compilers", 5: "Loops"}
PAIRS = {"all/cocitations/0": [(2, 3, 4), (2, 4, 1)], "all/cocitations/1": [(1, 2, 7), (1, 3, 9)]}
PAIRS["few/cocitations/0"] = [(1, 2, 1)]
TRIPLET = "query positive negative split negative_kind positive_rank negative_rank"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Co-citations of two graphs, neighbours in one embedding, triplets, citations, and the views over them."""
    for bucket, dates in ((0, [date(2002, 5, 1), None]), (1, [None] * 3)):
        texts = {paper: (title, f"Abstract {paper}.") for paper, title in TITLES.items() if paper % 2 == bucket}
        papers = papers_table(texts, year=[2000 + paper for paper in texts], date=dates)
        write_table(tmp_path / f"corpus/papers/{bucket}.parquet", "papers", papers)
    citations = [(3, 2, False, []), (4, 2, True, []), (5, 1, False, [])]
    write_rows(tmp_path / "corpus/citations/0.parquet", "citations", "citing cited influential intents", citations)
    for place, rows in PAIRS.items():
        write_rows(tmp_path / f"graph/{place}.parquet", "cocitations", "paper other count", rows)
    nearest, columns = tmp_path / "neighbours/dot/neighbours/0.parquet", "query rank neighbour distance"
    write_rows(nearest, "neighbours", columns, [(2, 1, 3, 0.25), (2, 2, 1, 0.5)])
    write_rows(tmp_path / "triplets/near/triplets.parquet", "triplets", TRIPLET, [(2, 3, 5, "train", "hard", 1, 9)])
    write_views(tmp_path, tmp_path / "cocite.duckdb")
    return tmp_path
