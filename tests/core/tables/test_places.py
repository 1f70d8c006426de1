"""Where tables lie, and what their paths say."""

import re
from pathlib import Path

import pytest

from cocite.core.tables import TABLES
from cocite.core.tables.places import files_by_place, path_of


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("queries", {}, "corpus/queries.parquet"),
        ("graph_scores", {"embedding": "dot"}, "embeddings/dot/graph_scores.parquet"),
        ("edges", {"graph": "citation", "bucket": 3}, "graph/citation/edges/3.parquet"),
        ("edges", {"graph": "citation"}, "graph/citation/edges"),
        (
            "scores",
            {"benchmark": "holdout", "suite": "all", "model": "a-b", "seed": 1},
            "evaluation/holdout/scores/all/a-b-1.parquet",
        ),
    ],
)
def test_a_table_lies_where_its_declaration_says(name, values, expected):
    assert path_of(Path("results"), name, **values) == Path("results", expected)


def test_a_path_lacks_no_name():
    with pytest.raises(KeyError, match="embedding"):
        path_of(Path("results"), "graph_scores")


@pytest.mark.parametrize("name", TABLES)
def test_a_file_is_found_again_where_it_was_put(tmp_path, name):
    values = {each: str(number) for number, each in enumerate(re.findall(r"\{(\w+)\}", TABLES[name].path), start=1)}
    file = path_of(tmp_path, name, **values)
    file.parent.mkdir(parents=True)
    file.touch()
    assert list(files_by_place(tmp_path, TABLES[name]).values()) == [[file]]
