"""The DuckDB file shows every table, with what the files' paths tell as columns."""

import shutil
import subprocess
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from cocite.core.errors import InputError
from cocite.core.tables.files import vector_column, write_table
from cocite.report.writing import write_views


def query(path, sql):
    with duckdb.connect(path, read_only=True) as database:
        return database.sql(sql).fetchall()


def write_edges(path, *ends):
    columns = {"source": [a for a, _ in ends], "target": [b for _, b in ends], "weight": pa.array([1.0] * len(ends))}
    write_table(path, "edges", pa.table(columns))


def test_tables_that_are_there_have_a_view_that_unites_buckets_and_keeps_names_apart(tmp_path):
    write_edges(tmp_path / "graph/cited/edges/0.parquet", (2, 3))
    write_edges(tmp_path / "graph/cited/edges/1.parquet", (1, 3), (3, 4))
    write_edges(tmp_path / "graph/both/edges/0.parquet", (2, 3))
    for name, dimension in (("small", 2), ("large", 3)):
        rows = pa.table({"corpusid": [1], "vector": vector_column(np.ones((1, dimension)))})
        write_table(tmp_path / f"embeddings/{name}/graph_embeddings.parquet", "graph_embeddings", rows)
    curves = pa.table({"step": [1], "metric": ["validation_loss"], "value": [0.5]})
    write_table(tmp_path / "encoder/model-a/seed-12/training_curves.parquet", "training_curves", curves)
    file = tmp_path / "cocite.duckdb"
    write_views(tmp_path, file)
    views = "SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
    assert query(file, views) == [("edges",), ("graph_embeddings",), ("training_curves",)]
    assert query(file, "SELECT graph, count(*) FROM edges GROUP BY ALL ORDER BY ALL") == [("both", 1), ("cited", 3)]
    lengths = "SELECT embedding, len(vector) FROM graph_embeddings ORDER BY ALL"
    assert query(file, lengths) == [("large", 3), ("small", 2)]
    assert query(file, "SELECT model, seed FROM training_curves") == [("model-a", 12)]  # a seed is a number
    (tmp_path / "configuration.yaml").write_text("graphs: {cited: {}}\n")
    write_views(tmp_path, file)  # without files of entries that are gone
    assert query(file, "SELECT DISTINCT graph FROM edges") == [("cited",)]


@pytest.fixture
def run(tmp_path):
    """Results with one edge, and the views over them."""
    folder = tmp_path / "run"
    write_edges(folder / "graph/cited/edges/0.parquet", (1, 2))
    write_views(folder, folder / "cocite.duckdb")
    return folder


def plainly(path, cwd):
    """The edges that a program shows that knows nothing of CoCite, as `duckdb PATH` in a folder does."""
    program = f"import duckdb; print(duckdb.connect({path!r}, read_only=True).execute('FROM edges').fetchall())"
    return subprocess.check_output([sys.executable, "-c", program], cwd=cwd, text=True).strip()


@pytest.mark.parametrize("name", ["copy", "it's [1] *copy", "run2.tmp"])
def test_a_copied_folder_shows_its_own_tables_wherever_it_is_opened_from(run, tmp_path, name):
    copied = shutil.copytree(run, tmp_path / name)
    write_edges(copied / "graph/cited/edges/0.parquet", (3, 4))
    (tmp_path / "elsewhere").mkdir()
    for path, cwd in [
        (str(copied / "cocite.duckdb"), tmp_path / "elsewhere"),
        (f"../{name}/cocite.duckdb", tmp_path / "elsewhere"),
        ("cocite.duckdb", copied),
        ("../cocite.duckdb", copied / "graph"),
    ]:
        assert plainly(path, cwd) == "[('cited', 3, 4, 1.0, None)]"
    moved = run.rename(tmp_path / "moved")
    assert plainly(str(moved / "cocite.duckdb"), tmp_path) == "[('cited', 1, 2, 1.0, None)]"


def test_a_folder_whose_name_is_a_pattern_is_not_taken_for_one_and_views_may_lie_outside_of_it(tmp_path):
    for name, edge in (("run[1]", (1, 2)), ("run1", (3, 4))):
        write_edges(tmp_path / name / "graph/cited/edges/0.parquet", edge)
    for file in (tmp_path / "run[1]/cocite.duckdb", tmp_path / "views/all.duckdb"):
        write_views(tmp_path / "run[1]", file)
        assert query(file, "SELECT source FROM edges") == [(1,)]


@pytest.fixture
def session():
    with duckdb.connect() as database:
        yield database


def test_an_attached_folder_is_shown_once_the_session_says_where_it_is_and_has_the_oldest_format(run, session):
    session.execute(f"ATTACH '{run}/cocite.duckdb' AS run (READ_ONLY)")
    with pytest.raises(duckdb.Error, match="SET VARIABLE results = the path of its folder"):
        session.execute("FROM run.edges")
    session.execute(f"SET VARIABLE results = '{run}'")
    assert session.execute("SELECT source FROM run.edges").fetchall() == [(1,)]
    ((tags,),) = session.execute("SELECT tags FROM duckdb_databases() WHERE database_name = 'run'").fetchall()
    assert tags["storage_version"].startswith("v1.0.0")


def test_two_folders_in_one_session_are_refused_and_not_mistaken_for_each_other(run, tmp_path):
    copied = shutil.copytree(run, tmp_path / "copy")
    with duckdb.connect(run / "cocite.duckdb", read_only=True) as database:
        database.execute(f"ATTACH '{copied}/cocite.duckdb' AS other (READ_ONLY)")
        for table in ("edges", "other.edges"):
            with pytest.raises(duckdb.Error, match="Two folders of results are attached"):
                database.execute(f"FROM {table}")


def test_views_attached_to_a_database_in_another_folder_of_results_do_not_show_that_one(run, tmp_path):
    copied = shutil.copytree(run, tmp_path / "copy")
    with duckdb.connect(copied / "mine.duckdb") as database:
        database.execute(f"ATTACH '{run}/cocite.duckdb' AS run (READ_ONLY)")
        with pytest.raises(duckdb.Error, match="would show the files in its folder"):
            database.execute("FROM run.edges")


def test_a_broken_file_is_named_and_no_views_are_written(run):
    (run / "cocite.duckdb").unlink()
    broken = run / "graph/cited/edges/0.parquet"
    broken.write_bytes(broken.read_bytes()[:20])
    with pytest.raises(InputError, match=r"graph/cited/edges/0\.parquet: not a readable Parquet file"):
        write_views(run, run / "cocite.duckdb")
    assert not (run / "cocite.duckdb").exists()
