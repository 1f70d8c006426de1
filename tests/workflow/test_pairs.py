"""Brought queries and documents in a run: fetched once, sampled, and joined with sets of papers."""

import json
import shutil

import pytest
from tests.hub import COMMIT, serve_hub
from tests.workflow.conftest import SMALL, Run, edited

from cocite.core.tables.files import read_table


def write_pairs(folder, count=40):
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"query": f"words {n}", "positive": {"title": f"Document {n}", "text": "about them"}} for n in range(count)]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.mark.long
@pytest.mark.end_to_end
def test_pairs_are_fetched_once_and_learned_from_without_the_hub_after_that(finished, tmp_path, monkeypatch):
    run = Run(folder=shutil.copytree(finished.folder, tmp_path / "pairs"))
    hub = write_pairs(run.folder / "hub/searches")
    searches = {
        "sampler": "pairs",
        "layout": "rows",
        "dataset": "lab/searches",
        "revision": COMMIT,
        "group": "searches",
    }
    joined = {"sampler": "union", "of": ["searches", "specter"], "group": "joined"}
    config = run.configure(edited(triplets=SMALL["triplets"] | {"searches": searches, "joined": joined}))
    monkeypatch.setenv("HF_HOME", str(run.folder / "home"))
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    targets = [f"results/triplets/{name}/documents" for name in ("joined", "validation_searches")]
    with serve_hub({"lab/searches": hub}) as (url, _):
        monkeypatch.setenv("HF_ENDPOINT", url)
        result = run.snakemake("--until", "fetch_pairs", "--", *targets, config=config)
        assert result.returncode == 0, result.stderr[-3000:]
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    result = run.snakemake(*targets, config=config)
    assert result.returncode == 0, result.stderr[-3000:]
    documents = read_table(run.folder / targets[0], "training_documents").to_pylist()
    short = {row["title"] for row in documents if row["is_query"]}
    assert 30 <= len(short) <= 39
    assert short < {f"words {n}" for n in range(40)}
    assert all((row["corpusid"] < 0) == (row["title"].startswith(("words ", "Document "))) for row in documents)
    validating = {row["title"] for row in read_table(run.folder / targets[1], "training_documents").to_pylist()}
    assert {f"words {n}" for n in range(40)} == short | {title for title in validating if title.startswith("words")}


@pytest.mark.long
def test_a_hub_that_cannot_be_reached_gives_one_sentence(run, monkeypatch):
    searches = {"sampler": "pairs", "layout": "rows", "dataset": "lab/searches", "revision": COMMIT}
    config = run.configure(edited(triplets=SMALL["triplets"] | {"searches": searches}))
    monkeypatch.setenv("HF_HOME", str(run.folder / "home"))
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    result = run.snakemake("results/triplets/searches/fetched", config=config)
    assert result.returncode != 0
    log = (run.folder / "logs/triplets/searches/fetch.log").read_text()
    assert f"lab/searches at {COMMIT} cannot be fetched from the hub" in log
    assert "Traceback" not in log
