"""Tables are written whole, checked, or not at all, and lie where their declarations say."""

import re
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import table_of

from cocite.core.errors import InputError
from cocite.core.tables import TABLES, files
from cocite.core.tables.places import files_by_place, path_of


def edges(*rows):
    return table_of("edges", "source target weight", rows)


def test_what_is_written_is_read_again_compressed_and_with_its_name(tmp_path):
    path = tmp_path / "e.parquet"
    assert files.write_table(path, "edges", edges((1, 2, 0.5), (1, 3, 1.0))) == 2
    assert files.read_table(path, "edges").to_pylist()[1] == {"source": 1, "target": 3, "weight": 1.0}
    metadata = pq.read_metadata(path)
    assert metadata.row_group(0).column(0).compression == "ZSTD"
    assert metadata.metadata[b"cocite.table"] == b"edges"


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        (edges((1, 3, 1.0), (1, 2, 1.0)), "rising order"),
        (edges((1, 2, 1.0), (1, 2, 2.0)), "rising order"),
        ([*edges((2, 1, 1.0)).to_batches(), *edges((1, 1, 1.0)).to_batches()], "rising order"),
        (edges((1, 2, 1.0)).drop_columns("weight"), "lacks the columns"),
        (edges((1, 2, 1.0)).append_column("more", [[1]]), "unknown"),
        (edges((1, 2, 1.0)).set_column(2, "weight", [pa.array([None], pa.float32())]), "null values"),
        (edges((1, 2, 1.0)).set_column(2, "weight", [pa.array(["heavy"])]), "does not fit"),
    ],
)
def test_what_does_not_fit_its_declaration_is_refused_and_leaves_nothing(tmp_path, rows, complaint):
    with pytest.raises(InputError, match=complaint):
        files.write_table(tmp_path / "e.parquet", "edges", rows)
    assert list(tmp_path.iterdir()) == []


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8))
def test_exactly_strictly_rising_keys_pass(tmp_path_factory, keys):
    path = tmp_path_factory.mktemp("edges") / "e.parquet"
    rows = edges(*[(*key, 1.0) for key in keys])
    if all(before < after for before, after in pairwise(keys)):
        assert files.write_table(path, "edges", rows) == len(keys)
    else:
        with pytest.raises(InputError):
            files.write_table(path, "edges", rows)


def test_a_failure_keeps_the_file_that_was_there(tmp_path):
    files.write_table(tmp_path / "e.parquet", "edges", edges((1, 2, 0.5)))
    with pytest.raises(InputError):
        files.write_table(tmp_path / "e.parquet", "edges", edges((1, 2, 1.0), (1, 2, 1.0)))
    assert files.count_rows(tmp_path / "e.parquet") == 1


def test_a_broken_file_and_another_table_are_named(tmp_path):
    (tmp_path / "e.parquet").write_bytes(b"PAR1 but not really")
    files.write_omissions(tmp_path / "o.parquet", {"reason": 1})
    for name, said in (("e", r"e\.parquet: not a readable Parquet file"), ("o", "is not the table edges")):
        with pytest.raises(InputError, match=said):
            files.read_table(tmp_path / f"{name}.parquet", "edges")


def test_each_paper_gets_its_own_vector_wherever_it_is_and_absent_ones_none(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "VECTORS_AT_ONCE", 7)
    papers, vectors = np.arange(1000, 1040), np.random.default_rng(5).normal(size=(40, 3)).astype(np.float32)
    for bucket in range(2):
        rows = {"corpusid": papers[bucket::2], "vector": files.vector_column(vectors[bucket::2])}
        files.write_table(tmp_path / f"{bucket}.parquet", "paper_embeddings", pa.table(rows))
    read = files.vectors_of(files.read_table(tmp_path, "paper_embeddings"))
    np.testing.assert_array_equal(read, np.concatenate([vectors[::2], vectors[1::2]]))
    asked = np.array([3, 1000, 1007, 1022, 1039, 5000])
    found, is_there = files.vectors_of_papers(tmp_path, "paper_embeddings", asked)
    assert is_there.tolist() == [False, True, True, True, True, False]
    np.testing.assert_array_equal(found[1:5], vectors[[0, 7, 22, 39]])
    assert not found[[0, 5]].any()
    files.write_table(tmp_path / "1.parquet", "edges", edges((1, 2, 0.5)))
    with pytest.raises(InputError, match=r"1\.parquet"):
        files.vectors_of_papers(tmp_path, "paper_embeddings", papers)


def test_a_folder_is_replaced_as_a_whole_and_not_there_if_it_fails_halfway(tmp_path):
    for content in ("old", "new"):
        with files.atomic_path(tmp_path / "folder") as folder:
            folder.mkdir()
            (folder / content).write_text(content)
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["new"]
    with suppress(RuntimeError), files.atomic_path(tmp_path / "other") as folder:
        folder.mkdir()
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    (tmp_path / ".e.parquet.1234.tmp").write_text("half a file")
    (tmp_path / ".f.parquet.1234.tmp").write_text("half another")
    files.write_table(tmp_path / "e.parquet", "edges", edges((1, 2, 0.5)))
    assert {path.name for path in tmp_path.iterdir()} == {"e.parquet", ".f.parquet.1234.tmp"}


def test_a_full_disk_is_told_with_a_folder_that_stays(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.pq.ParquetWriter, "write_table", full)
    said = rf"disk is full: {tmp_path} has"
    with pytest.raises(InputError, match=said), files.atomic_path(tmp_path / "folder") as folder:
        files.write_table(folder / "e.parquet", "edges", edges((1, 2, 0.5)))
    assert list(tmp_path.iterdir()) == []


SCORES = {"benchmark": "holdout", "suite": "all", "model": "a-b", "seed": 1}


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("queries", {}, "corpus/queries.parquet"),
        ("graph_scores", {"embedding": "dot"}, "embeddings/dot/graph_scores.parquet"),
        ("edges", {"graph": "citation", "bucket": 3}, "graph/citation/edges/3.parquet"),
        ("edges", {"graph": "citation"}, "graph/citation/edges"),
        ("scores", SCORES, "evaluation/holdout/scores/all/a-b-1.parquet"),
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
