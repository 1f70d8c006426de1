"""The search made of held-out papers: titles as queries for abstracts."""

import pyarrow as pa
import pytest
from tests.evaluation.folders import scores_of
from tests.evaluation.test_holdout import STAR, prepare, write_citations
from tests.papers import papers_table

from cocite.config.benchmark import HoldoutSettings, MadeOfHeldOut, TitleSearch
from cocite.config.benchmarks import TASKS, suites_of, tasks_of
from cocite.config.settings import settings_of
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, write_table
from cocite.evaluation.benchmark import read_task
from cocite.evaluation.metrics import measure_rankings
from cocite.evaluation.preparation.holdout import prepare_holdout
from cocite.evaluation.scored import Run
from cocite.evaluation.scoring import by_words

TASK = TASKS["title_search"]
SETTINGS = HoldoutSettings(positives=2, negatives=3, search=TitleSearch())
TEXTS = {
    1: ("Graph kernels", "We compare methods."),
    2: ("Deep nets", "Deep-nets, again: they learn."),
    3: ("Editorial", "This issue holds five papers."),
    4: ("Editorial.", "That issue holds six."),
    5: ("Trees of life", "Ancestry is inferred."),
    6: ("Trees of death", "ANCESTRY is inferred"),
    7: ("Net", "Nets catch fish."),
    8: ("…", "A title without a word."),
    14: ("Alone", None),
}
HELD_OUT = {*range(1, 9), 14}
CITED = {(paper, other) for paper in (1, 2) for other in range(9, 14)}


def prepare_search(folder, texts=TEXTS, held_out=HELD_OUT, seed=1, **search):
    known = {paper: [f"title {paper}", f"abstract {paper}"] for paper in range(20)}
    known |= {paper: list(text) for paper, text in texts.items()}
    papers = papers_table(known, has_text=[True] * len(known))  # as with corpus.titles_alone
    write_table(folder / "papers/0.parquet", "papers", papers)
    write_citations(folder / "citations/0.parquet", CITED)
    ids = sorted({*held_out, 0})
    split = ["holdout" if paper in held_out else "train" for paper in ids]
    write_table(folder / "queries.parquet", "queries", pa.table({"corpusid": ids, "split": split}))
    prepare_holdout(
        papers=folder / "papers",
        citations=folder / "citations",
        queries=folder / "queries.parquet",
        settings=SETTINGS.model_copy(update={"search": TitleSearch(**search)}),
        seed=seed,
        memory_mb=400,
        threads=1,
        tables=folder,
        omissions=folder / "omissions.parquet",
    )
    return read_task(TASK, folder)


def omitted(folder):
    rows = read_table(folder / "omissions.parquet", "omissions").to_pylist()
    return {row["reason"]: row["count"] for row in rows if row["reason"].startswith("task title_search")}


def test_each_title_has_to_find_its_own_abstract_among_those_of_held_out_papers(tmp_path):
    benchmark = prepare_search(tmp_path)
    assert benchmark.judgements["title_search"] == {
        "title:1": {"abstract:1": 1},
        "title:7": {"abstract:7": 1},
    }
    assert benchmark.collections["title_search"] == {"abstract:1", "abstract:7"}


def test_titles_that_are_given_away_or_have_several_answers_are_counted(tmp_path):
    prepare_search(tmp_path)
    assert omitted(tmp_path) == {
        "task title_search: title that its abstract repeats": 1,  # 2: hyphen and comma are no letters
        "task title_search: title or abstract of several held-out papers": 4,  # 3 and 4, 5 and 6
        "task title_search: title or abstract without a word": 2,
        "task title_search: held-out paper beyond those asked for": 0,
    }


def test_a_query_is_a_title_alone_and_a_document_an_abstract_alone(tmp_path):
    prepare_search(tmp_path)
    rows = {row["document"]: row for row in read_table(tmp_path / "documents.parquet", "documents").to_pylist()}
    query, document = rows["title:1"], rows["abstract:1"]
    assert (query["title"], query["abstract"], query["is_query"]) == ("Graph kernels", None, True)
    assert (document["title"], document["abstract"], document["is_query"]) == (None, "We compare methods.", False)
    assert {name for name, row in rows.items() if row["is_query"]} == {"title:1", "title:7"}


def test_so_many_papers_are_drawn_by_the_seed_and_the_others_counted(tmp_path):
    texts = {paper: (f"the {paper}th", f"number{paper}") for paper in range(1, 9)}
    found = [
        set(prepare_search(tmp_path / str(seed), texts, seed=seed, documents=3).collections["title_search"])
        for seed in range(4)
    ]
    assert [len(drawn) for drawn in found] == [3] * 4
    assert len(set(map(frozenset, found))) > 1
    assert omitted(tmp_path / "0")["task title_search: held-out paper beyond those asked for"] == 6


def test_no_paper_that_is_not_held_out_is_searched(tmp_path):
    texts = {paper: (f"the {paper}th", f"number{paper}") for paper in range(20)}
    found = prepare_search(tmp_path, texts, held_out={1, 2, 5, 6}).collections["title_search"]
    assert found == {f"abstract:{paper}" for paper in (1, 2, 5, 6)}


def test_without_a_title_to_search_for_it_says_so(tmp_path):
    texts = {paper: ("Editorial", f"number{paper}") for paper in HELD_OUT}
    with pytest.raises(InputError, match="None of the 9 held-out papers with a text has a title of its own"):
        prepare_search(tmp_path, texts)


def test_other_tasks_of_the_benchmark_do_not_depend_on_it(tmp_path):
    alone = prepare(tmp_path / "a", STAR, {1, 2})
    with_search = prepare(tmp_path / "b", STAR, {1, 2}, search=TitleSearch())
    assert with_search.judgements.pop("title_search").keys() == {"title:1", "title:2"}
    assert with_search.judgements == alone.judgements
    assert "is_query" not in read_table(tmp_path / "a/documents.parquet", "documents").column_names


def test_it_is_a_task_only_where_it_is_asked_for():
    entry = {"kind": "holdout", "positives": 5, "negatives": 25, "min_cocitations": 2}
    assert [task.name for task in tasks_of(entry)] == ["cite", "cocite"]
    assert settings_of(entry, MadeOfHeldOut) == entry
    asked = {**entry, "search": {"documents": 10}}
    assert [task.name for task in tasks_of(asked)] == ["cite", "cocite", "title_search"]
    assert list(suites_of(asked)) == ["small"]


def test_words_find_the_abstract_that_has_them(tmp_path):
    texts = {paper: (f"topic{paper} and more", f"It is about topic{paper}.") for paper in range(1, 9)}
    prepare_search(tmp_path, texts)
    run = Run(model="bm25", training_seed=0, benchmark="b", modes=["correct"], evaluation_seeds=[1])
    scored = by_words(tmp_path / "documents.parquet", {}, run)(TASK, read_task(TASK, tmp_path))
    assert scores_of(scored) == {
        "ndcg_cut_10": pytest.approx(100),
        "recip_rank_10": pytest.approx(100),
        "recall_100": pytest.approx(100),
    }


@pytest.mark.parametrize(("place", "expected"), [(1, 100), (2, 50), (10, 10), (11, 0), (40, 0)])
def test_the_reciprocal_rank_counts_among_the_first_ten(place, expected):
    ranked = {"q": {f"d{number}": -float(number) for number in range(1, 41)}}
    found = measure_rankings({"q": {f"d{place}": 1, "d41": 1}}, ranked, ["recip_rank_10"])
    assert found["recip_rank_10"]["q"] == pytest.approx(expected)
