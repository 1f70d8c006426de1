"""Screening of reviews: labels as people write them, and simulations whose outcome is known."""

import gzip
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from tests.configurations import plan_of
from tests.evaluation import folders
from tests.evaluation.test_holdout import write_citations
from tests.papers import papers_table

from cocite.config.benchmarks import declared
from cocite.config.benchmarks.screening import ScreeningSettings
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, write_table
from cocite.evaluation import screening
from cocite.evaluation.benchmark import Benchmark
from cocite.evaluation.preparation.screening import prepare_screening
from cocite.evaluation.scored import Scored, Vectors
from cocite.evaluation.screening import C, Review, _fit, _similar, score_screening

PAPERS, INCLUDED = 200, 10
SIZES = pytest.mark.parametrize("largest", [0, PAPERS], ids=["without products of all pairs", "with them"])
COLUMNS = {"paper": "id", "included": "label"}


def reviews_of(count):
    """Reviews of 200 papers each, of which the first ten are included."""
    return {f"r{r}": {str(1000 * r + p): int(p < INCLUDED) for p in range(PAPERS)} for r in range(count)}


def vectors_of(reviews, separation):
    """Random vectors of all papers, with those of included ones moved in one direction."""
    included = {paper: label for of in reviews.values() for paper, label in of.items()}
    matrix = np.random.default_rng(0).normal(size=(len(included), 16))
    matrix[:, 0] += separation * np.array(list(included.values()))
    return Vectors({paper: row for row, paper in enumerate(included)}, matrix.astype(np.float32))


def screen(task, reviews, vectors=(), starts=10, references=None, texts=None):
    """The mean of each metric, and the rows of outcomes."""
    run = replace(folders.RUN, evaluation_seeds=range(1, starts + 1))
    scored = Scored(run=run, task=declared(task), documents=0, missing=0)
    score_screening(scored, Benchmark(judgements={task: reviews}, references=references or {}), vectors, texts)
    means = {metric: np.mean([row[8] for row in scored.scores if row[4] == metric]) for metric in scored.task.metrics}
    return means, scored.outcomes


@SIZES
def test_included_papers_that_can_be_told_apart_are_found_at_once(largest, monkeypatch):
    monkeypatch.setattr(screening, "LARGEST_GRAM", largest)
    reviews = reviews_of(2)
    found, outcomes = screen("screening", reviews, [vectors_of(reviews, separation=20)])
    # Two papers are known, and the nine others come in the first batch of ten.
    assert found["recall_10%"] == 100
    assert found["wss_95"] >= 95 - 100 * 12 / PAPERS
    assert found["found_early"] >= 100 - 100 * 12 / PAPERS
    places = [row[10] for row in outcomes if row[4] == "found_early"]
    assert len(places) == 2 * 10
    assert all(len(of) == INCLUDED for of in places)


def test_random_vectors_find_as_many_as_are_screened():
    reviews = reviews_of(4)
    found, _ = screen("screening", reviews, [vectors_of(reviews, separation=0)], starts=20)
    # A tenth of the nine unknown papers, and the one that is known.
    assert found["recall_10%"] == pytest.approx(100 * (1 + 0.9) / INCLUDED, abs=6)
    assert found["found_early"] == pytest.approx(55, abs=5)
    assert abs(found["wss_95"]) < 10


def test_texts_find_what_their_words_tell_apart():
    reviews = reviews_of(1)
    texts = {paper: f"{'malaria vaccine' if label else 'traffic'} {paper}" for paper, label in reviews["r0"].items()}
    assert screen("screening", reviews, texts=texts)[0]["recall_10%"] == 100


@pytest.mark.parametrize("count", [2, 5], ids=["too few to learn weights", "weights of the others"])
def test_citations_find_included_papers_that_texts_do_not(count):
    reviews = reviews_of(count)
    included = [[paper for paper, label in of.items() if label] for of in reviews.values()]
    cited = {paper: [int(other) for other in of if other != paper] for of in included for paper in of}
    vectors = [vectors_of(reviews, separation=0)]
    with_citations = screen("screening_citations", reviews, vectors, references=cited)[0]
    assert with_citations["recall_10%"] > screen("screening", reviews, vectors)[0]["recall_10%"] + 40


def test_a_review_with_one_excluded_paper_teaches_the_others_nothing():
    """It is known from the start, so no pool has papers of both kinds."""
    reviews = reviews_of(4)
    reviews["r4"] = {str(9000 + paper): int(paper > 0) for paper in range(6)}
    _, outcomes = screen("screening_citations", reviews, [vectors_of(reviews, separation=1)], references={"1": [2]})
    assert len([row for row in outcomes if row[4] == "found_early"]) == 5 * 10


@SIZES
def test_vectors_and_words_have_equal_shares_in_the_products_of_papers(largest, monkeypatch):
    monkeypatch.setattr(screening, "LARGEST_GRAM", largest)
    random = np.random.default_rng(1)
    vectors, values = random.normal(size=(PAPERS, 16)), random.normal(size=(PAPERS, 3))
    words = np.maximum(random.normal(size=(PAPERS, 40)), 0)
    expected = ((vectors @ vectors.T + words @ words.T) / 2 + 1) @ values
    found = _similar([vectors, csr_array(words)], PAPERS)(values)
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()


