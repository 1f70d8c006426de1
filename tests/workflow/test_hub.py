"""Benchmarks and user-supplied pairs on the hub, fetched once by the workflow, and used offline after that."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.hub import COMMIT
from tests.workflow.conftest import SMALL, edited

from cocite.core.tables.files import read_table

pytestmark = pytest.mark.long
DOCUMENTS = "results/evaluation/fetched/documents.parquet"
SEARCHES = {"sampler": "pairs", "layout": "rows", "dataset": "lab/searches", "revision": COMMIT, "group": "searches"}


def write(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), path)


def test_litsearch_is_fetched_once_without_the_corpus_of_full_texts(run, monkeypatch):
    litsearch = run.folder / "hub/litsearch"
    for number in (1, 2):
        paper = {"corpusid": number, "title": f"t{number}", "abstract": None, "full_paper": "A long text."}
        write(litsearch / f"corpus_clean/full-0000{number - 1}-of-00002.parquet", paper)
    write(litsearch / "query/full-00000-of-00001.parquet", {"query": "what", "specificity": 1, "corpusids": [2]})
    (litsearch / "corpus_s2orc").mkdir()
    (litsearch / "corpus_s2orc/full-00000-of-00001.parquet").write_text("broken")
    hub = {"dataset": "lab/litsearch", "revision": COMMIT}
    fetched = {"kind": "litsearch", "hub": hub, "tasks": ["litsearch_specific"]}
    run.configure(SMALL | {"benchmarks": {"fetched": fetched}})
    run.fetch(monkeypatch, {"lab/litsearch": litsearch}, "fetch_benchmark", DOCUMENTS)
    assert read_table(run.folder / DOCUMENTS, "documents")["document"].to_pylist() == ["1", "2", "query-0"]
    folders = (run.folder / "results/evaluation/fetched/hub/data").iterdir()
    assert sorted(path.name for path in folders) == ["corpus_clean", "query"]


def test_a_benchmark_is_fetched_once_and_prepared_without_the_hub_after_that(run, monkeypatch):
    texts, labels = run.folder / "hub/texts", run.folder / "hub/labels"
    documents = [{"doc_id": name, "title": f"title {name}", "abstract": None} for name in "abc"]
    write(texts / "relish/evaluation-00000-of-00001.parquet", *documents)
    write(labels / "relish/test/0000.parquet", {"query_id": "a", "cand_id": "b", "score": 1})
    hub = {half: {"dataset": f"lab/{half}", "revision": COMMIT} for half in ("texts", "labels")}
    run.configure(SMALL | {"benchmarks": {"fetched": {"kind": "scirepeval", "hub": hub, "tasks": ["relish"]}}})
    run.fetch(monkeypatch, {"lab/texts": texts, "lab/labels": labels}, "fetch_benchmark", DOCUMENTS)
    assert read_table(run.folder / DOCUMENTS, "documents")["document"].to_pylist() == ["a", "b"]


@pytest.mark.end_to_end
def test_pairs_are_fetched_once_and_learned_from_without_the_hub_after_that(finished, tmp_path, monkeypatch):
    run = finished.copy(tmp_path / "pairs")
    pairs = [{"query": f"words {n}", "positive": {"title": f"Document {n}", "text": "about them"}} for n in range(40)]
    (run.folder / "hub").mkdir()
    (run.folder / "hub/train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pairs))
    joined = {"sampler": "union", "of": ["searches", "specter"], "group": "joined"}
    run.configure(edited(triplets=SMALL["triplets"] | {"searches": SEARCHES, "joined": joined}))
    targets = [f"results/triplets/{name}/documents" for name in ("joined", "validation_searches")]
    run.fetch(monkeypatch, {"lab/searches": run.folder / "hub"}, "fetch_pairs", *targets)
    joined, validating = (read_table(run.folder / each, "training_documents").to_pylist() for each in targets)
    queries = {row["title"] for row in joined if row["is_query"]}
    wanted = {row["query"] for row in pairs}
    assert 30 <= len(queries) <= 39
    assert all((row["corpusid"] < 0) == (row["title"].startswith(("words ", "Document "))) for row in joined)
    assert queries < wanted == queries | {row["title"] for row in validating if row["title"] in wanted}


def test_a_hub_that_cannot_be_reached_gives_one_sentence(run, monkeypatch):
    run.configure(edited(triplets=SMALL["triplets"] | {"searches": SEARCHES}))
    monkeypatch.setenv("HF_HOME", str(run.folder / "home"))
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert run.snakemake("results/triplets/searches/fetched").returncode != 0
    log = (run.folder / "logs/triplets/searches/fetch.log").read_text()
    assert f"lab/searches at {COMMIT} cannot be fetched from the hub" in log
    assert "Traceback" not in log
