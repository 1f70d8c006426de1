"""Choosing queries: drawn by a rule, or named in a file or in published triplets; held-out and excluded papers."""

from collections import Counter
from datetime import date
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.corpus import made
from tests.papers import papers_table
from tests.rows import write_rows

from cocite.config.queries import QuerySettings
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, write_table
from cocite.core.tables.papers import NO_PAPER, papers_of_documents
from cocite.corpus import selection
from cocite.corpus.matching import find_documents

YEARS = st.none() | st.integers(1998, 2012)


@settings(max_examples=5)
@example((None, None), set(), 3, 999)
@example((None, None), set(), 8, 999)
@example((None, None), set(), 5, 0)
@given(
    years=st.tuples(YEARS, YEARS).filter(lambda years: None in years or years[0] <= years[1]),
    fields=st.sets(st.sampled_from(["Art", "Biology", "Physics"])),
    references=st.just(5),
    holdout=st.just(999),
)
def test_queries_and_held_out_papers_are_all_that_fit_what_is_asked_for(
    choose, pairs, years, fields, references, holdout
):
    min_year, max_year = years
    assert 50 < len(made.by_hand(pairs, 3, 2)) < 200

    def fits(paper):
        year = made.year_of(paper)
        if (min_year or max_year) and year is None:
            return False
        in_time = (min_year or 0) <= (year or 0) <= (max_year or 9999)
        return in_time and (not fields or bool(fields.intersection(made.fields_of(paper))))

    held_out = {paper for paper in made.by_hand(pairs, 3, references) if holdout and fits(paper)}
    expected = {paper for paper in made.by_hand(pairs, 3, 2) if fits(paper)} - held_out
    asked = {"min_year": min_year, "max_year": max_year, "fields": tuple(fields), "holdout_references": references}
    asked |= {"count": 999, "holdout": holdout}
    if not expected:
        with pytest.raises(InputError, match="No paper can be a query"):
            choose(**asked)
        return
    splits, omissions = choose(**asked)
    assert splits["holdout"] == held_out
    assert splits["train"] | splits["validation"] == expected
    assert (omissions[selection.SHORT_OF_HOLDOUT], omissions[selection.SHORT_OF_QUERIES]) == (
        holdout - len(held_out),
        999 - len(expected),
    )


def small_corpus(folder, years, citations):
    """Papers with texts, by year, and citations."""
    texts = dict.fromkeys(years, ("a title", "an abstract"))
    papers = papers_table(texts, year=[years[paper] for paper in sorted(years)])
    write_table(folder / "papers/0.parquet", "papers", papers)
    rows = [(citing, cited, False, []) for citing, cited in sorted(citations)]
    write_rows(folder / "citations/0.parquet", "citations", "citing cited influential intents", rows)
    return folder


def test_papers_with_the_largest_ids_can_be_queries_and_be_excluded(choose, tmp_path):
    ids = [2**63 - 1 - number for number in range(9, -1, -1)]
    small_corpus(tmp_path, dict.fromkeys(ids, 2000), pairwise(ids))
    (tmp_path / "excluded.txt").write_text(f"{ids[3]}\n{2**62}\n")
    rule = {"min_citations": 1, "min_references": 1, "count": 9, "holdout": 2, "holdout_references": 1}
    splits, _ = choose(tmp_path, exclude=[tmp_path / "excluded.txt"], **rule)
    assert splits["excluded"] == {ids[3], 2**62}
    # All but the first are cited and all but the last cite; one of them is excluded.
    assert splits["train"] | splits["validation"] | splits["holdout"] == set(ids[1:-1]) - {ids[3]}
    assert len(splits["holdout"]) == 2


