"""The search made of held-out papers: titles as queries for abstracts."""

import pytest
from tests.evaluation.test_holdout import STAR, counts_in, prepare, prepare_folder, write_citations
from tests.papers import papers_table

from cocite.config.benchmark import HoldoutSettings, MadeOfHeldOut, TitleSearch
from cocite.config.benchmarks import TASKS
from cocite.config.benchmarks.holdout import Holdout
from cocite.config.settings import settings_of
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, write_table

TASK = TASKS["title_search"]
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
    papers = papers_table(known, has_text=[True] * len(known))  # as with corpus.allow_missing_abstract
    write_table(folder / "papers/0.parquet", "papers", papers)
    write_citations(folder / "citations/0.parquet", CITED)
    settings = HoldoutSettings(positives=2, negatives=3, title_search=TitleSearch(**search))
    return prepare_folder(folder, held_out, settings, seed=seed)


def omitted(folder):
    return {reason: count for reason, count in counts_in(folder).items() if reason.startswith("task title_search")}


def test_each_title_has_to_find_its_own_abstract_unless_it_is_given_away_or_has_several_answers(tmp_path):
    benchmark = prepare_search(tmp_path)
    assert benchmark.judgements["title_search"] == {"title:1": {"abstract:1": 1}, "title:7": {"abstract:7": 1}}
    assert benchmark.collections["title_search"] == {"abstract:1", "abstract:7"}
    rows = {row["document"]: row for row in read_table(tmp_path / "documents.parquet", "documents").to_pylist()}
    query, document = rows["title:1"], rows["abstract:1"]
    assert (query["title"], query["abstract"]) == ("Graph kernels", None)
    assert (document["title"], document["abstract"]) == (None, "We compare methods.")
    assert {name for name, row in rows.items() if row["is_query"]} == {"title:1", "title:7"}
    assert omitted(tmp_path) == {
        "task title_search: title that its abstract repeats": 1,  # 2: hyphen and comma are no letters
        "task title_search: title or abstract of several held-out papers": 4,  # 3 and 4, 5 and 6
        "task title_search: title or abstract without a word": 2,
        "task title_search: held-out paper beyond those asked for": 0,
    }


def test_so_many_papers_are_drawn_by_the_seed_and_the_others_counted(tmp_path):
    texts = {paper: (f"the {paper}th", f"number{paper}") for paper in range(1, 9)}
    drawn = (prepare_search(tmp_path / str(seed), texts, seed=seed, documents=3) for seed in range(4))
    found = [frozenset(benchmark.collections["title_search"]) for benchmark in drawn]
    assert [len(papers) for papers in found] == [3] * 4
    assert len(set(found)) > 1
    assert omitted(tmp_path / "0")["task title_search: held-out paper beyond those asked for"] == 6


def test_held_out_papers_alone_are_searched_and_one_must_have_a_title_of_its_own(tmp_path):
    texts = {paper: (f"the {paper}th", f"number{paper}") for paper in range(20)}
    found = prepare_search(tmp_path, texts, held_out={1, 2, 5, 6}).collections["title_search"]
    assert found == {f"abstract:{paper}" for paper in (1, 2, 5, 6)}
    texts = {paper: ("Editorial", f"number{paper}") for paper in HELD_OUT}
    with pytest.raises(InputError, match="None of the 9 held-out papers with a text has a unique title"):
        prepare_search(tmp_path, texts)


def test_other_tasks_of_the_benchmark_do_not_depend_on_it(tmp_path):
    alone = prepare(tmp_path / "a", STAR, {1, 2})
    with_search = prepare(tmp_path / "b", STAR, {1, 2}, title_search=TitleSearch())
    assert with_search.judgements.pop("title_search").keys() == {"title:1", "title:2"}
    assert with_search.judgements == alone.judgements
    assert "is_query" not in read_table(tmp_path / "a/documents.parquet", "documents").column_names


def test_it_is_a_task_only_where_it_is_asked_for():
    entry = Holdout(kind="holdout")
    always = ["cite", "cocite", "cite_matched", "cocite_matched"]
    assert [task.name for task in entry.scored_tasks] == always
    used = {"kind": "holdout", "positives": 5, "negatives": 25, "min_cocitations": 2}
    assert settings_of(entry, MadeOfHeldOut) == used | {"search": False, "by_time": False}
    asked = Holdout(kind="holdout", title_search={"documents": 10})
    assert [task.name for task in asked.scored_tasks] == [*always, "title_search"]
    assert list(asked.suites) == ["small"]
    searching = Holdout(kind="holdout", search=True)
    assert [task.name for task in searching.suites["search"]] == ["cite_search", "cocite_search"]
