"""Choosing queries: drawn by a rule, or named in a file or in published triplets; held-out and excluded papers."""

from collections import Counter
from datetime import date

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.corpus.made import (
    PAPERS,
    RULE,
    WITHOUT_TEXT,
    by_hand,
    date_of,
    fields_of,
    write_corpus,
    write_documents,
    year_of,
)
from tests.papers import papers_table

from cocite.config.queries import QuerySettings
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, write_table
from cocite.core.tables.papers import NO_PAPER, papers_of_documents
from cocite.corpus.matching import find_documents
from cocite.corpus.selection import (
    ASKED_AND_EXCLUDED,
    NO_CORPUS_ID,
    SHORT_OF_HOLDOUT,
    SHORT_OF_LATER,
    SHORT_OF_QUERIES,
    UNDATED,
    UNKNOWN,
    WITHOUT_DAY,
)


def test_all_candidates_of_the_rule_and_no_others_can_be_queries(choose, pairs):
    splits, omissions = choose(count=10**6, holdout=0)
    expected = by_hand(pairs, 3, 2)
    assert splits["train"] | splits["validation"] == expected
    assert 50 < len(expected) < 200
    assert omissions[SHORT_OF_QUERIES] == 10**6 - len(expected)


YEARS = st.none() | st.integers(1998, 2012)


@settings(max_examples=5)
@given(
    years=st.tuples(YEARS, YEARS).filter(lambda years: None in years or years[0] <= years[1]),
    fields=st.sets(st.sampled_from(["Art", "Biology", "Physics"])),
)
def test_queries_and_held_out_papers_have_a_year_and_a_field_as_asked_for(choose, pairs, years, fields):
    min_year, max_year = years

    def fits(paper):
        year = year_of(paper)
        if (min_year or max_year) and year is None:
            return False
        in_time = (min_year or 0) <= (year or 0) <= (max_year or 9999)
        return in_time and (not fields or bool(fields.intersection(fields_of(paper))))

    held_out = {paper for paper in by_hand(pairs, 3, 5) if fits(paper)}
    expected = {paper for paper in by_hand(pairs, 3, 2) if fits(paper)} - held_out
    asked = {"min_year": min_year, "max_year": max_year, "fields": tuple(fields), "count": 999, "holdout": 999}
    if not expected:
        with pytest.raises(InputError, match="No paper can be a query"):
            choose(**asked)
        return
    splits, _ = choose(**asked)
    assert splits["holdout"] == held_out
    assert splits["train"] | splits["validation"] == expected


def test_papers_with_the_largest_ids_can_be_queries_and_be_excluded(choose, tmp_path):
    ids = [2**63 - 1 - number for number in range(9, -1, -1)]
    texts = dict.fromkeys(ids, ("a title", "an abstract"))
    write_table(tmp_path / "papers/0.parquet", "papers", papers_table(texts))
    columns = {"citing": ids[:-1], "cited": ids[1:], "influential": [False] * 9}
    intents = pa.array([[]] * 9, pa.list_(pa.string()))
    write_table(tmp_path / "citations/0.parquet", "citations", pa.table({**columns, "intents": intents}))
    (tmp_path / "excluded.txt").write_text(f"{ids[3]}\n{2**62}\n")
    rule = {"min_citations": 1, "min_references": 1, "count": 9, "holdout": 2, "holdout_references": 1}
    splits, _ = choose(tmp_path, exclude=[tmp_path / "excluded.txt"], **rule)
    assert splits["excluded"] == {ids[3], 2**62}
    # All but the first are cited and all but the last cite; one of them is excluded.
    assert splits["train"] | splits["validation"] | splits["holdout"] == set(ids[1:-1]) - {ids[3]}
    assert len(splits["holdout"]) == 2


def test_a_field_that_no_paper_has_is_refused_with_those_that_they_have(choose):
    with pytest.raises(InputError, match=r"queries\.fields names 'biology', .* they have Art, Biology, Physics\."):
        choose(fields=("Art", "biology"))


@pytest.mark.parametrize("references", [3, 5, 8])
def test_held_out_papers_cite_as_many_papers_with_text_as_the_benchmark_ranks(choose, pairs, references):
    splits, omissions = choose(holdout=10**6, count=10**6, holdout_references=references)
    expected = by_hand(pairs, 3, references)
    assert splits["holdout"] == expected
    assert splits["train"] | splits["validation"] == by_hand(pairs, 3, 2) - expected
    assert omissions[SHORT_OF_HOLDOUT] == 10**6 - len(expected)