# Of 300 papers, every fifth and paper 1 have no text.
NO_QUERY = (
    r"No paper can be a query: the corpus has 300 papers, 239 with a text, and 1,\d{3} citations, "
    r"\d+ of them to no paper.* 1000 times"
)
YEARS_THERE_ARE = "and papers with a text are from 2000 to 2010"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"fields": ("Art", "biology")}, r"queries\.fields names 'biology', .* they have Art, Biology, Physics\."),
        ({"exclude": [Path("gone.txt")]}, r"gone\.txt does not exist"),
        ({"exclude": [Path()]}, r"not a readable list of ids \(.*Is a directory"),
        ({"min_citations": 1000}, NO_QUERY),
        ({"from_": "file", "path": "ids.txt"}, r"ids\.txt: none of its 2 ids"),
        ({"holdout_from": 1900, "holdout": 10}, rf"queries\.holdout_from is 1900, {YEARS_THERE_ARE}"),
        ({"holdout_from": 2500, "holdout": 10}, rf"queries\.holdout_from is 2500, {YEARS_THERE_ARE}"),
    ],
)
def test_what_leaves_no_query_or_names_what_is_not_there_is_refused(choose, tmp_path, monkeypatch, asked, said):
    monkeypatch.chdir(tmp_path)
    Path("ids.txt").write_text("5\n10\n")
    with pytest.raises(InputError, match=said):
        choose(**asked)


def test_the_splits_have_the_sizes_that_are_asked_for_and_the_papers_that_the_seed_draws(choose, pairs, tmp_path):
    splits, omissions = choose()
    sizes = {"train": 30, "validation": 10, "holdout": 20, "excluded": 0}
    assert {name: len(ids) for name, ids in splits.items()} == sizes
    assert len(set.union(*splits.values())) == 60
    assert set(omissions.values()) == {0}
    assert choose(made.write_corpus(tmp_path, pairs, buckets=5), threads=2) == (splits, omissions)
    others, _ = choose(seed=2)
    assert all(others[split] != splits[split] for split in ("train", "validation", "holdout"))


def test_more_queries_keep_those_that_were_drawn_before(choose):
    fewer, more = choose(count=20)[0], choose(count=30)[0]
    assert fewer["train"] | fewer["validation"] < more["train"] | more["validation"]
    assert fewer["holdout"] == more["holdout"]


@pytest.mark.parametrize(
    ("count", "share", "validating"), [(1, 0.25, 0), (2, 0.25, 1), (3, 0.25, 1), (8, 0.25, 2), (4, 0.9, 3)]
)
def test_validation_gets_its_share_and_at_least_one_query_of_two_as_does_training(choose, count, share, validating):
    splits, _ = choose(count=count, validation=share)
    assert (len(splits["train"]), len(splits["validation"])) == (count - validating, validating)


def test_the_ids_of_a_file_are_the_queries_if_they_have_text_and_are_not_excluded(choose, pairs, tmp_path):
    candidates = sorted(made.by_hand(pairs, 3, 5))
    path, excluded = tmp_path / "ids.txt", tmp_path / "excluded.txt"
    # 2, twice, and 4 have text; 5 has no abstract; 1 no title; 999 no record; 3 and 10, without one, are excluded
    path.write_text(f"\ufeff2\n5\n1\n\n999\n2\n3\n10\n4\n{candidates[0]}\n", encoding="utf-8")  # with an editor's mark
    excluded.write_text("3\n10\n")
    asked = {"from_": "file", "path": str(path), "exclude": [excluded]}
    splits, omissions = choose(**asked, holdout=10**6, count=1)
    assert splits["train"] | splits["validation"] == {2, 4, candidates[0]}
    assert splits["holdout"] == set(candidates) - {2, 3, 4, candidates[0]}
    assert splits["excluded"] == {3, 10}
    assert (omissions[selection.UNKNOWN], omissions[selection.ASKED_AND_EXCLUDED]) == (3, 2)


def test_excluded_papers_are_never_drawn_and_stand_in_the_table(choose, pairs, tmp_path):
    first, second = sorted(made.by_hand(pairs, 3, 2))[:40], sorted(made.by_hand(pairs, 3, 5))[-10:]
    lists = [tmp_path / "first.txt", tmp_path / "second.txt"]
    lists[0].write_text("\n".join(map(str, first)))
    lists[1].write_text("\n".join(map(str, [*second, first[0], 123456])))  # 123456 has no record
    splits, omissions = choose(exclude=lists, count=10**6, holdout=5)
    excluded = {*first, *second}
    assert splits["excluded"] == excluded | {123456}
    assert splits["train"] | splits["validation"] | splits["holdout"] == made.by_hand(pairs, 3, 2) - excluded
    assert len(splits["holdout"]) == 5
    assert omissions[selection.ASKED_AND_EXCLUDED] == 0


