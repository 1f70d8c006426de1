"""The hold-out benchmark against a brute-force computation on small random citation graphs."""

from collections import Counter
from contextlib import nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluation.folders import omitted_in, read_benchmark
from tests.papers import papers_table
from tests.rows import write_rows
from tests.spoiling import spoil_page

from cocite.config.benchmark import AspectSettings, HoldoutSettings, TitleSearch
from cocite.config.graphs import INTENTS, CitationMarks
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, write_table
from cocite.evaluation.preparation import holdout
from cocite.evaluation.preparation.holdout import RandomChoice, prepare_holdout

INFLUENTIAL = CitationMarks(influential=True)
SETTINGS = HoldoutSettings(positives=2, negatives=3, min_cocitations=2)
PAPERS = st.integers(0, 14)


def write_papers(path, ids, without_text, authors=None):
    texts = {paper: [f"title {paper}", f"abstract {paper}"] for paper in ids}
    for paper in without_text:
        if paper in texts:
            texts[paper][paper % 2 == 0] = None
    columns = {"fields": [["Physics", "Art"] if p % 3 else [] for p in sorted(ids)]}
    columns |= {} if authors is None else {"authors": [authors.get(p, []) for p in sorted(ids)]}
    write_table(path, "papers", papers_table(texts, **columns))


def write_citations(path, pairs, intents=None, influential=()):
    rows = [(*pair, pair in influential, sorted((intents or {}).get(pair, ()))) for pair in sorted(pairs)]
    write_rows(path, "citations", "citing cited influential intents", rows)


def prepare(folder, citations, held_out, without_text=(), papers=range(15), buckets=1, asked=SETTINGS, **more):
    """Write a corpus and prepare the benchmark; `more` is of the corpus, of the run, or settings beside those asked."""
    authors, marks = more.pop("authors", None), (more.pop("intents", None), more.pop("influential", ()))
    for bucket in range(buckets):
        of_bucket = [paper for paper in papers if paper % buckets == bucket]
        write_papers(folder / f"papers/{bucket}.parquet", of_bucket, without_text, authors)
        pairs = [pair for pair in citations if pair[0] % buckets == bucket]
        write_citations(folder / f"citations/{bucket}.parquet", pairs, *marks)
    run = {name: more.pop(name) for name in ("seed", "threads", "later", "works") if name in more}
    return prepare_folder(folder, held_out, asked.model_copy(update=more), **run)


def prepare_folder(folder, held_out, settings, seed=1, threads=1, later=None, works=None):
    """`later` has the splits of papers that are kept out by year, `works` the papers that stand for twins."""
    others = {twin: "excluded" if work in held_out else "twin" for twin, work in (works or {}).items()}
    others |= later or {}
    rows = [
        (paper, others.get(paper, "holdout" if paper in held_out else "train"), (works or {}).get(paper))
        for paper in sorted({*held_out, *others, 0})
    ]
    kept = 2 if works is None else 3
    columns = " ".join(["corpusid", "split", "work"][:kept])
    write_rows(folder / "queries.parquet", "queries", columns, [row[:kept] for row in rows])
    tables = {name: folder / name for name in ("papers", "citations")} | {"queries": folder / "queries.parquet"}
    tables |= {"contexts": folder / "contexts" if (folder / "contexts").is_dir() else None}
    written = {"tables": folder, "omissions": folder / "omissions.parquet"}
    prepare_holdout(**tables, **written, settings=settings, seed=seed, memory_mb=400, threads=threads)
    return read_benchmark(folder)


def counts_in(folder):
    return omitted_in(folder / "omissions.parquet")


def linked_by_hand(citations, query, with_text):
    """Papers with text that the query cites, and those that two papers at least cite together with it."""
    citing = {a for a, b in citations if b == query}
    together = Counter(b for a, b in citations if a in citing and b != query)
    cited = {b for a, b in citations if a == query and b != query}
    return {"cite": cited & with_text, "cocite": {paper for paper, count in together.items() if count >= 2} & with_text}


