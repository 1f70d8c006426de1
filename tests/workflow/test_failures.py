"""A task that cannot be scored takes nothing with it and is named at the top of the report; broken files are mended."""

import csv
import shlex

import pyarrow as pa
import pytest
from tests.workflow.conftest import planned
from typer.testing import CliRunner

from cocite.cli import app
from cocite.core.tables.files import read_table, write_table

pytestmark = pytest.mark.end_to_end


@pytest.mark.long
def test_a_model_that_lost_embeddings_is_named_in_the_report_and_the_others_are_scored(finished, tmp_path):
    run = finished.copy(tmp_path / "lost")
    results = run.folder / "results"
    embeddings = results / "encoder/cocite/seed-1/embeddings/scirepeval.parquet"
    labels = read_table(results / "evaluation/scirepeval/labels.parquet", "labels").to_pylist()
    lost = {row["document"] for row in labels if row["task"] == "pub_year" and row["split"] == "train"}
    rows = read_table(embeddings, "document_embeddings")
    kept = rows.filter(pa.array([document not in lost for document in rows["document"].to_pylist()]))
    write_table(embeddings, "document_embeddings", kept)
    run.make("results/report/index.html")
    with (results / "report/tables/failures.csv").open() as file:
        [failure] = [row for row in csv.DictReader(file) if row["task"].startswith("year of publication")]
    assert failure["model"] == "cocite"
    assert f"{len(lost)} of" in failure["reason"]
    page = (results / "report/index.html").read_text()
    assert page.index("Not scored.") < page.index("All models on all benchmarks.")
    scores = read_table(results / "evaluation/scirepeval/scores/small", "scores").to_pylist()
    assert {row["model"] for row in scores if row["task"] == "pub_year"} == {"specter", "untrained_small", "random"}


@pytest.mark.long
def test_what_was_broken_is_made_again_with_all_that_depends_on_it(finished, tmp_path, monkeypatch):
    run = finished.copy(tmp_path / "spoilt")
    shard = run.folder / "results/triplets/cocite/documents/0.parquet"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-100])
    (run.folder / "results/.state/run.json").unlink()  # it would say that this is a copy of another run
    monkeypatch.chdir(run.folder)
    output = CliRunner().invoke(app, ["check", "--remove"]).output
    targets = shlex.split(output.splitlines()[-1])[3:]
    assert targets == ["results/triplets/cocite/documents"]
    run.make(*targets)
    assert shard.read_bytes() == whole
    assert len(planned(run).of("train_encoder")) == 1
