"""Searches of the whole corpus against plain definitions: numpy, trec_eval, bm25s."""

import bm25s
import numpy as np
import pytest
import pytrec_eval
from tests.evaluation.folders import RUN, write_paper_vectors
from tests.papers import papers_table
from tests.rows import write_rows

from cocite.config.benchmarks import TASKS
from cocite.core import searching
from cocite.core.tables.files import read_table, write_table
from cocite.evaluation import corpus_scoring
from cocite.evaluation.benchmark import Benchmark, write_tables
from cocite.evaluation.corpus_scoring import search_corpus
from cocite.evaluation.scoring import by_popularity, write_results

SEARCHES = ("cite_search", "cocite_search")
WORDS = ("graph", "network", "citation", "paper", "model", "search", "vector", "index", "user", "study", "rank")


def grade_of(paper):
    """1, or 2 as influential citations have it."""
    return 1 + paper % 2


def write_benchmark(folder, relevant, citations, selection=()):
    """`relevant` has the papers of each query by task; `citations` those of each paper that is searched."""
    rows = [
        (task, query, paper, grade_of(paper), "selection" if query in selection else "test")
        for task, of in relevant.items()
        for query, papers in of.items()
        for paper in papers
    ]
    write_rows(folder / "tables/searches.parquet", "searches", "task query paper relevance split", sorted(rows))
    write_rows(folder / "tables/popularity.parquet", "popularity", "corpusid citations", sorted(citations.items()))


def search(folder, missing=0.0, **by):
    files = {name: folder / f"{name}.parquet" for name in ("scores", "outcomes", "failures", "by_citations")}
    given = {"tables": folder / "tables", "tasks": ",".join(SEARCHES), "largest_missing": missing}
    search_corpus(**given, model="m", training_seed=1, evaluation_seed=5, **by, **files)
    names = {"by_citations": "scores_by_citations"}
    return {name: read_table(path, names.get(name, name)).to_pylist() for name, path in files.items()}


def rank_by_citations(folder, benchmark):
    """The rows of scores and failures of given candidates that citations alone rank."""
    write_tables(benchmark, folder / "tables")
    files = {name: folder / f"{name}.parquet" for name in ("scores", "outcomes", "failures")}
    score = by_popularity(folder / "tables/popularity.parquet", RUN)
    write_results([TASKS[name] for name in benchmark.judgements], folder / "tables", RUN, files, score)
    return {name: read_table(files[name], name).to_pylist() for name in ("scores", "failures")}


def values(tables):
    return {(row["task"], row["metric"]): row["value"] for row in tables["scores"]}


def expected_values(similarity, relevant):
    """Of each task and metric, by trec_eval, or by counting; `similarity` is that of each query to each paper."""
    run = {str(q): {str(p): float(s) for p, s in of.items() if p != q} for q, of in similarity.items()}
    found = {}
    for task, of_task in relevant.items():
        judged = {str(q): {str(p): grade_of(p) for p in papers} for q, papers in of_task.items()}
        measured = pytrec_eval.RelevanceEvaluator(judged, {"map", "ndcg_cut.10", "recip_rank"}).evaluate(run)
        for metric in ("map", "ndcg_cut_10", "recip_rank"):
            found[task, metric] = 100 * np.mean([measured.get(q, {}).get(metric, 0.0) for q in judged])
        for k in (20, 50, 100):
            shares = []
            for query, papers in judged.items():
                first = sorted(run.get(query, {}), key=lambda p: -run[query][p])[:k]
                shares.append(len(set(first) & papers.keys()) / min(k, len(papers)))
            found[task, f"recall_cap_{k}"] = 100 * np.mean(shares)
    return found


def drawn(papers=300, queries=12, seed=1):
    random = np.random.default_rng(seed)
    ids = random.permutation(10 * papers)[:papers].tolist()
    asking = ids[:queries]
    relevant = {
        task: {q: {int(p) for p in random.choice(ids, random.integers(1, 60)) if p != q} or {ids[-1]} for q in asking}
        for task in SEARCHES
    }
    return ids, relevant, random