@given(
    citations=st.sets(st.tuples(PAPERS, PAPERS), min_size=40, max_size=150),
    held_out=st.sets(st.integers(0, 9), min_size=1, max_size=6),
    works=st.dictionaries(st.integers(10, 14), st.integers(0, 9), min_size=1),
)
def test_the_records_of_a_work_are_one_candidate_and_cite_as_one(citations, held_out, works):
    def of_works(pairs):
        united = {(works.get(citing, citing), works.get(cited, cited)) for citing, cited in pairs}
        return {(citing, cited) for citing, cited in united if citing != cited or citing not in works.values()}

    strong = {ends for ends in citations if sum(ends) % 3 == 0}
    graded = any(citing in held_out for citing, _ in of_works(strong))
    papers = [paper for paper in range(15) if paper not in works]
    asked = {"held_out": held_out, "search": True, "negatives": 2, "graded": INFLUENTIAL if graded else None}
    with TemporaryDirectory() as name:
        try:
            united = {"papers": papers, "influential": of_works(strong)}
            expected = prepare(Path(name, "united"), of_works(citations), **united, **asked)
        except InputError:
            with pytest.raises(InputError):
                prepare(Path(name), citations, works=works, influential=strong, **asked)
            return
        found = prepare(Path(name), citations, works=works, influential=strong, **asked)
        popularity, searches = (
            [read_table(Path(name, folder, f"{table}.parquet"), table) for folder in ("", "united")]
            for table in ("popularity", "searches")
        )
    assert found.judgements == expected.judgements
    assert popularity[0] == popularity[1]
    assert searches[0] == searches[1]


@given(
    citations=st.sets(st.tuples(PAPERS, PAPERS), min_size=20, max_size=110),
    held_out=st.sets(PAPERS, min_size=1, max_size=6),
    without_text=st.sets(PAPERS, max_size=3),
    buckets=st.integers(1, 3),
)
def test_judgements_equal_a_brute_force_computation(citations, held_out, without_text, buckets):
    with_text = set(range(15)) - without_text
    by_query = {query: linked_by_hand(citations, query, with_text) for query in held_out & with_text}
    expected = {(task, query): linked for query, of in by_query.items() for task, linked in of.items()}
    others = {(task, query): with_text - linked - {query} for (task, query), linked in expected.items()}
    enough = {key: linked for key, linked in expected.items() if len(linked) >= 2 and len(others[key]) >= 3}
    with TemporaryDirectory() as name:
        folder = Path(name)
        with nullcontext() if enough else suppress(InputError):
            prepare(folder, citations, held_out, without_text, buckets=buckets, search=True)
        if not enough:
            return
        judgements = read_benchmark(folder).judgements
        omitted = counts_in(folder)
        tables = ("documents", "popularity", "searches")
        documents, popularity, searches = (read_table(folder / f"{t}.parquet", t).to_pylist() for t in tables)
    seen = {(a, b) for a, b in citations if a != b and not {a, b} & held_out}
    cited = {paper: sum(b == paper for _, b in seen) for paper in with_text}
    assert {row["corpusid"]: row["citations"] for row in popularity} == cited
    assert {(row["task"], row["query"], row["paper"]) for row in searches} == {
        (f"{task}_search", query, paper) for (task, query), linked in expected.items() for paper in linked
    }
    random = {task: of for task, of in judgements.items() if not task.endswith("_matched")}
    found = {(task, int(query)): of for task, queries in random.items() for query, of in queries.items()}
    assert found.keys() == enough.keys()
    for (task, query), candidates in found.items():
        positives, negatives = ({int(p) for p, grade in candidates.items() if grade == of} for of in (1, 0))
        assert (len(positives), len(negatives)) == (2, 3)
        assert positives <= enough[task, query]
        assert negatives <= others[task, query]
    every = [pair for queries in judgements.values() for pair in queries.items()]
    assert {row["document"] for row in documents} == {paper for query, papers in every for paper in (query, *papers)}
    assert omitted["held-out paper without text"] == len(held_out & without_text)
    for task in ("cite", "cocite"):
        few = sum(len(linked) < 2 for (of, _), linked in expected.items() if of == task)
        assert omitted[f"task {task}: fewer than 2 positives"] == few