def test_the_splits_have_the_sizes_that_are_asked_for_and_share_no_paper(choose):
    splits, omissions = choose()
    sizes = {"train": 30, "validation": 10, "holdout": 20, "excluded": 0}
    assert {name: len(ids) for name, ids in splits.items()} == sizes
    assert len(set.union(*splits.values())) == 60
    assert set(omissions.values()) == {0}


def test_buckets_and_threads_do_not_change_the_choice(choose, pairs, tmp_path):
    assert choose(write_corpus(tmp_path, pairs, buckets=5), threads=2) == choose()


def test_another_seed_chooses_other_papers(choose):
    first, second = choose(seed=1)[0], choose(seed=2)[0]
    assert all(first[split] != second[split] for split in ("train", "validation", "holdout"))


def test_more_queries_keep_those_that_were_drawn_before(choose):
    fewer, more = choose(count=20)[0], choose(count=30)[0]
    assert fewer["train"] | fewer["validation"] < more["train"] | more["validation"]
    assert fewer["holdout"] == more["holdout"]


@pytest.mark.parametrize(("count", "validating"), [(1, 0), (2, 1), (3, 1), (8, 2)])
def test_validation_gets_its_share_and_at_least_one_query_of_two(choose, count, validating):
    assert len(choose(count=count)[0]["validation"]) == validating


def test_training_keeps_a_query_whatever_the_share_of_validation(choose):
    splits, _ = choose(count=4, validation=0.9)
    assert (len(splits["train"]), len(splits["validation"])) == (1, 3)


def test_the_ids_of_a_file_are_the_queries_if_they_have_text(choose, pairs, tmp_path):
    candidates = sorted(by_hand(pairs, 3, 5))
    path = tmp_path / "ids.txt"
    # 2 has text, twice; 5 has no abstract; 1 no title; 999 no record
    path.write_text(f"\ufeff2\n5\n1\n\n999\n2\n{candidates[0]}\n", encoding="utf-8")  # an editor's mark is no part of 2
    splits, omissions = choose(from_="file", path=str(path), holdout=10**6, count=1)
    assert splits["train"] | splits["validation"] == {2, candidates[0]}
    assert splits["holdout"] == set(candidates) - {2, candidates[0]}
    assert omissions[UNKNOWN] == 3


def test_excluded_papers_are_never_drawn_and_stand_in_the_table(choose, pairs, tmp_path):
    first, second = sorted(by_hand(pairs, 3, 2))[:40], sorted(by_hand(pairs, 3, 5))[-10:]
    lists = [tmp_path / "first.txt", tmp_path / "second.txt"]
    lists[0].write_text("\n".join(map(str, first)))
    lists[1].write_text("\n".join(map(str, [*second, first[0], 123456])))  # 123456 has no record
    splits, omissions = choose(exclude=lists, count=10**6, holdout=5)
    excluded = {*first, *second}
    assert splits["excluded"] == excluded | {123456}
    assert splits["train"] | splits["validation"] | splits["holdout"] == by_hand(pairs, 3, 2) - excluded
    assert len(splits["holdout"]) == 5
    assert omissions[ASKED_AND_EXCLUDED] == 0


def test_excluding_papers_that_were_not_drawn_changes_no_draw(choose, tmp_path):
    before, _ = choose()
    bystanders = set(range(PAPERS)) - set.union(*before.values())
    (tmp_path / "ids.txt").write_text("\n".join(map(str, bystanders)))
    after, _ = choose(exclude=[tmp_path / "ids.txt"])
    assert after == before | {"excluded": bystanders}


def test_an_excluded_paper_that_is_asked_for_is_no_query_and_counted(choose, pairs, tmp_path):
    asked, excluded = tmp_path / "ids.txt", tmp_path / "excluded.txt"
    asked.write_text("2\n3\n4\n5\n")  # 5 has no abstract
    excluded.write_text("3\n5\n")
    splits, omissions = choose(from_="file", path=str(asked), exclude=[excluded])
    assert splits["train"] | splits["validation"] == {2, 4}
    assert splits["excluded"] == {3, 5}
    assert (omissions[ASKED_AND_EXCLUDED], omissions[UNKNOWN]) == (2, 0)


