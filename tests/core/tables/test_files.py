"""Tables are written whole, checked, or not at all."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.core.errors import InputError
from cocite.core.tables import files


def edges(*rows):
    columns = list(zip(*rows, strict=True)) if rows else [[], [], []]
    return pa.table(
        {
            "source": pa.array(columns[0], pa.int64()),
            "target": pa.array(columns[1], pa.int64()),
            "weight": pa.array(columns[2], pa.float32()),
        }
    )


def test_what_is_written_is_read_again(tmp_path):
    assert files.write_table(tmp_path / "e.parquet", "edges", edges((1, 2, 0.5), (1, 3, 1.0))) == 2
    assert files.read_table(tmp_path / "e.parquet", "edges").to_pylist()[1] == {"source": 1, "target": 3, "weight": 1.0}


def test_a_table_is_compressed_and_carries_its_name(tmp_path):
    files.write_table(tmp_path / "e.parquet", "edges", edges((1, 2, 0.5)))
    metadata = pq.read_metadata(tmp_path / "e.parquet")
    assert metadata.row_group(0).column(0).compression == "ZSTD"
    assert metadata.metadata[b"cocite.table"] == b"edges"


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        (edges((1, 3, 1.0), (1, 2, 1.0)), "rising order"),
        (edges((1, 2, 1.0), (1, 2, 2.0)), "rising order"),
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


def test_order_is_checked_across_batches(tmp_path):
    batches = [*edges((2, 1, 1.0)).to_batches(), *edges((1, 1, 1.0)).to_batches()]
    with pytest.raises(InputError, match="rising order"):
        files.write_table(tmp_path / "e.parquet", "edges", batches)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8))
def test_exactly_strictly_rising_keys_pass(tmp_path_factory, keys):
    path = tmp_path_factory.mktemp("edges") / "e.parquet"
    rising = all(before < after for before, after in pairwise(keys))
    rows = edges(*[(*key, 1.0) for key in keys])
    if rising:
        assert files.write_table(path, "edges", rows) == len(keys)
    else:
        with pytest.raises(InputError):
            files.write_table(path, "edges", rows)


def test_a_failure_keeps_the_file_that_was_there(tmp_path):
    files.write_table(tmp_path / "e.parquet", "edges", edges((1, 2, 0.5)))
    with pytest.raises(InputError):
        files.write_table(tmp_path / "e.parquet", "edges", edges((1, 2, 1.0), (1, 2, 1.0)))
    assert files.count_rows(tmp_path / "e.parquet") == 1


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "e.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(InputError, match=r"e\.parquet: not a readable Parquet file"):
        files.read_table(tmp_path / "e.parquet", "edges")


def test_another_table_is_not_read_as_this_one(tmp_path):
    files.write_omissions(tmp_path / "o.parquet", {"reason": 1})
    with pytest.raises(InputError, match="is not the table edges"):
        files.read_table(tmp_path / "o.parquet", "edges")


def test_vectors_keep_their_dimension(tmp_path):
    vectors = np.arange(6, dtype=np.float32).reshape(2, 3)
    rows = pa.table({"corpusid": [1, 2], "vector": files.vector_column(vectors)})
    files.write_table(tmp_path / "v.parquet", "graph_embeddings", rows)
    np.testing.assert_array_equal(
        files.vectors_of(files.read_table(tmp_path / "v.parquet", "graph_embeddings")), vectors
    )


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    for content in ("old", "new"):
        with files.atomic_path(tmp_path / "folder") as folder:
            folder.mkdir()
            (folder / content).write_text(content)
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["new"]


def test_a_folder_that_fails_halfway_is_not_there(tmp_path):
    def fail():
        with files.atomic_path(tmp_path / "folder") as folder:
            folder.mkdir()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    (tmp_path / ".e.parquet.1234.tmp").write_text("half a file")
    (tmp_path / ".f.parquet.1234.tmp").write_text("half another")
    files.write_table(tmp_path / "e.parquet", "edges", edges((1, 2, 0.5)))
    assert {path.name for path in tmp_path.iterdir()} == {"e.parquet", ".f.parquet.1234.tmp"}


def test_a_full_disk_is_told_with_a_folder_that_stays(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.pq.ParquetWriter, "write_table", full)
    with (
        pytest.raises(InputError, match=rf"disk is full: {tmp_path} has"),
        files.atomic_path(tmp_path / "folder") as folder,
    ):
        files.write_table(folder / "e.parquet", "edges", edges((1, 2, 0.5)))
    assert list(tmp_path.iterdir()) == []