STAR = {(1, paper) for paper in range(2, 8)} | {(2, paper) for paper in range(3, 9)}


@pytest.mark.parametrize(
    ("held_out", "more", "said"),
    [
        (9, {}, "none of the 1 held-out papers has 2 papers that it cites or is cited with"),
        (1, {"influential": {(2, 3)}}, "no citation by a held-out paper has the marks of `graded`"),
        (1, {"influential": {(1, 7)}, "without_text": [7]}, "all grades would be 1"),
        (1, {"influential": {(1, 1)}, "citations": STAR | {(1, 1)}}, "all grades would be 1"),
    ],
)
def test_too_few_links_and_grades_that_no_candidate_has_are_refused(tmp_path, held_out, more, said):
    asked = {"citations": STAR, "graded": INFLUENTIAL if more else None} | more
    with pytest.raises(InputError, match=said):
        prepare(tmp_path, held_out={held_out}, **asked)


def test_the_choice_depends_on_the_seed_and_not_on_buckets_threads_or_other_queries(tmp_path):
    alone = prepare(tmp_path / "a", STAR, {1})
    together = prepare(tmp_path / "b", STAR, {1, 2, 3}, buckets=3, threads=2)
    assert together.judgements["cite"]["1"] == alone.judgements["cite"]["1"]
    assert prepare(tmp_path / "c", STAR, {1}, seed=2).judgements != alone.judgements


def judged(path, table):
    """The rows of a table of judgements."""
    columns = ["task", "query", "candidate", "relevance"]
    return {tuple(row.values()) for row in read_table(path, table, columns).to_pylist()}


def test_papers_that_choose_are_asked_the_same_and_each_paper_chooses_or_proves(tmp_path):
    links = {(query, paper) for query in range(40) for paper in range(40, 60)}
    corpus = {"papers": range(70), "negatives": 2}
    prepare(tmp_path / "all", links, set(range(40)), **corpus)
    searched = prepare(tmp_path / "part", links, set(range(40)), **corpus, selection=0.4, title_search=TitleSearch())
    every = judged(tmp_path / "all/judgements.parquet", "judgements")
    test = judged(tmp_path / "part/judgements.parquet", "judgements")
    selection = judged(tmp_path / "part/selection.parquet", "selection")
    assert {row for row in test if row[0] != "title_search"} | selection == every
    queries = {query for _, query, *_ in selection}
    assert 8 < len(queries) < 24
    assert not {query for _, query, *_ in test} & queries
    titles = {query.removeprefix("title:") for query in searched.judgements["title_search"]}
    assert titles
    assert not titles & queries
    assert judged(tmp_path / "all/selection.parquet", "selection") == set()


def test_every_link_and_every_other_paper_can_be_chosen():
    pool, linked = np.arange(15), np.arange(2, 8)
    choices = [RandomChoice(name="cite", settings=SETTINGS, seed=seed, pool=pool) for seed in range(100)]
    assert {paper for choice in choices for paper in choice.in_order(1, linked)[:2].tolist()} == set(range(2, 8))
    assert {paper for choice in choices for paper in choice.negatives(1, linked)} == {0, *range(8, 15)}


def test_negatives_come_from_the_pool_where_the_corpus_is_larger(tmp_path, monkeypatch):
    monkeypatch.setattr(holdout, "LARGEST_POOL", 40)
    papers, linked = range(1000), {(1, paper) for paper in range(2, 60)} | {(2, paper) for paper in range(3, 60)}
    benchmark = prepare(tmp_path, linked, {1, 2}, papers=papers, buckets=4, negatives=20)
    drawn = [{c for c, relevance in found.items() if not relevance} for found in benchmark.judgements["cite"].values()]
    assert [len(negatives) for negatives in drawn] == [20, 20]
    assert len(drawn[0] | drawn[1]) <= 40