def test_the_documents_of_a_benchmark_are_excluded_by_their_corpus_ids(choose, tmp_path):
    names = sorted(["12", "relish:13", "search-query:q1", "MED-4", "0a1b", "14", "99999999999999999999"])
    documents = write_documents(tmp_path / "documents.parquet", dict.fromkeys(names))
    splits, omissions = choose(exclude=[documents])
    assert splits["excluded"] == {12, 13, 14}
    assert omissions[NO_CORPUS_ID] == 4


def test_queries_are_drawn_among_published_ones_that_have_text(choose, pairs, tmp_path):
    published = sorted({*range(0, PAPERS, 3), 777})
    path = tmp_path / "published.parquet"
    write_table(path, "published_queries", pa.table({"corpusid": published}))
    (tmp_path / "excluded.txt").write_text("6\n9\n")
    asked = {"from_": "triplets", "path": str(path), "exclude": [tmp_path / "excluded.txt"]}
    splits, omissions = choose(**asked, count=10**6)
    texts = {n for n in range(PAPERS) if n % WITHOUT_TEXT != 0 and n != 1}
    usable = texts & set(published) - {6, 9} - splits["holdout"]
    assert splits["train"] | splits["validation"] == usable
    assert splits["holdout"] <= by_hand(pairs, 3, 5) - {6, 9}
    assert (omissions[ASKED_AND_EXCLUDED], omissions[UNKNOWN]) == (2, 1 + len(set(published) - texts - {777}))
    fewer, _ = choose(**asked, count=25)
    assert len(fewer["train"] | fewer["validation"]) == 25
    assert fewer["train"] | fewer["validation"] < usable
    assert fewer["holdout"] == splits["holdout"]


def test_a_line_of_the_file_that_is_no_id_is_named(choose, tmp_path):
    for wrong in (b"2x", b"-2", b"9223372036854775808", b"9" * 43, b"9" * 5000, b"1,2", b"\xff"):
        (tmp_path / "ids.txt").write_bytes(b"1\n" + wrong + b"\n")
        with pytest.raises(InputError, match=r"ids\.txt, line 2: .* is not a corpus id; a line has one") as error:
            choose(from_="file", path=str(tmp_path / "ids.txt"))
        assert len(str(error.value)) < len(str(tmp_path)) + 200


def test_a_list_that_is_not_there_is_named(choose, tmp_path):
    with pytest.raises(InputError, match=r"gone\.txt does not exist"):
        choose(exclude=[tmp_path / "gone.txt"])
    with pytest.raises(InputError, match=r"not a readable list of ids \(.*Is a directory"):
        choose(exclude=[tmp_path])


def test_no_query_at_all_is_an_error(choose, tmp_path):
    # Of 300 papers, every fifth and paper 1 have no text.
    message = (
        r"No paper can be a query: the corpus has 300 papers, 239 with a text, and 1,\d{3} citations, "
        r"\d+ of them to no paper"
    )
    with pytest.raises(InputError, match=rf"{message}.* 1000 times"):
        choose(min_citations=1000)
    (tmp_path / "ids.txt").write_text("5\n10\n")
    with pytest.raises(InputError, match=r"ids\.txt: none of its 2 ids"):
        choose(from_="file", path=str(tmp_path / "ids.txt"))


def test_no_query_names_ids_that_lead_to_no_paper_as_the_first_cause(choose, pairs, tmp_path):
    corpus = write_corpus(tmp_path / "other", [(citing, cited + 10**6) for citing, cited in pairs], 2)
    message = rf"No paper can be a query: ({len(pairs):,}) of \1 citations lead to ids that are no paper of the corpus"
    with pytest.raises(InputError, match=message):
        choose(corpus, holdout=0)


def test_documents_of_other_ids_are_excluded_as_the_papers_that_they_are_matched_with(choose, tmp_path):
    papers = tmp_path / "papers/scirepeval.parquet"
    documents = write_documents(tmp_path / "scirepeval/documents.parquet", dict.fromkeys(["12", "13", "MED-4"]))
    found = pa.table({"document": ["13"], "corpusid": [40], "matched_by": ["doi"], "has_record": [True]})
    write_table(papers, "document_papers", found)
    splits, omissions = choose(exclude=[documents, papers])
    assert splits["excluded"] == {40}
    assert omissions[NO_CORPUS_ID] == 2


