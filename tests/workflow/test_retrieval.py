"""An index in a run: found, fitted and scored beside models, and shown with them."""

import pyarrow.parquet as pq
import pytest
from tests.workflow.conftest import edited, planned

from cocite.core.atomic import read_json
from cocite.core.tables.files import read_table

pytestmark = pytest.mark.end_to_end

INDEXES = {
    "found": {"models": ["cocite", "small"], "graph": "citation"},
    "raw": {"of": "found", "rank": {"small": 1}, "known": "more"},
}
SEARCHED = {"kind": "holdout", "search": True, "selection": 0.3}
CONFIG = edited(indexes=INDEXES, benchmarks={"holdout": SEARCHED}, models__cocite__seeds=[1, 2])


def test_an_edit_of_how_an_index_ranks_finds_and_embeds_nothing_again(run):
    jobs = planned(run, CONFIG)
    assert not jobs.of("embed_own_documents")
    assert len(jobs.of("select_vectors", model="cocite")) == 2  # of two seeds
    assert {job.wildcards["seed"] for job in jobs.of("find_candidates", index="found")} == {"1", "2"}
    assert not jobs.of("find_candidates", index="raw")
    vectors = [path for path in jobs.of("find_candidates", seed="2")[0].inputs if "/papers/" in path]
    folders = ["corpus", "encoder/cocite/seed-2", "encoder/untrained_small/seed-0"]
    assert vectors == [f"results/{folder}/papers/{bucket}.parquet" for folder in folders for bucket in (0, 1)]


@pytest.mark.long
def test_an_index_is_scored_like_a_model_and_in_the_report(finished, tmp_path):
    run = finished.copy(tmp_path / "retrieval")
    run.make("all", config=run.configure(CONFIG, "edited.yaml"))
    evaluation, found = run.folder / "results/evaluation/holdout", run.folder / "results/retrieval/found/seed-2/holdout"
    scores = {
        suite: read_table(evaluation / f"scores/{suite}/found-2.parquet", "scores").to_pylist()
        for suite in ("small", "search")
    }
    tasks = {row["task"] for of in scores.values() for row in of}
    assert tasks == {f"{side}{kind}" for side in ("cite", "cocite") for kind in ("", "_matched", "_search")}
    assert len(read_json(found / "weights.json")["weights"]) == 2 + 7
    assert pq.read_metadata(evaluation / "by_citations/raw-1.parquet").num_rows
    page = (run.folder / "results/report/index.html").read_text(encoding="utf-8")
    assert page.count(">found<") >= 2  # rows of two tables
    assert page.count(">raw<") >= 2
    # The candidates have cosines in the order of the models.
    swapped = {**INDEXES, "found": {**INDEXES["found"], "models": ["small", "cocite"]}}
    assert planned(run, CONFIG | {"indexes": swapped}).of("find_candidates", index="found")