def test_a_document_brings_its_text_and_first_field(tmp_path):
    prepare(tmp_path, STAR, {1})
    rows = {row["document"]: row for row in read_table(tmp_path / "documents.parquet", "documents").to_pylist()}
    text = {"title": "title 1", "abstract": "abstract 1", "more": []}
    assert rows["1"] == {"document": "1", **text, "field": "Physics"}
    assert all(row["field"] is None for document, row in rows.items() if int(document) % 3 == 0)


def drawn_citations(papers=60):
    """Citations of which each paper makes and gets several."""
    random = np.random.default_rng(5)
    return {(a, int(b)) for a in range(papers) for b in random.choice(papers, 10, replace=False) if a != b}


def test_influential_citations_have_grade_2_where_the_task_asks_what_is_cited(tmp_path):
    links = drawn_citations()
    strong = {(a, b) for a, b in links if (a + b) % 3 == 0}
    corpus = {"papers": range(60), "min_cocitations": 1, "search": True, "influential": strong, "selection": 0.4}
    plain, graded = (
        prepare(tmp_path / name, links, set(range(20)), buckets=2, graded=marks, **corpus)
        for name, marks in (("plain", None), ("graded", INFLUENTIAL))
    )

    def grade(task, query, paper):
        return 2 if task.startswith("cite") and (int(query), int(paper)) in strong else 1

    assert set(graded.judgements) == {"cite", "cite_matched", "cocite", "cocite_matched"}
    assert graded.judgements == {
        task: {q: {p: relevant and grade(task, q, p) for p, relevant in of.items()} for q, of in queries.items()}
        for task, queries in plain.judgements.items()
    }
    selected = judged(tmp_path / "graded/selection.parquet", "selection")
    assert {grade for _, _, _, grade in selected} == {0, 1, 2}
    for name, of in (("plain", lambda *_: 1), ("graded", grade)):
        rows = read_table(tmp_path / name / "searches.parquet", "searches").to_pylist()
        assert all(row["relevance"] == of(row["task"], row["query"], row["paper"]) for row in rows)
        assert {row["task"] for row in rows} == {"cite_search", "cocite_search"}


def test_grades_may_go_by_intents_and_by_the_number_of_sentences_that_cite(tmp_path):
    links = drawn_citations()
    intents = {(a, b): ["result"] if (a + b) % 2 else ["background"] for a, b in links}
    # Sentences of each paper that cite one to four papers each, so that some are cited several times.
    sentences = [(a, sorted(b for c, b in links if c == a)[: 1 + turn]) for a in range(60) for turn in range(4)]
    mentions = Counter((a, b) for a, cited in sentences for b in cited)
    rows = [(number, *ends, "It is known.") for number, ends in enumerate(sentences)]
    write_rows(tmp_path / "contexts/0.parquet", "contexts", "context citing cited sentence", rows)
    for asked, is_strong in {
        CitationMarks(intents=("result",)): lambda pair: intents[pair] == ["result"],
        CitationMarks(min_mentions=2): lambda pair: mentions[pair] >= 2,
        CitationMarks(min_mentions=2, intents=("result",)): lambda pair: (
            mentions[pair] >= 2 and intents[pair] == ["result"]
        ),
    }.items():
        found = prepare(tmp_path, links, set(range(20)), papers=range(60), intents=intents, graded=asked)
        of_queries = found.judgements["cite"].items()
        grades = {(int(query), int(paper)): grade for query, of in of_queries for paper, grade in of.items() if grade}
        assert set(grades.values()) == {1, 2}
        assert grades == {pair: 1 + is_strong(pair) for pair in grades}


