"""A benchmark on the hub, fetched and prepared by the workflow; offline after that."""

import pyarrow as pa
import pyarrow.parquet as pq
from tests.hub import COMMIT, serve_hub
from tests.workflow.conftest import SMALL

from cocite.tables.files import read_table


def write(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), path)


def test_a_benchmark_is_fetched_once_and_prepared_without_the_hub_after_that(run, monkeypatch):
    texts, labels = run.folder / "hub/texts", run.folder / "hub/labels"
    documents = [{"doc_id": name, "title": f"title {name}", "abstract": None} for name in "abc"]
    write(texts / "relish/evaluation-00000-of-00001.parquet", *documents)
    write(labels / "relish/test/0000.parquet", {"query_id": "a", "cand_id": "b", "score": 1})
    hub = {half: {"dataset": f"lab/{half}", "revision": COMMIT} for half in ("texts", "labels")}
    benchmark = {"kind": "scirepeval", "hub": hub, "tasks": ["relish"]}
    config = run.configure({**SMALL, "benchmarks": {"sre": benchmark}})
    target = "results/evaluation/sre/documents.parquet"
    monkeypatch.setenv("HF_HOME", str(run.folder / "home"))
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)  # tests that embed in this process have switched it on
    with serve_hub({"lab/texts": texts, "lab/labels": labels}) as (url, _):
        monkeypatch.setenv("HF_ENDPOINT", url)
        result = run.snakemake("--until", "fetch_benchmark", "--", target, config=config)
        assert result.returncode == 0, result.stderr[-3000:]
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    result = run.snakemake(target, config=config)
    assert result.returncode == 0, result.stderr[-3000:]
    assert read_table(run.folder / target, "documents")["document"].to_pylist() == ["a", "b"]
