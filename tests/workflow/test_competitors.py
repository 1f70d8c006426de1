"""Twelve collections and three competitors that nobody trains, in one run."""

import pyarrow.parquet as pq
import pytest
from tests.evaluation.collections import write_collections
from tests.workflow.conftest import SMALL


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_twelve_collections_are_scored_for_three_competitors_to_the_report(run):
    collections = write_collections(run.folder / "collections")
    collections["scirepeval"]["tasks"] = ["drsm", "relish"]  # its large tasks would have jobs of their own
    collections |= {"own": {"kind": "holdout"}, "by-aspect": {"kind": "aspects", "positives": 2, "linked": 2}}
    assert len(collections) == 12
    kept = {key: SMALL[key] for key in ("release", "precision", "queries", "encoders")}
    corpus = {"source": "demo", "buckets": 1, "demo": {"papers": 700, "topics": 8, "shards": 1}}
    run.configure(kept | {"corpus": corpus, "benchmarks": collections, "maps": {}})
    run.make("all")
    for name in collections:
        competitors = {"untrained_small", "bm25", "random"}
        competitors -= {"bm25"} if name == "s2and" else set()  # words rank, and do not tell authors apart
        results = run.folder / "results/evaluation" / name
        assert {file.stem for file in results.glob("scores/small/*.parquet")} == {f"{each}-0" for each in competitors}
        averages = pq.read_table(results / "averages.parquet").to_pylist()
        assert {row["model"] for row in averages} == competitors, name
    assert "litsearch_specific" in (run.folder / "results/report/index.html").read_text()
    assert "Nothing to be done" in run.make("all")
