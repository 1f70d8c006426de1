"""BM25 over the words of the texts, and what says that a run is scored by them."""

import math

import pytest
from tests.evaluation.folders import RUN, scores_of

from cocite.cli import app
from cocite.config.benchmarks import TASKS
from cocite.core.errors import InputError
from cocite.evaluation.benchmark import Benchmark, write_documents
from cocite.evaluation.bm25 import Formula, Words, read_document_texts, score_words


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
        everything = words.to_all(texts[query])
        for some in (list(texts), ["d7", "d3", "empty"]):
            expected = everything[[words.rows[name] for name in some]]
            assert words.to_some(query, some) == pytest.approx(expected, rel=1e-6)


def test_bm25_of_documents_without_words_is_zero_and_a_collection_is_searched_by_words():
    words = Words({"q": "", "a": "the"})
    assert words.to_some("q", ["a", "q"]).tolist() == [0, 0]
    assert words.to_all("the").tolist() == [0, 0]
    task = TASKS["beir_scifact"]
    asked = Benchmark(judgements={task.name: {"q": {"d5": 1}}}, collections={task.name: {f"d{n}" for n in range(30)}})
    texts = {f"d{n}": f"common words number{n}" for n in range(30)} | {"q": "about number5"}
    assert scores_of(score_words(task, asked, texts, RUN))["ndcg_cut_10"] == pytest.approx(100)


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
    values = {metric: value for of in scored for metric, value in scores_of(of).items()}
    assert values == {"ndcg": pytest.approx(100), "P_5": pytest.approx(20), "P_10": pytest.approx(10)}


@pytest.mark.parametrize("method", ["lucene", "robertson", "atire"])
def test_bm25_counts_words_by_the_formula_that_is_asked_for(method):
    texts = {"q": "rare bird", "a": "rare rare fish", "b": "bird of a feather in a long text about fish", "c": "fish"}
    words = {name: [word for word in text.split() if word not in ("of", "a", "in")] for name, text in texts.items()}
    k1, b, mean = 0.9, 0.4, sum(map(len, words.values())) / 4

    def worth(word: str, name: str) -> float:
        having = sum(word in of for of in words.values())
        idf = {
            "lucene": math.log(1 + (4 - having + 0.5) / (having + 0.5)),
            "robertson": max(math.log((4 - having + 0.5) / (having + 0.5)), 0.0) or math.log(1e-9 + 1),
            "atire": math.log(4 / having),
        }[method]
        often = words[name].count(word)
        pushed = often / (often + k1 * (1 - b + b * len(words[name]) / mean))
        return idf * pushed * (1 if method == "lucene" else k1 + 1)

    found = Words(texts, Formula(k1=k1, b=b, method=method)).to_some("q", list("abc"))
    expected = [sum(worth(word, name) for word in words["q"]) for name in "abc"]
    assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ([], "Exactly one of --embeddings, --words, --by-citations and --answers must be given"),
        (
            ["--embeddings=vectors.parquet", '--words={"k1": 1.5}'],
            "Exactly one of --embeddings, --words, --by-citations and --answers must be given",
        ),
        (["--words={k1: 1.5}"], "--words: not JSON"),
        (['--words={"k2": 1.5}'], "--words: key k2"),
    ],
)
def test_a_run_is_scored_by_its_vectors_or_by_words(tmp_path, named, message):
    asked = ["--tables", str(tmp_path), "--tasks", "fos", "--model", "m", "--training-seed", "0", "--mode", "compat"]
    asked += ["--largest-missing", "0", "--threads", "1", *named]
    files = [f"--{table}={tmp_path / table}" for table in ("scores", "outcomes", "failures")]
    with pytest.raises(InputError, match=message):
        app(["evaluation", "score", "1", *asked, *files], standalone_mode=False)