def test_excluding_papers_that_were_not_drawn_changes_no_draw(choose, tmp_path):
    before, _ = choose()
    bystanders = set(range(made.PAPERS)) - set.union(*before.values())
    (tmp_path / "ids.txt").write_text("\n".join(map(str, bystanders)))
    after, _ = choose(exclude=[tmp_path / "ids.txt"])
    assert after == before | {"excluded": bystanders}


IDS = ["12", "relish:13", "search-query:q1", "MED-4", "0a1b", "14", "99999999999999999999"]


@pytest.mark.parametrize(
    ("names", "found", "excluded", "others"),
    [
        (IDS, None, {12, 13, 14}, 4),
        (["12", "13", "MED-4"], [("13", 40, "doi", True)], {40}, 2),
        (["MED-4", "7"], [], set(), 2),
    ],
    ids=["by corpus ids", "as what they are matched with", "none was found by its text"],
)
def test_the_documents_of_a_benchmark_are_excluded(choose, tmp_path, names, found, excluded, others):
    files = [made.write_documents(tmp_path / "beir/documents.parquet", dict.fromkeys(sorted(names)))]
    if found is not None:
        columns = "document corpusid matched_by has_record"
        files.append(write_rows(tmp_path / "document_papers/beir.parquet", "document_papers", columns, found))
    splits, omissions = choose(exclude=files)
    assert (splits["excluded"], omissions[selection.NO_CORPUS_ID]) == (excluded, others)


def test_queries_are_drawn_among_published_ones_that_have_text(choose, pairs, tmp_path):
    published = sorted({*range(0, made.PAPERS, 3), 777})
    path = tmp_path / "published.parquet"
    write_table(path, "published_queries", pa.table({"corpusid": published}))
    (tmp_path / "excluded.txt").write_text("6\n9\n")
    asked = {"from_": "triplets", "path": str(path), "exclude": [tmp_path / "excluded.txt"]}
    splits, omissions = choose(**asked, count=10**6)
    texts = {n for n in range(made.PAPERS) if n % made.WITHOUT_TEXT != 0 and n != 1}
    usable = texts & set(published) - {6, 9} - splits["holdout"]
    assert splits["train"] | splits["validation"] == usable
    assert splits["holdout"] <= made.by_hand(pairs, 3, 5) - {6, 9}
    assert (omissions[selection.ASKED_AND_EXCLUDED], omissions[selection.UNKNOWN]) == (
        2,
        1 + len(set(published) - texts - {777}),
    )
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


def test_no_query_names_ids_that_lead_to_no_paper_as_the_first_cause(choose, pairs, tmp_path):
    corpus = made.write_corpus(tmp_path / "other", [(citing, cited + 10**6) for citing, cited in pairs], 2)
    message = rf"No paper can be a query: ({len(pairs):,}) of \1 citations lead to ids that are no paper of the corpus"
    with pytest.raises(InputError, match=message):
        choose(corpus, holdout=0)


@pytest.mark.parametrize("names", [["5000000", "6000000"], []])
def test_an_excluded_benchmark_whose_ids_are_of_no_paper_of_the_corpus_is_refused(choose, tmp_path, names):
    files = [made.write_documents(tmp_path / "scidocs/documents.parquet", dict.fromkeys(names))]
    said = rf"exclude names the benchmark scidocs, and none of its {len(names)} documents is a paper of the corpus"
    with pytest.raises(InputError, match=said):
        choose(exclude=files)
    assert not (tmp_path / "queries").exists()


