"""The baselines: random vectors, and BM25 over the words of the texts."""

import pytest

from cocite.config.benchmarks import TASKS
from cocite.evaluation.benchmark import Benchmark, write_documents
from cocite.evaluation.bm25 import Words, read_document_texts, score_words
from cocite.evaluation.scored import Run
from cocite.evaluation.scoring import baseline
from cocite.evaluation.vectors import random_vectors
from cocite.ground.errors import InputError

RUN = Run(model="bm25", training_seed=0, benchmark="b", modes=["compat"], evaluation_seeds=[5, 6])


def test_random_vectors_depend_on_the_seed_alone(tmp_path):
    path = tmp_path / "documents.parquet"
    write_documents(tmp_path, dict.fromkeys("cab", ("t", None, (), None)))
    first, again, other = (random_vectors(path, seed).matrix for seed in (1, 1, 2))
    assert first.shape == (3, 64)
    assert (first == again).all()
    assert not (first == other).any()


def test_bm25_finds_the_document_that_shares_rare_words():
    texts = {"q": "axolotl regeneration study"}
    texts |= {f"d{number}": f"a study of common things number {number}" for number in range(20)}
    texts |= {"same": "regeneration in the axolotl", "stop": "the of and in", "empty": ""}
    words = Words(texts)
    values = dict(zip(texts, words.to_some("q", list(texts)), strict=True))
    assert min(values["same"], values["q"]) > max(value for name, value in values.items() if name.startswith("d"))
    assert values["d1"] > 0
    assert values["stop"] == values["empty"] == 0
    assert words.to_some("empty", ["same", "q"]).tolist() == [0, 0]
    assert words.to_some("stop", ["same", "q"]).tolist() == [0, 0]


def test_bm25_of_some_documents_is_that_of_all():
    texts = {f"d{n}": " ".join(f"word{n * k % 17}" for k in range(1, 9)) for n in range(40)} | {"empty": ""}
    words = Words(texts)
    for query in texts:
        everything = words.to_all(query)
        for some in (list(texts), ["d7", "d3", "empty"]):
            assert words.to_some(query, some) == pytest.approx(everything[words.rows_of(some)], rel=1e-6)


def test_bm25_of_documents_without_words_is_zero():
    words = Words({"q": "", "a": "the"})
    assert words.to_some("q", ["a", "q"]).tolist() == [0, 0]
    assert words.to_all("q").tolist() == [0, 0]


def test_bm25_reads_the_words_of_the_documents_of_a_ranking(tmp_path):
    benchmark = Benchmark(
        judgements={"search": {"q": {"a": 0, "b": 1}}, "paper_reviewer_matching_hard": {"q": {"r": 0, "s": 1}}},
        labels={("fos", "train"): {"a": ["x"]}},
        reviewers={"r": {"a"}, "s": {"a", "b"}},
    )
    words = {"q": "rare birds", "a": "common fish", "b": "birds which are rare", "other": "birds"}
    path = tmp_path / "documents.parquet"
    write_documents(tmp_path, {name: (title, None, (), None) for name, title in words.items()})
    ranked = [TASKS["search"], TASKS["paper_reviewer_matching_hard"]]
    texts = {task.name: read_document_texts(path, benchmark.documents_of(task)) for task in ranked}
    assert [sorted(of_task) for of_task in texts.values()] == [["a", "b", "q"], ["a", "b", "q"]]
    scored = [score_words(task, benchmark, texts[task.name], RUN) for task in ranked]
    values = {metric: value for of in scored for (*_, metric, _, _, _, value, _, _, _, _) in of.scores}
    assert values == {"ndcg": pytest.approx(100), "P_5": pytest.approx(20), "P_10": pytest.approx(10)}


def test_a_model_without_embeddings_must_be_a_baseline(tmp_path):
    with pytest.raises(InputError, match="A model without embeddings: 'chess' is not known; known are bm25, random"):
        baseline(tmp_path, 1, Run(**(vars(RUN) | {"model": "chess"})))