def test_all_starts_are_fitted_as_scikit_learn_fits_each():
    random = np.random.default_rng(1)
    points, included = random.normal(size=(60, 5)) / 2, random.random((60, 1)) < 0.3
    gram = points @ points.T + 1
    seen = random.random((60, 3)) < 0.6
    review = Review(name="r", included=included, similar=lambda values: gram @ values)
    solution = outputs = np.zeros((60, 3))
    for _ in range(5):
        solution, outputs = _fit(review, seen, solution, outputs)
    with_one = np.hstack([points, np.ones((60, 1))])
    for column, of in enumerate(seen.T):
        model = LogisticRegression(C=C, class_weight="balanced", fit_intercept=False, tol=1e-8)
        expected = model.fit(with_one[of], included[of, 0]).decision_function(with_one)
        assert np.allclose(outputs[:, column], expected, atol=1e-2)


def prepare(folder, labels, **columns):
    """The tables of the reviews in a file or a pattern, among papers 1 to 9 with DOIs, of which 7 has no text."""
    texts = {paper: (f"title {paper}", None) if paper != 7 else (None, None) for paper in range(1, 10)}
    table = papers_table(texts, doi=[f"10.1000/P{paper}" for paper in range(1, 10)])
    write_table(folder / "papers/0.parquet", "papers", table)
    write_citations(folder / "citations/0.parquet", [(1, 2), (1, 77), (2, 2), (9, 1)])
    settings = ScreeningSettings(labels=str(folder / labels), columns=COLUMNS | columns)
    files = {name: folder / name for name in ("papers", "citations")} | {"tables": folder / "b"}
    files |= {"omissions": folder / "omissions.parquet"}
    prepare_screening(**files, settings=settings, memory_mb=500, threads=1)
    rows = read_table(folder / "b/judgements.parquet", "judgements").to_pylist()
    return {(row["query"], row["candidate"]): row["relevance"] for row in rows if row["task"] == "screening"}


def test_papers_are_known_by_corpus_ids_works_of_openalex_or_dois(tmp_path):
    lines = ["review\tid\tlabel", "a\t1\t1", "a\thttps://openalex.org/W2\ttrue", "a\thttps://doi.org/10.1000/p3\t0"]
    lines += ["a\t7\t0", "a\t55\t0", "a\t\t0", "b\t4\t1", "b\t5\t0"]
    (tmp_path / "labels.tsv").write_text("\n".join(lines) + "\n")
    found = prepare(tmp_path, "labels.tsv", review="review")
    # Review b has one included paper, which would be known from the start.
    assert found == {("a", "1"): 1, ("a", "2"): 1, ("a", "3"): 0}
    omitted = folders.omitted_in(tmp_path / "omissions.parquet")
    assert {reason.split(" ")[0]: count for reason, count in omitted.items()} == {"labelled": 2, "review": 1}
    cited = read_table(tmp_path / "b/reference_lists.parquet", "reference_lists").to_pylist()
    assert cited == [{"citing": 1, "cited": [2, 77]}]


def test_each_file_is_a_review_without_a_column_that_names_it(tmp_path):
    for name, rows in {"one": "1,1\n2,1\n3,0\n", "two": "4,yes\n5,yes\n6,no\n"}.items():
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress(f"id,label\n{rows}".encode()))
    assert {review for review, _ in prepare(tmp_path, "*.csv.gz")} == {"one", "two"}


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("1,maybe", "line 3: label must be 1 or 0, true or false, not 'maybe'"),
        ("smith2004,1", "line 3: id must be a corpus id or a DOI, not 'smith2004'"),
        ("2,0", "none of the 1 reviews has 2 included papers"),
    ],
)
def test_an_error_in_a_table_of_labels_is_named(tmp_path, row, fault):
    (tmp_path / "labels.csv").write_text(f"id,label\n3,1\n{row}\n")
    with pytest.raises(InputError, match=fault):
        prepare(tmp_path, "labels.csv")


def test_words_and_indexes_screen_and_what_only_ranks_does_not(tmp_path):
    (tmp_path / "labels.csv").touch()
    screening = {"kind": "screening", "labels": str(tmp_path / "labels.csv"), "columns": COLUMNS, "starts": 3}
    sections = {
        "encoders": {"static": {"kind": "static", "dimension": 8}},
        "baselines": {name: {"kind": name} for name in ("bm25", "popularity", "tfidf", "random")},
        "indexes": {"found": {"models": ["static"], "graph": "citation"}, "other": {"of": "found", "rank": "sum"}},
        "graphs": {"citation": {"signal": "citation"}},
        "benchmarks": {"reviews": screening, "holdout": {"kind": "holdout", "search": True}},
    }
    plan = plan_of(**sections, queries={"count": 5, "holdout": 5}, triplets={}, models={})
    of = {name: plan.evaluation.of_runs("scores", name) for name in ("reviews", "holdout")}
    screened = {path.rpartition("/")[2].rpartition("-")[0] for path in of["reviews"]}
    assert screened == {"untrained_static", "found", "tfidf", "random"}
    assert not any("tfidf" in path for path in of["holdout"])
    assert plan.config.benchmarks["reviews"].seeds == (1, 2, 3)
