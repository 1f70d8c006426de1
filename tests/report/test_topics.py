"""Topics of all papers: clusters of their vectors with names, compared with fields, and shown by a search."""

import numpy as np
import pytest
from tests.papers import papers_table
from tests.tools.builders import invoke, write_model, write_vectors

from cocite.core.tables.files import read_table, write_table
from cocite.report.topics import named_by_words, write_topics

PAPERS = 100
SUBJECTS = (("Glaciers melting", "Geology"), ("Compilers allocating", "Computer Science"))


@pytest.fixture
def results(tmp_path):
    """Papers on two subjects, whose vectors lie apart, in two buckets; the first has none that is finite."""
    for bucket in range(2):
        ids = range(bucket, PAPERS, 2)
        texts = {paper: (f"{SUBJECTS[paper < 40][0]} in case {paper}", "A text.") for paper in ids}
        table = papers_table(texts, fields=[[SUBJECTS[paper < 40][1], "Other"] for paper in ids])
        write_table(tmp_path / f"corpus/papers/{bucket}.parquet", "papers", table)
    write_model(tmp_path)
    noise = np.random.default_rng(1).normal(size=(PAPERS, 4)).astype(np.float32)
    vectors = {paper: noise[paper] + [40 * (paper < 40), 0, 0, 0] for paper in range(PAPERS)}
    vectors[0] = np.full(4, np.nan)
    for bucket in range(2):
        path = tmp_path / f"encoder/model/seed-1/papers/{bucket}.parquet"
        write_vectors(path, {paper: vectors[paper] for paper in range(bucket, PAPERS, 2)})
    return tmp_path


def find_topics(results):
    folder = results / "report/topics/model/seed-1"
    write_topics(
        sorted((results / "encoder/model/seed-1/papers").glob("*.parquet")),
        papers=results / "corpus/papers",
        seed=1,
        threads=1,
        topics=folder / "topics.parquet",
        scores=folder / "scores.parquet",
        output=folder / "papers",
    )
    return folder


def test_topics_are_the_subjects_with_their_words_and_fields(results):
    folder = find_topics(results)
    topics = {row["field"]: row for row in read_table(folder / "topics.parquet", "topics").to_pylist()}
    for (words, field), papers in zip(SUBJECTS, (60, 39), strict=True):
        assert topics[field]["papers"] == topics[field]["in_field"] == papers
        assert set(topics[field]["words"][:2]) == {*words.lower().split()}
    of_papers = read_table(folder / "papers", "paper_topics").to_pylist()
    numbers = {field: topics[field]["topic"] for _, field in SUBJECTS}
    expected = {paper: numbers[SUBJECTS[paper < 40][1]] for paper in range(1, PAPERS)}
    assert {row["corpusid"]: row["topic"] for row in of_papers} == expected
    [scores] = read_table(folder / "scores.parquet", "topic_scores").to_pylist()
    assert scores | {"papers": 99, "classes": 2, "topics": 2, "v_measure": pytest.approx(1)} == scores


def test_a_word_of_all_topics_names_none():
    counts = np.array([[9, 0, 10], [0, 9, 10], [1, 1, 10]])
    assert named_by_words(counts, ["ice", "loop", "case"]) == [["ice"], ["loop"], ["ice", "loop"]]


def test_a_search_shows_the_topic_of_each_paper(results):
    find_topics(results)
    said = invoke("search", "50", "--model", "model", "--results", results, "--limit", "3", "--format", "csv").stdout
    assert said.splitlines()[0] == "rank,distance,corpusid,year,topic,title"
    assert all("glaciers" in line and "melting" in line for line in said.splitlines()[1:])