def test_documents_that_are_only_cited_are_kept_out_beside_those_that_are_found(choose, corpus, pairs, tmp_path):
    cited, found = next(paper for _, paper in pairs if paper > made.PAPERS), tmp_path / "document_papers/beir.parquet"
    alone = made.write_documents(tmp_path / "mdcr/documents.parquet", {str(cited): None})
    assert choose(exclude=[alone])[0]["excluded"] == {cited}
    documents = made.write_documents(tmp_path / "beir/documents.parquet", dict.fromkeys(["12", str(cited), "MED-4"]))
    find_documents(documents, papers=corpus / "papers", output=found, omissions=tmp_path / "left", **made.LIMITS)
    splits, omissions = choose(exclude=[documents, found])
    assert splits["excluded"] == {12, cited}
    assert omissions[selection.NO_CORPUS_ID] == 1
    assert papers_of_documents(found)(pa.array(["12", str(cited)])).tolist() == [12, NO_PAPER]


def is_from(paper, cut):
    """Whether a paper with a year appeared in or after a year, or on or after a day, in the last moment possible."""
    if isinstance(cut, int):
        return made.year_of(paper) >= cut
    return (made.date_of(paper) or date(made.year_of(paper), 12, 31)) >= date.fromisoformat(cut)


@settings(max_examples=5)
@given(
    cut=st.integers(2005, 2010) | st.sampled_from(["2005-01-01", "2006-07-01", "2010-12-31"]),
    undated=st.sampled_from([None, "earlier", "later"]),
)
def test_from_the_cut_on_nothing_is_trained_on_and_some_papers_are_held_out_by_time(choose, pairs, cut, undated):
    splits, omissions = choose(holdout_from=cut, undated=undated, holdout=10, count=999, min_citations=1)
    texts = {n for n in range(made.PAPERS) if n % made.WITHOUT_TEXT != 0 and n != 1}
    later = {p for p in range(made.PAPERS) if (is_from(p, cut) if made.year_of(p) else undated != "earlier")}
    later |= {citing for citing, _ in pairs if citing >= made.PAPERS and undated != "earlier"}  # without a record
    references = Counter(citing for citing, cited in pairs if cited in texts - later)
    fit = {p for p in texts & later if made.year_of(p) and references[p] >= 5}
    assert splits["holdout-by-time"] <= fit
    assert len(splits["holdout-by-time"]) == min(10, len(fit))
    assert splits["later"] | splits["holdout-by-time"] == later
    assert not later & (splits["train"] | splits["validation"] | splits["holdout"])
    assert omissions[selection.SHORT_OF_LATER] == 10 - len(splits["holdout-by-time"])
    assert omissions[selection.UNDATED] == sum(made.year_of(p) is None for p in range(made.PAPERS))
    if isinstance(cut, str):
        of_year = [p for p in range(made.PAPERS) if made.year_of(p) == int(cut[:4])]
        assert omissions[selection.WITHOUT_DAY] == sum(made.date_of(p) is None for p in of_year) > 0


def test_without_papers_held_out_by_chance_the_same_ones_are_held_out_by_time_and_the_others_can_be_queries(choose):
    asked = {"holdout_from": 2006, "holdout": 10, "count": 999, "min_citations": 1}
    both, _ = choose(**asked)
    by_time, omissions = choose(**asked, holdout_by_chance=False)
    assert both["holdout"]
    assert by_time["holdout"] == set()
    assert omissions[selection.SHORT_OF_HOLDOUT] == 0
    assert by_time["holdout-by-time"] == both["holdout-by-time"]
    trained = [splits["train"] | splits["validation"] for splits in (both, by_time)]
    assert trained[1] == trained[0] | both["holdout"]


def test_an_excluded_paper_from_after_the_cut_is_later_and_later_citations_choose_no_query(choose, pairs, tmp_path):
    cut = 2006
    later = {p for p in range(made.PAPERS) if made.year_of(p) is None or made.year_of(p) >= cut}
    later |= {citing for citing, _ in pairs if citing >= made.PAPERS}
    (tmp_path / "ids.txt").write_text("\n".join(map(str, [6, 10, 1])))
    assert {made.year_of(6), made.year_of(10), made.year_of(1)} == {2006, 2010, 2001}
    asked = {"holdout_from": cut, "holdout": 10, "count": 999, "min_citations": 1, "exclude": [tmp_path / "ids.txt"]}
    splits, _ = choose(**asked)
    assert splits["excluded"] == {1}
    assert {6, 10} <= splits["later"] | splits["holdout-by-time"]
    cited_before = {cited for citing, cited in pairs if citing not in later}
    assert splits["train"] | splits["validation"] | splits["holdout"] <= cited_before


