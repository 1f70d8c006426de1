"""What is written beside the page: the DuckDB file of all tables, the models' cards, Snakemake's own report."""

import os
import shutil
import subprocess
import sys

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from cocite.core.errors import InputError
from cocite.core.tables.files import vector_column, write_table
from cocite.encoder.card import card_of
from cocite.report.writing import with_scores, write_archive, write_cards, write_views


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


CARD = card_of(
    **{"origin": {"Corpus": {"source": "papers of ours"}}, "encoder": {"pooling": "mean"}, "versions": {"torch": "2"}},
    settings={"loss": "triplet", "trainable": {"kind": "all"}},
    seeds={"run": 1, "training": 2},
    triplets={"training": 22, "validation": 6},
    best={"step": 5, "validation_loss": 0.5, "validation_accuracy": 0.9},
)
BENCHMARKS = {"holdout": {"kind": "holdout"}, "real": {"kind": "scirepeval", "folder": "x"}}


def provenance(source="s2", **models):
    return {"configuration": {"corpus": {"source": source}, "benchmarks": BENCHMARKS, "models": models}}


def score(model, value, *, seed=1, evaluation=1, task="cite", metric="map", mode="both"):
    row = {"benchmark": "holdout", "task": task, "metric": metric, "mode": mode, "model": model}
    return row | {"seed": seed, "evaluation_seed": evaluation, "value": value}


def card(*scores, seed=1, known=None):
    return with_scores(CARD, pl.DataFrame(scores, schema=None if scores else ["model"]), seed, known or provenance())


def test_a_card_has_the_scores_of_its_seed_and_the_mean_of_all():
    scores = [score("m", 60.0, seed=1), score("m", 63.0, seed=2, evaluation=1), score("m", 65.0, seed=2, evaluation=2)]
    written = card(*scores, seed=2)
    assert "| benchmark | measure | score | mean of 2 seeds |" in written
    assert "| holdout | papers it cites, MAP | 64.0 | 62.0 ± 2.8 |" in written
    assert written.startswith(CARD.partition("## Scores on benchmarks")[0].rstrip())
    assert written.count("## Scores on benchmarks") == 1
    assert "before the model was scored" not in written


def test_with_one_seed_there_is_no_mean_and_scores_on_generated_documents_are_said_to_be_that():
    row = score("m", -0.04, task="fos", metric="f1_macro", mode="compat")
    assert "The documents of holdout are generated" in card(row, known=provenance("demo"))
    written = card(row)
    assert "| holdout | fields of study, macro F1 (compat) | 0.0 |" in written
    assert "mean of" not in written
    assert "are generated" not in written


def test_the_card_of_an_oracle_says_that_its_scores_are_no_results():
    sets = {"answers": {"sampler": "oracle", "benchmark": "holdout"}, "others": {"sampler": "citations"}}
    known = provenance(best={"triplets": "answers"}, m={"triplets": "others"})
    known["configuration"]["triplets"] = sets
    said = "This model is an oracle: it has learned from the answers of holdout."
    warned = {name: said in card(score(name, 60.0), known=known) for name in ("best", "m")}
    assert warned == {"best": True, "m": False}


def test_every_training_and_the_mean_of_several_has_a_card_and_the_models_own_stay_as_they_are(tmp_path):
    names = ["m/seed-1", "m/seed-2", "m_averaged/seed-0"]
    for name in names:
        (tmp_path / f"encoder/{name}/model").mkdir(parents=True)
        (tmp_path / f"encoder/{name}/model/README.md").write_text(CARD)
    scores = [score("m", 60.0, seed=1), score("m", 70.0, seed=2), score("m_averaged", 71.0, seed=0)]
    known = provenance(m={"seeds": [1, 2], "averaged": True})
    write_cards(tmp_path, pl.DataFrame([*scores, score("other", 1.0)]), known, tmp_path / "cards")
    written = {str(path.parent.relative_to(tmp_path / "cards")): path for path in tmp_path.glob("cards/*/*/README.md")}
    assert sorted(written) == names
    averaged = written["m_averaged/seed-0"].read_text()
    assert "| benchmark | measure | score |\n" in averaged
    assert "| holdout | papers it cites, MAP | 71.0 |" in averaged
    assert "| papers it cites, MAP | 70.0 |" in written["m/seed-2"].read_text()
    assert (tmp_path / "encoder/m/seed-2/model/README.md").read_text() == CARD


def test_runs_without_benchmarks_or_models_have_cards_that_say_so_or_none(tmp_path):
    without = {"configuration": {**provenance()["configuration"], "benchmarks": {}}}
    assert "\n\nThe run had no benchmark.\n" in card(known=without)
    assert "\n\nThis model has no score.\n" in card()
    write_cards(tmp_path, pl.DataFrame([score("random", 1.0)]), provenance(), tmp_path / "cards")
    assert list((tmp_path / "cards").iterdir()) == []


def test_an_archive_needs_a_page_and_one_that_is_newer_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text("pathvars: {results: made}\n")
    report = tmp_path / "made/report"
    report.mkdir(parents=True)
    with pytest.raises(InputError, match="run the workflow first"):
        write_archive(tmp_path / "config.yaml")
    (report / "index.html").touch()
    (report / "report.zip").write_text("kept")
    os.utime(report / "index.html", (1, 1))
    write_archive(tmp_path / "config.yaml")
    assert (report / "report.zip").read_text() == "kept"
