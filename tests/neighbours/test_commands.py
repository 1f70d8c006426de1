"""The commands, as the rules call them."""

import json
from pathlib import Path

import pytest
from tests.neighbours.small_searches import LINE, read_rows, write_queries, write_vectors
from typer.testing import CliRunner

from cocite.cli import app
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.neighbours.searching import NOT_REACHED, NOT_SEARCHED


def run(folder: Path, command: str, settings: dict[str, object], *options: str) -> None:
    arguments = [command, "--vectors", folder / "graph_embeddings.parquet", "--settings", json.dumps(settings)]
    CliRunner().invoke(app, ["neighbours", *map(str, arguments), "--threads", "1", *options], catch_exceptions=False)


def test_an_index_is_built_searched_and_measured(tmp_path: Path) -> None:
    write_vectors(tmp_path, LINE)
    queries = ["--queries", str(write_queries(tmp_path, {1: "train", 9: "train"}))]
    index, quality, found, omissions = (str(tmp_path / name) for name in ("index", "quality", "found", "omissions"))
    asked = {"metric": "l2", "index": {"kind": "ivf", "nprobe": 1}, "k": 2}
    run(tmp_path, "index", {"metric": "l2", "index": {"kind": "ivf", "nlist": 1}}, "--seed", "1", "--output", index)
    written = ["--output", found, "--omissions", omissions, "--state", str(tmp_path / "state")]
    shard = ["--shard", "1", "2", "--memory-mb", "1000"]
    run(tmp_path, "search", asked, *queries, *shard, "--index", index, *written)
    run(tmp_path, "measure", asked, *queries, "--index", index, "--sample", "3", "--seed", "1", "--output", quality)
    assert read_rows(Path(found)) == [(1, 1, 2, 9.0), (1, 2, 4, 9.0)]
    assert read_table(Path(omissions), "omissions").to_pylist() == [
        {"reason": NOT_REACHED, "count": 0},
        {"reason": NOT_SEARCHED, "count": 1},
    ]
    (row,) = read_table(Path(quality), "search_quality").to_pylist()
    assert (row["k"], row["queries"], row["recall"]) == (2, 1, 1.0)


def test_an_unknown_setting_is_refused(tmp_path: Path) -> None:
    others = ["--queries", "q", "--index", "i", "--output", "o", "--sample", "3", "--seed", "1"]
    with pytest.raises(InputError, match="key probes is not known; known are metric, k, index"):
        run(tmp_path, "measure", {"probes": 3}, *others)