@pytest.mark.parametrize("names", [["5000000", "6000000"], []])
def test_an_excluded_benchmark_whose_ids_are_of_no_paper_of_the_corpus_is_refused(choose, tmp_path, names):
    files = [write_documents(tmp_path / "scidocs/documents.parquet", dict.fromkeys(names))]
    said = rf"exclude names the benchmark scidocs, and none of its {len(names)} documents is a paper of the corpus"
    with pytest.raises(InputError, match=said):
        choose(exclude=files)
    assert not (tmp_path / "queries").exists()


def test_an_excluded_benchmark_that_was_looked_for_by_text_may_have_no_paper_of_the_corpus(choose, tmp_path):
    documents, papers = tmp_path / "scidocs/documents.parquet", tmp_path / "document_papers/scidocs.parquet"
    write_documents(documents, dict.fromkeys(["MED-4", "7"]))
    write_table(papers, "document_papers", [])
    splits, omissions = choose(exclude=[documents, papers])
    assert (splits["excluded"], omissions[NO_CORPUS_ID]) == (set(), 2)


def test_an_excluded_benchmark_whose_papers_are_only_cited_is_kept_out(choose, pairs, tmp_path):
    cited = next(paper for _, paper in pairs if paper > PAPERS)
    documents = write_documents(tmp_path / "mdcr/documents.parquet", {str(cited): None})
    assert choose(exclude=[documents])[0]["excluded"] == {cited}


def test_documents_that_are_only_cited_are_kept_out_beside_those_that_are_found(choose, corpus, pairs, tmp_path):
    cited, found = next(paper for _, paper in pairs if paper > PAPERS), tmp_path / "document_papers/beir.parquet"
    documents = write_documents(tmp_path / "beir/documents.parquet", dict.fromkeys(["12", str(cited), "MED-4"]))
    limits = {"memory_mb": 500, "threads": 1}
    find_documents(documents, papers=corpus / "papers", output=found, omissions=tmp_path / "left", **limits)
    splits, omissions = choose(exclude=[documents, found])
    assert splits["excluded"] == {12, cited}
    assert omissions[NO_CORPUS_ID] == 1
    assert papers_of_documents(found)(pa.array(["12", str(cited)])).tolist() == [12, NO_PAPER]


def is_from(paper, cut):
    """Whether a paper with a year appeared in or after a year, or on or after a day, in the last moment possible."""
    if isinstance(cut, int):
        return year_of(paper) >= cut
    return (date_of(paper) or date(year_of(paper), 12, 31)) >= date.fromisoformat(cut)


@settings(max_examples=5)
@given(
    cut=st.integers(2005, 2010) | st.sampled_from(["2005-01-01", "2006-07-01", "2010-12-31"]),
    undated=st.sampled_from([None, "earlier", "later"]),
)
def test_from_the_cut_on_nothing_is_trained_on_and_some_papers_are_held_out_by_time(choose, pairs, cut, undated):
    splits, omissions = choose(holdout_from=cut, undated=undated, holdout=10, count=999, min_citations=1)
    texts = {n for n in range(PAPERS) if n % WITHOUT_TEXT != 0 and n != 1}
    later = {p for p in range(PAPERS) if (is_from(p, cut) if year_of(p) else undated != "earlier")}
    later |= {citing for citing, _ in pairs if citing >= PAPERS and undated != "earlier"}  # without a record
    references = Counter(citing for citing, cited in pairs if cited in texts - later)
    fit = {p for p in texts & later if year_of(p) and references[p] >= 5}
    assert splits["holdout-by-time"] <= fit
    assert len(splits["holdout-by-time"]) == min(10, len(fit))
    assert splits["later"] | splits["holdout-by-time"] == later
    assert not later & (splits["train"] | splits["validation"] | splits["holdout"])
    assert omissions[SHORT_OF_LATER] == 10 - len(splits["holdout-by-time"])
    assert omissions[UNDATED] == sum(year_of(p) is None for p in range(PAPERS))
    if isinstance(cut, str):
        of_year = [p for p in range(PAPERS) if year_of(p) == int(cut[:4])]
        assert omissions[WITHOUT_DAY] == sum(date_of(p) is None for p in of_year) > 0