@pytest.mark.parametrize(
    ("column", "cut", "said"),
    [("date", "2005-07-01", "no paper of 2005 has a date of publi"), ("year", 2005, "no paper with a text has a year")],
)
def test_a_cut_of_a_corpus_without_years_or_dates_is_refused(choose, pairs, tmp_path, column, cut, said):
    folder = made.write_corpus(tmp_path / "undated", pairs, buckets=1)
    papers = read_table(folder / "papers", "papers")
    at = papers.column_names.index(column)
    undated = papers.set_column(at, column, pa.nulls(len(papers), papers.schema.field(at).type))
    write_table(folder / "papers/0.parquet", "papers", undated)
    with pytest.raises(InputError, match=rf"queries\.holdout_from is {cut}, and {said}"):
        choose(folder, holdout_from=cut, holdout=10)


def test_a_cut_that_holds_out_no_paper_is_refused():
    with pytest.raises(ValidationError, match="needs holdout"):
        QuerySettings(**made.RULE | {"holdout_from": 2005, "holdout": 0})


@settings(max_examples=5)
@given(
    works=st.lists(st.sets(st.integers(0, made.PAPERS - 1), min_size=2, max_size=4), min_size=5, max_size=40),
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
    is_later = {paper: cut is not None and (made.year_of(paper) or cut) >= cut for paper in range(made.PAPERS)}
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
            with_text = [paper for paper in side if paper % made.WITHOUT_TEXT and paper != 1]
            first = (with_text or side or [None])[0]
            assert {p: standing.get(p) for p in side} == {p: None if p == first else first for p in side}


SMALL_RULE = {"min_citations": 1, "min_references": 1, "count": 9}


def test_links_of_works_count_once_and_links_within_a_work_do_not(choose, tmp_path):
    citations = [(1, 4), (1, 5), (2, 3), (2, 4), (5, 4), (6, 1), (6, 2)]
    folder = small_corpus(tmp_path / "small", dict.fromkeys(range(1, 7), 2000), citations)
    splits, _ = choose(folder, **SMALL_RULE, validation=0.1, holdout_references=2, works=[[4, 5]], holdout=9)
    assert splits["holdout"] == {2}  # 1 cites one work
    assert splits["train"] | splits["validation"] == {1}  # 4 is cited, and cites itself alone


@pytest.mark.parametrize("policy", ["keep", "merge"])
def test_a_work_from_after_the_cut_is_held_out_by_time_with_the_references_of_all_its_records(choose, tmp_path, policy):
    years = {1: 2010, 2: 2011, 3: 2000, 4: 2000, 5: 2000, 6: 2000}
    citations = [(1, 3), (2, 4), (5, 3), (6, 5)]
    if policy == "merge":
        del years[2]
        citations[1] = (1, 4)
    folder = small_corpus(tmp_path / "small", years, citations)
    asked = {"holdout": 5, "holdout_references": 2, "holdout_from": 2005, "twins": policy, "works": [[1, 2]]}
    splits, _ = choose(folder, **SMALL_RULE, **asked)
    assert splits["holdout-by-time"] == {1}


def test_an_excluded_benchmark_of_records_that_were_merged_excludes_their_works(choose, tmp_path):
    folder = small_corpus(tmp_path / "small", dict.fromkeys((1, 3, 4, 5), 2000), [(3, 1), (4, 3), (4, 5), (5, 4)])
    documents = made.write_documents(tmp_path / "evaluation/b/documents.parquet", {"2": "a title"})
    asked = {"exclude": [documents], "works": [[1, 2]], "twins": "merge"}
    splits, _ = choose(folder, **SMALL_RULE | {"min_references": 0}, holdout=0, **asked)
    assert splits["excluded"] == {1, 2}
