"""LitSearch: broad and specific questions as tasks, a corpus that is searched, and what is wrong with its files."""

import numpy as np
import pytest
from tests.evaluation.folders import BenchmarkFolder, scored_by, scores_of

from cocite.config.benchmarks.beir import LitSearch

BROAD, SPECIFIC = 0, 1
QUERIES, CORPUS = "query/full-00000-of-00001.parquet", "corpus_clean/full-{:05}-of-00002.parquet"


def question(specificity, *papers, text="where is it"):
    return {"query_set": "inline_acl", "query": text, "specificity": specificity, "corpusids": list(papers)}


def paper(number):
    return {"corpusid": number, "title": f"t{number}", "abstract": f"x{number}", "full_paper": "A long text."}


def fill(folder, papers, *questions):
    """The files as they are released: the questions in one, the corpus in several."""
    folder.write_parquet(QUERIES, *questions)
    for shard in (0, 1):
        folder.write_parquet(CORPUS.format(shard), *(paper(number) for number in papers if number % 2 == shard))


@pytest.fixture
def litsearch(tmp_path):
    folder = BenchmarkFolder(tmp_path, "litsearch")
    fill(folder, range(10, 16), question(SPECIFIC, 11), question(BROAD, 12, 15), question(SPECIFIC, 13, text="which"))
    return folder


def test_broad_and_specific_questions_are_two_tasks_over_one_corpus(litsearch):
    benchmark = litsearch.prepare()
    assert benchmark.judgements == {
        "litsearch_specific": {"query-0": {"11": 1}, "query-2": {"13": 1}},
        "litsearch_broad": {"query-1": {"12": 1, "15": 1}},
    }
    everything = {str(number) for number in range(10, 16)}
    assert benchmark.collections == {"litsearch_specific": everything, "litsearch_broad": everything}
    asked = {"query-0": ("where is it", None), "query-1": ("where is it", None), "query-2": ("which", None)}
    assert litsearch.documents() == asked | {name: (f"t{name}", f"x{name}") for name in everything}
    assert litsearch.omitted() == {}


def test_one_task_can_be_asked_for_and_full_texts_are_not_read(litsearch):
    litsearch.write_text("corpus_s2orc/full-00000-of-00001.parquet", "broken")
    assert litsearch.prepare("litsearch_broad").judgements.keys() == {"litsearch_broad"}
    assert "query-0" not in litsearch.documents()


def test_recall_is_measured_at_the_depths_that_are_published(tmp_path):
    """Papers lie on a half circle, so that the cosine ranks them for a question at 0 by their number."""
    folder = BenchmarkFolder(tmp_path, "litsearch")
    fill(folder, range(30), question(SPECIFIC, 0, 4, 7, 29), question(BROAD, 4, 19, 20), question(SPECIFIC, 5))
    benchmark = folder.prepare()
    angles = {str(number): np.pi * (number + 1) / 31 for number in range(30)} | {f"query-{n}": 0.0 for n in range(3)}
    # Lengths differ, and make no difference.
    vectors = {name: [(1 + at) * np.cos(at), (1 + at) * np.sin(at)] for name, at in angles.items()}
    specific, broad = (
        scores_of(scored_by(tmp_path, vectors, f"litsearch_{name}", benchmark)) for name in ("specific", "broad")
    )
    assert specific["recall_5"] == pytest.approx(100 * (2 / 4 + 0) / 2)  # 0 and 4 are among the first five, 5 is not
    assert specific["recall_20"] == pytest.approx(100 * (3 / 4 + 1) / 2)
    assert broad["recall_20"] == pytest.approx(100 * 2 / 3)  # 20 stands at rank 21
    gained, ideal = 1 / np.log2(4 + 2), 1 / np.log2(2) + 1 / np.log2(3) + 1 / np.log2(4)
    assert broad["ndcg_cut_10"] == pytest.approx(100 * gained / ideal)


def test_answers_that_are_not_in_the_corpus_are_counted(litsearch):
    fill(litsearch, range(200), *(question(SPECIFIC, number) for number in range(199)), question(SPECIFIC, 900))
    benchmark = litsearch.prepare("litsearch_specific")
    assert benchmark.judgements["litsearch_specific"]["query-199"] == {"not in litsearch: 900": 1}
    assert litsearch.omitted() == {
        "task litsearch_specific: document without text": 1,
        "task litsearch_specific: question without an answer in the corpus": 1,
    }


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"specificity": 2}, "row 1: specificity must be 0 (broad) or 1 (specific), not 2"),
        ({"specificity": None}, "row 1: the key 'specificity' is missing or null"),
        ({"corpusids": "11"}, "row 1: corpusids must be a list of ids, not '11'"),
        ({"corpusids": [1.5]}, "row 1: corpusids must be a list of ids, not [1.5]"),
        ({"query": 3}, "row 1: query must be a text, not 3"),
        ({"query": None}, "row 1: the key 'query' is missing or null"),
        ({"specificity": BROAD}, "query: has no question for the task litsearch_specific"),
    ],
)
def test_what_is_wrong_with_a_question_is_reported_with_its_place(litsearch, wrong, message):
    litsearch.write_parquet(QUERIES, question(SPECIFIC, 11) | wrong)
    litsearch.refuses(message, "litsearch_specific")


def test_what_is_wrong_with_the_corpus_is_reported(litsearch):
    empty = [paper(number) | {"title": "", "abstract": None} for number in range(10, 16)]
    for shard in (0, 1):
        litsearch.write_parquet(CORPUS.format(shard), *empty[shard::2])
    litsearch.refuses("none of the 6 documents of the task litsearch_broad has a title or an abstract")
    fill(litsearch, range(10, 16), question(SPECIFIC, 900))
    litsearch.refuses("row 1: no text for the document '900'; 1 of 2 mentions", "litsearch_specific")
    litsearch.write_text(QUERIES, "no table")
    litsearch.refuses("full-00000-of-00001.parquet: not a readable Parquet file")


def test_the_hub_gives_the_questions_and_the_corpus_of_one_commit():
    entry = LitSearch.model_validate({"kind": "litsearch", "hub": {"revision": "1" * 40}})
    fetched = {folder: tuple(each) for folder, each in entry.from_hub.items()}
    whole = ("princeton-nlp/LitSearch", "1" * 40, ["full"])
    assert fetched == {"data/corpus_clean": whole, "data/query": whole}