def test_without_papers_held_out_by_chance_the_same_ones_are_held_out_by_time_and_the_others_can_be_queries(choose):
    asked = {"holdout_from": 2006, "holdout": 10, "count": 999, "min_citations": 1}
    both, _ = choose(**asked)
    by_time, omissions = choose(**asked, holdout_by_chance=False)
    assert both["holdout"]
    assert by_time["holdout"] == set()
    assert omissions[SHORT_OF_HOLDOUT] == 0
    assert by_time["holdout-by-time"] == both["holdout-by-time"]
    trained = [splits["train"] | splits["validation"] for splits in (both, by_time)]
    assert trained[1] == trained[0] | both["holdout"]


def test_an_excluded_paper_from_after_the_cut_is_later_and_later_citations_choose_no_query(choose, pairs, tmp_path):
    cut = 2006
    later = {p for p in range(PAPERS) if year_of(p) is None or year_of(p) >= cut}
    later |= {citing for citing, _ in pairs if citing >= PAPERS}
    (tmp_path / "ids.txt").write_text("\n".join(map(str, [6, 10, 1])))
    assert {year_of(6), year_of(10), year_of(1)} == {2006, 2010, 2001}
    asked = {"holdout_from": cut, "holdout": 10, "count": 999, "min_citations": 1, "exclude": [tmp_path / "ids.txt"]}
    splits, _ = choose(**asked)
    assert splits["excluded"] == {1}
    assert {6, 10} <= splits["later"] | splits["holdout-by-time"]
    cited_before = {cited for citing, cited in pairs if citing not in later}
    assert splits["train"] | splits["validation"] | splits["holdout"] <= cited_before


@pytest.mark.parametrize("cut", [1900, 2500])
def test_a_cut_without_papers_on_both_sides_is_refused_with_the_years_that_there_are(choose, cut):
    with pytest.raises(
        InputError, match=rf"queries\.holdout_from is {cut}, and papers with a text are from \d+ to \d+"
    ):
        choose(holdout_from=cut, holdout=10)


def test_a_day_as_the_cut_of_a_corpus_without_dates_is_refused(choose, pairs, tmp_path):
    folder = write_corpus(tmp_path / "undated", pairs, buckets=1)
    papers = read_table(folder / "papers", "papers")
    undated = papers.set_column(papers.schema.get_field_index("date"), "date", pa.nulls(len(papers), pa.date32()))
    write_table(folder / "papers/0.parquet", "papers", undated)
    with pytest.raises(
        InputError, match=r"queries\.holdout_from is 2005-07-01, and no paper of 2005 has a date of publi"
    ):
        choose(folder, holdout_from="2005-07-01", holdout=10)


def test_a_cut_of_a_corpus_without_years_is_refused(choose, pairs, tmp_path):
    folder = write_corpus(tmp_path / "undated", pairs, buckets=1)
    papers = read_table(folder / "papers", "papers")
    undated = papers.set_column(papers.schema.get_field_index("year"), "year", pa.nulls(len(papers), pa.int16()))
    write_table(folder / "papers/0.parquet", "papers", undated)
    with pytest.raises(InputError, match=r"queries\.holdout_from is 2005, and no paper with a text has a year"):
        choose(folder, holdout_from=2005, holdout=10)


@pytest.mark.parametrize(
    ("changed", "says"),
    [({"undated": "later"}, "has no effect"), ({"holdout_from": 2005, "holdout": 0}, "needs holdout")],
)
def test_a_cut_that_has_no_effect_is_refused(changed, says):
    with pytest.raises(ValidationError, match=says):
        QuerySettings(**RULE | changed)