def test_relevant_papers_by_an_author_of_the_query_are_counted(tmp_path):
    links = drawn_citations()
    names = ["Ann Lee", "ann  LEE", "Å. Bø", "A Bø", "José Díaz", "Eve"]
    authors = {paper: [names[paper % 6], names[paper % 5]] for paper in range(60) if paper % 4}
    same = {"Ann Lee": 1, "ann  LEE": 1, "Å. Bø": 2, "A Bø": 2, "José Díaz": 3, "Eve": 4}
    corpus = {"papers": range(60), "min_cocitations": 1, "search": True, "buckets": 2, "selection": 0.4}
    benchmark = prepare(tmp_path / "with", links, set(range(20)), authors=authors, **corpus)
    searches = read_table(tmp_path / "with/searches.parquet", "searches").to_pylist()
    assert {row["split"] for row in searches} == {"test", "selection"}
    pairs = [(row["task"], row["query"], row["paper"]) for row in searches if row["split"] == "test"]
    pairs += [(t, int(q), int(p)) for t, of in benchmark.judgements.items() for q, c in of.items() for p in c if c[p]]
    expected = Counter()
    for task, *ends in pairs:
        one, other = ({same[name] for name in authors.get(paper, [])} for paper in ends)
        expected[f"task {task}: relevant papers whose authors are known, and the query's (kept)"] += bool(one and other)
        expected[f"task {task}: relevant papers by an author of the query (kept)"] += bool(one & other)
    counted = {reason: count for reason, count in counts_in(tmp_path / "with").items() if "author" in reason}
    assert counted == expected
    assert len(counted) == 12
    prepare(tmp_path / "without", links, set(range(20)), **corpus)
    assert not [reason for reason in counts_in(tmp_path / "without") if "author" in reason]


def test_too_few_negatives_are_counted(tmp_path):
    prepare(tmp_path, STAR | {(9, paper) for paper in range(13)}, {1, 9})
    assert counts_in(tmp_path)["task cite: fewer than 3 papers to draw negatives from"] == 1


ASPECTS = AspectSettings(positives=2, linked=1, negatives=2)


PAIRS = st.tuples(PAPERS, PAPERS).filter(lambda ends: ends[0] != ends[1])


@given(
    st.dictionaries(PAIRS, st.frozensets(st.sampled_from(INTENTS), max_size=2), max_size=90),
    st.sets(PAPERS, min_size=1, max_size=5),
)
def test_candidates_by_aspect_are_linked_by_it_by_another_one_only_or_not_at_all(intents, held_out):
    links = {query: {} for query in held_out}
    for (citing, cited), found in intents.items():
        for query, paper in ((citing, cited), (cited, citing)):
            if query in held_out:
                links[query].setdefault(paper, set()).update(found)
    expected = {}
    for aspect in INTENTS:
        for query, near in links.items():
            relevant = {paper for paper, aspects in near.items() if aspect in aspects}
            others = {paper for paper, aspects in near.items() if aspects and aspect not in aspects}
            far = set(range(15)) - set(near) - {query}
            if len(relevant) >= 2 and others and len(far) >= 2:
                expected[aspect, str(query)] = relevant, others, far
    with TemporaryDirectory() as folder:
        if not expected:
            with pytest.raises(InputError, match="is linked with by an aspect"):
                prepare(Path(folder), set(intents), held_out, asked=ASPECTS, intents=intents)
            return
        benchmark = prepare(Path(folder), set(intents), held_out, asked=ASPECTS, intents=intents)
    found = {(task, query): ranked for task, of in benchmark.judgements.items() for query, ranked in of.items()}
    assert found.keys() == expected.keys()
    for key, (relevant, others, far) in expected.items():
        papers = {int(paper): relevance for paper, relevance in found[key].items()}
        near = {paper for paper, relevance in papers.items() if relevance}
        assert len(near) == 2
        assert near <= relevant
        assert len(papers.keys() & others) == 1
        assert len(papers.keys() & far) == 2
        assert len(papers) == 5


def test_queries_without_links_by_another_aspect_are_counted(tmp_path):
    intents = {(0, 1): {"result"}, (2, 0): {"result"}, (5, 6): {"result"}, (5, 7): {"result"}, (8, 5): {"background"}}
    benchmark = prepare(tmp_path, set(intents), {0, 5}, asked=ASPECTS, intents=intents)
    assert {task: set(queries) for task, queries in benchmark.judgements.items() if queries} == {"result": {"5"}}
    counts = counts_in(tmp_path)
    assert counts["task result: no paper that is linked by another aspect only"] == 1
    assert counts["task methodology: fewer than 2 positives"] == 2