def test_vectors_are_scored_as_trec_eval_scores_them_whatever_the_blocks(tmp_path, monkeypatch):
    ids, relevant, random = drawn()
    vectors = {each: random.standard_normal(8) for each in ids}
    write_benchmark(tmp_path, relevant, {each: int(random.integers(0, 20)) for each in ids})
    write_paper_vectors(tmp_path / "vectors", vectors)
    queries = relevant[SEARCHES[0]]
    exact = {each: np.asarray(vector, np.float32).astype(float) for each, vector in vectors.items()}
    similarity = {q: {p: -np.linalg.norm(exact[q] - exact[p]) for p in ids} for q in queries}
    found = search(tmp_path, vectors=tmp_path / "vectors")
    assert values(found) == pytest.approx(expected_values(similarity, relevant), abs=1e-9)
    monkeypatch.setattr(searching, "PAPERS_AT_ONCE", 7)
    monkeypatch.setattr(corpus_scoring, "DEPTH", 100)
    small = values(search(tmp_path, vectors=tmp_path / "vectors"))
    assert small | {(task, "map"): values(found)[task, "map"] for task in SEARCHES} == values(found)


@pytest.mark.parametrize("method", ["lucene", "robertson", "atire"])
def test_words_are_scored_as_bm25s_ranks_them(tmp_path, method):
    ids, relevant, random = drawn(papers=80, queries=5)
    texts = {each: [" ".join(random.choice(WORDS, 5)), " ".join(random.choice(WORDS, 12))] for each in ids}
    write_benchmark(tmp_path, relevant, dict.fromkeys(ids, 0))
    for bucket in range(3):
        of_bucket = {each: text for each, text in texts.items() if each % 3 == bucket}
        write_table(tmp_path / f"papers/{bucket}.parquet", "papers", papers_table(of_bucket))
    words = [" ".join(texts[each]) for each in ids]
    tokens = bm25s.tokenize(words, stopwords="en", return_ids=False, show_progress=False)
    index = bm25s.BM25(k1=0.9, b=0.4, method=method, dtype="float64")
    index.index(tokens, show_progress=False)
    similarity = {}
    for query in relevant[SEARCHES[0]]:
        scores = index.get_scores(tokens[ids.index(query)])
        similarity[query] = {p: s for p, s in zip(ids, scores.tolist(), strict=True) if s > 0}
    formula = f'{{"k1": 0.9, "b": 0.4, "method": "{method}"}}'
    found = values(search(tmp_path, papers=tmp_path / "papers", words=formula))
    assert found == pytest.approx(expected_values(similarity, relevant), abs=0.2)  # equal scores are cut at random


def test_citations_alone_rank_the_most_cited_papers_first(tmp_path):
    citations = {paper: paper for paper in range(1, 201)}
    relevant = {"cite_search": {200: {199, 1}, 5: {200, 199, 198}}, "cocite_search": {5: {1}}}
    write_benchmark(tmp_path, relevant, citations)
    found = search(tmp_path)
    assert values(found)["cite_search", "recall_cap_20"] == (50 + 100) / 2
    assert values(found)["cocite_search", "recall_cap_20"] == 0
    top = {row["task"]: row for row in found["by_citations"] if row["citations"] == "top 1%"}
    assert top["cite_search"]["share"] == 100 * (1 + 2) / 40  # the two most cited papers; one of them asks itself
    assert top["cite_search"]["recall"] == 100


