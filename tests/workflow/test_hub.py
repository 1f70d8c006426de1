"""Benchmarks on the hub, fetched and prepared by the workflow; offline after that."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.hub import COMMIT, serve_hub
from tests.workflow.conftest import SMALL

from cocite.core.tables.files import read_table


def write(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), path)


def fetch_and_prepare(run, monkeypatch, repositories, benchmark):
    """Fetch a benchmark from a hub that serves these folders, then prepare it without the hub; its documents."""
    config = run.configure({**SMALL, "benchmarks": {"fetched": benchmark}})
    target = "results/evaluation/fetched/documents.parquet"
    monkeypatch.setenv("HF_HOME", str(run.folder / "home"))
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)  # tests that embed in this process have switched it on
    with serve_hub(repositories) as (url, _):
        monkeypatch.setenv("HF_ENDPOINT", url)
        result = run.snakemake("--until", "fetch_benchmark", "--", target, config=config)
        assert result.returncode == 0, result.stderr[-3000:]
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    result = run.snakemake(target, config=config)
    assert result.returncode == 0, result.stderr[-3000:]
    return read_table(run.folder / target, "documents")["document"].to_pylist()


@pytest.mark.long
def test_litsearch_is_fetched_once_without_the_corpus_of_full_texts(run, monkeypatch):
    litsearch = run.folder / "hub/litsearch"
    for number in (1, 2):
        paper = {"corpusid": number, "title": f"t{number}", "abstract": None, "full_paper": "A long text."}
        write(litsearch / f"corpus_clean/full-0000{number - 1}-of-00002.parquet", paper)
    write(litsearch / "query/full-00000-of-00001.parquet", {"query": "what", "specificity": 1, "corpusids": [2]})
    (litsearch / "corpus_s2orc").mkdir()
    (litsearch / "corpus_s2orc/full-00000-of-00001.parquet").write_text("broken")
    hub = {"dataset": "lab/litsearch", "revision": COMMIT}
    benchmark = {"kind": "litsearch", "hub": hub, "tasks": ["litsearch_specific"]}
    documents = fetch_and_prepare(run, monkeypatch, {"lab/litsearch": litsearch}, benchmark)
    assert documents == ["1", "2", "query-0"]
    fetched = run.folder / "results/evaluation/fetched/hub"
    assert sorted(path.name for path in (fetched / "data").iterdir()) == ["corpus_clean", "query"]


@pytest.mark.long
def test_a_benchmark_is_fetched_once_and_prepared_without_the_hub_after_that(run, monkeypatch):
    texts, labels = run.folder / "hub/texts", run.folder / "hub/labels"
    documents = [{"doc_id": name, "title": f"title {name}", "abstract": None} for name in "abc"]
    write(texts / "relish/evaluation-00000-of-00001.parquet", *documents)
    write(labels / "relish/test/0000.parquet", {"query_id": "a", "cand_id": "b", "score": 1})
    hub = {half: {"dataset": f"lab/{half}", "revision": COMMIT} for half in ("texts", "labels")}
    benchmark = {"kind": "scirepeval", "hub": hub, "tasks": ["relish"]}
    repositories = {"lab/texts": texts, "lab/labels": labels}
    assert fetch_and_prepare(run, monkeypatch, repositories, benchmark) == ["a", "b"]