def test_matched_candidates_are_cited_as_often_as_the_relevant_papers(tmp_path):
    random = np.random.default_rng(3)
    popular = 1 / np.arange(1, 301)  # a heavy tail: most citations go to few papers
    popular /= popular.sum()
    drawn = {citing: random.choice(300, 12, replace=False, p=popular) for citing in range(1000, 1400)}
    citations = {(citing, int(cited)) for citing, of in drawn.items() for cited in of}
    held_out, settings = set(range(1000, 1100)), SETTINGS.model_copy(update={"positives": 2, "negatives": 6})
    benchmark = prepare(tmp_path, citations, held_out, papers=[*range(300), *range(1000, 1400)], asked=settings)
    table = read_table(tmp_path / "popularity.parquet", "popularity").to_pylist()
    cited = {str(row["corpusid"]): row["citations"] for row in table}

    def worth(of, grade):
        return np.mean([np.log1p(cited[paper]) for paper, of_paper in of.items() if of_paper == grade])

    more = {
        task: np.mean([worth(of, 1) - worth(of, 0) for of in benchmark.judgements[task].values()])
        for task in ("cite", "cite_matched")
    }
    assert len(benchmark.judgements["cite_matched"]) > 50
    for query, judged_papers in benchmark.judgements["cite_matched"].items():
        linked = {str(b) for a, b in citations if str(a) == query}
        assert linked & judged_papers.keys() == {p for p, grade in judged_papers.items() if grade}
        others, classes = (
            Counter(int(3 * np.log1p(cited[p])) for p, grade in judged_papers.items() if grade == of) for of in (0, 1)
        )
        assert others == {each: 3 * count for each, count in classes.items()}
    assert more["cite"] > 1
    assert abs(more["cite_matched"]) < 0.05


def test_papers_held_out_by_time_are_ranked_among_papers_from_before_the_cut(tmp_path):
    citations = {(paper, cited) for paper in (20, 21) for cited in (*range(5), 22)} | {(9, 3), (10, 3), (22, 3)}
    split = {20: "holdout-by-time", 21: "later", 22: "holdout-by-time"}
    corpus = {"papers": [*range(15), 20, 21, 22], "later": split, "search": True}
    benchmark = prepare(tmp_path, citations, {14}, by_time=True, **corpus)
    assert benchmark.judgements["cite"].keys() == {"20"}  # 22 cites one paper, and 14 is held out by chance
    assert {int(paper) for paper in benchmark.judgements["cite"]["20"]} <= set(range(15))
    searches = read_table(tmp_path / "searches.parquet", "searches").to_pylist()
    assert {row["paper"] for row in searches if (row["task"], row["query"]) == ("cite_search", 20)} == set(range(5))
    popularity = read_table(tmp_path / "popularity.parquet", "popularity").to_pydict()
    assert popularity["corpusid"] == list(range(15))
    assert popularity["citations"][3] == 2  # by 9 and 10; what later papers cite is not known yet


@pytest.mark.parametrize("split", ["twin", "excluded"])
def test_popularity_counts_what_training_reads_of_the_records_of_a_work(tmp_path, split):
    citations = STAR | {(11, 6), (12, 5), (12, 6), (13, 5)}
    prepare(tmp_path, citations, {1}, works={12: 11}, papers=range(14), later={12: split})
    rows = read_table(tmp_path / "popularity.parquet", "popularity").to_pylist()
    cited = {row["corpusid"]: row["citations"] for row in rows}
    assert (cited[5], cited[6]) == ((3, 2) if split == "twin" else (2, 2))


def test_spoilt_names_of_authors_are_refused(tmp_path):
    authors = {paper: ["Ann Lee"] for paper in range(15)}
    prepare(tmp_path, STAR, {1}, authors=authors)
    papers = tmp_path / "papers/0.parquet"
    spoil_page(papers, read_table(papers, "papers").column_names.index("authors"))
    with pytest.raises(InputError, match="do not match their checksum"):
        prepare_folder(tmp_path, {1}, SETTINGS)