def test_recall_is_divided_by_how_often_the_relevant_papers_are_cited(tmp_path):
    citations = {1: 0, 2: 0, 3: 2, 4: 7, 5: 30, 6: 1}
    relevant = {task: {1: {2, 3, 4, 5}} for task in SEARCHES}
    write_benchmark(tmp_path, relevant, citations)
    write_paper_vectors(tmp_path / "vectors", {paper: [float(paper)] for paper in citations if paper != 4})
    found = search(tmp_path, missing=0.5, vectors=tmp_path / "vectors")
    of_class = {row["citations"]: row for row in found["by_citations"] if row["task"] == SEARCHES[0]}
    recalls_and_shares = {name: (row["recall"], row["share"]) for name, row in of_class.items()}
    expected = {"0": (100, 25), "1-3": (100, 50), "4-10": (0, 0), "over 10": (100, 25), "top 1%": (100, 25)}
    assert recalls_and_shares == expected
    assert [row["missing"] for row in found["scores"]] == [1] * len(found["scores"])
    assert {row["evaluation_seed"] for row in found["scores"]} == {5}  # that of the benchmark's other rankings


def test_equal_vectors_are_ordered_the_same_way_whatever_the_buckets(tmp_path):
    ids, relevant, _ = drawn()
    write_benchmark(tmp_path, relevant, dict.fromkeys(ids, 1))
    scores = []
    for buckets in (1, 3):
        folder = tmp_path / str(buckets)
        write_paper_vectors(folder / "vectors", {each: [0.5, 0.25] for each in ids}, buckets)
        scores.append(values(search(tmp_path, vectors=folder / "vectors")))
    assert scores[0] == scores[1]
    assert 0 < scores[0]["cite_search", "map"] < 30


def test_selection_queries_do_not_count(tmp_path):
    relevant = {task: {1: {3}, 2: {4}} for task in SEARCHES}
    write_benchmark(tmp_path, relevant, dict.fromkeys(range(1, 6), 1), selection=[2])
    write_paper_vectors(tmp_path / "vectors", {paper: [float(paper)] for paper in range(1, 6)})
    assert {row["item"] for row in search(tmp_path, vectors=tmp_path / "vectors")["outcomes"]} == {"1"}


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda vectors: vectors.pop(4), "1 of 5 papers have no vector of m; embed the corpus again"),
        (lambda vectors: vectors.update({4: [float("nan")]}), "a vector is not finite"),
    ],
)
def test_what_cannot_be_scored_is_a_failure_that_says_why(tmp_path, spoil, says):
    vectors = {paper: [float(paper)] for paper in range(1, 6)}
    spoil(vectors)
    write_benchmark(tmp_path, {task: {1: {3}} for task in SEARCHES}, dict.fromkeys(range(1, 6), 1))
    write_paper_vectors(tmp_path / "vectors", vectors)
    found = search(tmp_path, vectors=tmp_path / "vectors")
    assert [row["task"] for row in found["failures"]] == list(SEARCHES)
    assert says in found["failures"][0]["reason"]
    assert not found["scores"]


def test_citations_alone_cannot_rank_if_no_paper_is_cited(tmp_path):
    write_benchmark(tmp_path, {task: {1: {3}} for task in SEARCHES}, dict.fromkeys(range(1, 6), 0))
    assert "No paper is cited in training" in search(tmp_path)["failures"][0]["reason"]
    [failure] = rank_by_citations(tmp_path, Benchmark(judgements={"cite": {"1": {"2": 1, "3": 0}}}))["failures"]
    assert "No paper is cited in training" in failure["reason"]


def test_citations_alone_rank_given_candidates_and_the_abstracts_of_papers(tmp_path):
    write_benchmark(tmp_path, {"cite_search": {1: {2}}}, {paper: paper for paper in range(1, 9)})
    judgements = {"cite": {"1": {"7": 1, "2": 0, "8": 1, "3": 0}}, "title_search": {"title:3": {"abstract:3": 1}}}
    collections = {"title_search": {f"abstract:{paper}" for paper in range(1, 9)}}
    found = values(rank_by_citations(tmp_path, Benchmark(judgements=judgements, collections=collections)))
    assert found["cite", "map"] == 100
    assert found["title_search", "recip_rank_10"] == pytest.approx(100 / 6)  # five papers are cited more often than 3
