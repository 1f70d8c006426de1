"""Drawing queries and held-out papers by a rule."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.corpus.small_corpus import PAPERS, RULE, WITHOUT_TEXT, by_hand, fields_of, write_corpus, year_of
from tests.papers import papers_table

from cocite.config.queries import QuerySettings
from cocite.core.errors import InputError
from cocite.core.tables.files import write_table
from cocite.corpus.selection import SHORT_OF_HOLDOUT, SHORT_OF_LATER, SHORT_OF_QUERIES, UNDATED


def test_all_candidates_of_the_rule_and_no_others_can_be_queries(choose, pairs):
    splits, omissions = choose(count=10**6, holdout=0)
    expected = by_hand(pairs, 3, 2)
    assert splits["train"] | splits["validation"] == expected
    assert 50 < len(expected) < 200
    assert omissions[SHORT_OF_QUERIES] == 10**6 - len(expected)


YEARS = st.none() | st.integers(1998, 2012)


@settings(max_examples=15)
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


@settings(max_examples=15)
@given(cut=st.integers(2005, 2010), undated=st.sampled_from([None, "earlier", "later"]))
def test_from_the_cut_on_nothing_is_trained_on_and_some_papers_are_held_out_by_time(choose, pairs, cut, undated):
    splits, omissions = choose(holdout_from=cut, undated=undated, holdout=10, count=999, min_citations=1)
    texts = {n for n in range(PAPERS) if n % WITHOUT_TEXT != 0 and n != 1}
    later = {p for p in range(PAPERS) if (cut <= year_of(p) if year_of(p) else undated != "earlier")}
    references = Counter(citing for citing, cited in pairs if cited in texts - later)
    fit = {p for p in texts & later if year_of(p) and references[p] >= 5}
    assert splits["holdout-by-time"] <= fit
    assert len(splits["holdout-by-time"]) == min(10, len(fit))
    assert splits["later"] | splits["holdout-by-time"] == later
    assert not later & (splits["train"] | splits["validation"] | splits["holdout"])
    assert omissions[SHORT_OF_LATER] == 10 - len(splits["holdout-by-time"])
    assert omissions[UNDATED] == sum(year_of(p) is None for p in range(PAPERS))


@pytest.mark.parametrize("cut", [1900, 2500])
def test_a_cut_without_papers_on_both_sides_is_refused_with_the_years_that_there_are(choose, cut):
    with pytest.raises(
        InputError, match=rf"queries\.holdout_from is {cut}, and papers with a text are from \d+ to \d+"
    ):
        choose(holdout_from=cut, holdout=10)


@pytest.mark.parametrize(
    ("changed", "says"),
    [({"undated": "later"}, "has no effect"), ({"holdout_from": 2005, "holdout": 0}, "needs holdout")],
)
def test_a_cut_that_has_no_effect_is_refused(changed, says):
    with pytest.raises(ValidationError, match=says):
        QuerySettings(**RULE | changed)