@settings(max_examples=5)
@given(
    works=st.lists(st.sets(st.integers(0, PAPERS - 1), min_size=2, max_size=4), min_size=5, max_size=40),
    cut=st.none() | st.just(2006),
    policy=st.sampled_from(["keep", "exclude"]),
)
def test_the_records_of_a_work_count_as_one_paper_in_all_splits(choose, tmp_path, works, cut, policy):
    works = [sorted(one - set().union(*works[:place])) for place, one in enumerate(works)]
    works = [one for one in works if len(one) > 1]
    (tmp_path / "ids.txt").write_text("\n".join(str(one[-1]) for one in works[:2]))
    given = {"works": works, "twins": policy, "exclude": [tmp_path / "ids.txt"], "holdout_from": cut}
    splits, _ = choose(**given, count=999, holdout=40, min_citations=1)
    rows = read_table(tmp_path / "queries", "queries").to_pylist()
    split_of = {row["corpusid"]: row["split"] for row in rows}
    standing = {row["corpusid"]: row["work"] for row in rows if row.get("work") is not None}
    is_later = {paper: cut is not None and (year_of(paper) or cut) >= cut for paper in range(PAPERS)}
    chosen = splits["train"] | splits["validation"] | splits["holdout"] | splits["holdout-by-time"]
    for number, one in enumerate(works):
        assert len(chosen.intersection(one)) <= 1
        earlier, later = ([p for p in one if is_later[p] == side] for side in (False, True))
        of_work = {split_of.get(paper) for paper in earlier}
        if number < 2 or of_work & {"holdout"}:
            assert of_work <= {"holdout", "excluded"}
        elif earlier:
            of_others = {split_of.get(paper) for paper in earlier} - {"train", "validation", None}
            assert of_others == ({"twin" if policy == "keep" else "excluded"} if len(earlier) > 1 else set())
        assert {split_of[paper] for paper in later} <= {"later", "holdout-by-time"}
        assert not (earlier and "holdout-by-time" in {split_of[paper] for paper in later})
        for side in (earlier, [] if earlier else later):
            with_text = [paper for paper in side if paper % WITHOUT_TEXT and paper != 1]
            first = (with_text or side or [None])[0]
            assert {p: standing.get(p) for p in side} == {p: None if p == first else first for p in side}


def small_corpus(folder, years, citations):
    """Papers with texts, by year, and citations."""
    texts = dict.fromkeys(years, ("a title", "an abstract"))
    write_table(
        folder / "papers/0.parquet", "papers", papers_table(texts, year=[years[paper] for paper in sorted(years)])
    )
    columns = {"citing": [one for one, _ in citations], "cited": [other for _, other in citations]}
    columns |= {
        "influential": [False] * len(citations),
        "intents": pa.array([[]] * len(citations), pa.list_(pa.string())),
    }
    write_table(folder / "citations/0.parquet", "citations", pa.table(columns))
    return folder


def test_links_of_works_count_once_and_links_within_a_work_do_not(choose, tmp_path):
    citations = [(1, 4), (1, 5), (2, 3), (2, 4), (5, 4), (6, 1), (6, 2)]
    folder = small_corpus(tmp_path / "small", dict.fromkeys(range(1, 7), 2000), citations)
    rule = {
        "min_citations": 1,
        "min_references": 1,
        "count": 9,
        "validation": 0.1,
        "holdout_references": 2,
        "works": [[4, 5]],
    }
    splits, _ = choose(folder, **rule, holdout=9)
    assert splits["holdout"] == {2}  # 1 cites one work
    assert splits["train"] | splits["validation"] == {1}  # 4 is cited, and cites itself alone


@pytest.mark.parametrize("policy", ["keep", "merge"])
def test_a_work_from_after_the_cut_is_held_out_by_time_with_the_references_of_all_its_records(choose, tmp_path, policy):
    years = {1: 2010, 2: 2011, 3: 2000, 4: 2000, 5: 2000, 6: 2000}
    citations = [(1, 3), (2, 4), (5, 3), (6, 5)]
    if policy == "merge":
        del years[2]
        citations[1] = (1, 4)
    folder = small_corpus(tmp_path / "small", years, sorted(citations))
    rule = {"min_citations": 1, "min_references": 1, "count": 9, "holdout": 5, "holdout_references": 2}
    splits, _ = choose(folder, **rule, holdout_from=2005, twins=policy, works=[[1, 2]])
    assert splits["holdout-by-time"] == {1}


def test_an_excluded_benchmark_of_records_that_were_merged_excludes_their_works(choose, tmp_path):
    folder = small_corpus(tmp_path / "small", dict.fromkeys((1, 3, 4, 5), 2000), [(3, 1), (4, 3), (4, 5), (5, 4)])
    documents = write_documents(tmp_path / "evaluation/b/documents.parquet", {"2": "a title"})
    rule = {"min_citations": 1, "min_references": 0, "count": 9, "holdout": 0}
    splits, _ = choose(folder, exclude=[documents], works=[[1, 2]], twins="merge", **rule)
    assert splits["excluded"] == {1, 2}
