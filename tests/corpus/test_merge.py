"""Merging: what is kept of copies depends on their content, not on where they come from."""

import shutil
from datetime import date
from itertools import permutations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.corpus.made import LIMITS, left_out, write_rows

from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.corpus.ingest.merge import merge


@pytest.fixture
def merge_parts(tmp_path):
    """Merge tables that are given as a list of parts, each a list of rows; return the rows and the omissions."""

    def run(table, allow_missing_abstract=False, until=None, **parts):
        for name, given_parts in parts.items():
            shutil.rmtree(tmp_path / name, ignore_errors=True)
            for number, rows in enumerate(given_parts):
                rows = [{"bucket": 0} | row for row in rows]
                write_rows(tmp_path / name / f"{number}.parquet", f"ingested_{name}", rows)
        asked = {"bucket": 0, "allow_missing_abstract": allow_missing_abstract, "until": until, **LIMITS}
        merge(table, ingested=tmp_path, **asked, output=tmp_path / "out", omissions=tmp_path / "omissions")
        return read_table(tmp_path / "out", table).to_pylist(), left_out(tmp_path / "omissions", zero=True)

    return run


def paper(corpusid, title="A title", citation_count=None):
    return {"corpusid": corpusid, "title": title, "fields": [], "citation_count": citation_count}


def abstract(corpusid, text):
    return {"corpusid": corpusid, "abstract": text}


def citation(citing, cited, influential=False, intents=()):
    return {"citing": citing, "cited": cited, "influential": influential, "intents": list(intents)}


def ingested(*citations):
    bits = {"background": 1, "methodology": 2, "result": 4}
    return [
        {"citing": row["citing"], "cited": row["cited"]}
        | {"traits": sum(bits[intent] for intent in row["intents"]) + 8 * row["influential"]}
        for row in citations
    ]


def test_papers_of_all_parts_meet_their_abstracts_in_the_order_of_ids(merge_parts):
    papers = [[paper(4), paper(1, None), paper(6) | {"bucket": 1}], [paper(2)]]
    abstracts = [[abstract(2, "two"), abstract(3, "a"), abstract(3, "b")], [abstract(4, "four"), abstract(5, "five")]]
    rows, omissions = merge_parts("papers", papers=papers, abstracts=abstracts)
    assert [(row["corpusid"], row["title"], row["abstract"]) for row in rows] == [
        (1, None, None),
        (2, "A title", "two"),
        (4, "A title", "four"),
    ]
    assert {reason: count for reason, count in omissions.items() if count} == {
        "papers without title (kept, with a null title)": 1,
        "papers without the texts that triplets need (kept)": 1,
        "papers without a year (kept; corpus.until takes them for earlier)": 3,
        "further copies of an abstract": 1,
        "abstracts without a paper": 2,
    }
    assert merge_parts("papers", papers=[[], []], abstracts=[[], []])[0] == []
    assert merge_parts("citations", citations=[[], []])[0] == []


@pytest.mark.parametrize(("allow_missing_abstract", "with_text"), [(False, [1]), (True, [1, 3])])
def test_a_paper_has_a_text_if_it_has_a_title_and_the_abstract_that_is_asked_for(
    merge_parts, allow_missing_abstract, with_text
):
    papers = [paper(1), paper(2, None), paper(3), paper(4, None)]
    abstracts = [abstract(1, "one"), abstract(2, "two")]
    rows, omissions = merge_parts("papers", allow_missing_abstract, papers=[papers], abstracts=[abstracts])
    assert [row["corpusid"] for row in rows if row["has_text"]] == with_text
    assert omissions["papers without the texts that triplets need (kept)"] == 4 - len(with_text)


@pytest.mark.parametrize(
    ("copies", "expected"),
    [
        ([abstract(1, "bb"), abstract(1, "ab"), abstract(1, "c")], abstract(1, "ab")),
        ([paper(1, None, 9), paper(1, "Old", 3), paper(1, "New", 5)], paper(1, "New", 5)),
        ([paper(1) | {"authors": ["B"]}, paper(1) | {"authors": ["A"]}], paper(1) | {"authors": ["A"]}),
    ],
    ids=["the longest abstract, then the first by text", "a title and most citations", "the first by text"],
)
def test_of_several_papers_or_abstracts_one_is_kept(merge_parts, copies, expected):
    name = "abstract" if "abstract" in expected else "paper"
    for order in permutations(copies):
        parts = {"papers": [[paper(1)]], "abstracts": [[]], f"{name}s": [order[:1], order[1:]]}
        [row], omissions = merge_parts("papers", **parts)
        assert expected.items() <= row.items()
        assert omissions[f"further copies of {'an' if name == 'abstract' else 'a'} {name}"] == len(copies) - 1


def test_copies_of_a_citation_with_an_unknown_intent_are_counted_and_kept_as_if_they_had_none(merge_parts):
    known, unknown = {"citing": 1, "cited": 2, "traits": 1}, {"citing": 1, "cited": 3, "traits": 16}
    rows, omissions = merge_parts("citations", citations=[[known, unknown], [known | {"traits": 16}]])
    assert rows == [citation(1, 2, intents=["background"]), citation(1, 3)]
    assert omissions["copies of a citation with an unknown intent (kept, as if they had none)"] == 2


CITATIONS = st.builds(
    citation,
    st.integers(0, 4),
    st.integers(0, 4),
    st.booleans(),
    st.sets(st.sampled_from(["background", "methodology", "result"])).map(sorted),
)


@example([[citation(3, 1), citation(1, 2, False, ["result"])], [citation(1, 2, True, ["background", "result"])]])
@given(st.lists(st.lists(CITATIONS, max_size=8), min_size=1, max_size=3))
def test_a_citation_in_several_shards_counts_once_and_unites_its_copies(merge_parts, parts):
    expected: dict[tuple[int, int], dict] = {}
    for row in (row for part in parts for row in part):
        known = expected.setdefault((row["citing"], row["cited"]), citation(row["citing"], row["cited"]))
        known["influential"] |= row["influential"]
        known["intents"] = sorted({*known["intents"], *row["intents"]})
    rows, omissions = merge_parts("citations", citations=[ingested(*part) for part in parts])
    assert rows == [expected[key] for key in sorted(expected)]
    assert omissions["further copies of a citation"] == sum(map(len, parts)) - len(expected)


def test_authors_are_there_where_they_were_ingested_and_papers_without_any_are_counted(merge_parts):
    papers = [paper(1) | {"authors": ["B", "A"]}, paper(2) | {"authors": []}]
    rows, omissions = merge_parts("papers", papers=[papers], abstracts=[[]])
    assert [row["authors"] for row in rows] == [["B", "A"], []]
    assert omissions["papers without authors (kept)"] == 1
    rows, omissions = merge_parts("papers", papers=[[paper(1)]], abstracts=[[]])
    assert "authors" not in rows[0]
    assert "papers without authors (kept)" not in omissions


YEARS = st.tuples(
    st.integers(0, 9), st.none() | st.integers(2000, 2005), st.sampled_from([None, (3, 1), (6, 30), (7, 1)])
)
"""A copy of a paper, its year, and its month and day."""
WITHOUT_DATE = "copies of papers of the year of corpus.until without a date (left out, as if from after it)"


def is_after(row, until):
    """Whether a paper appeared after a year or a day, in the last moment that is possible."""
    if row["year"] is None:
        return False
    if isinstance(until, int):
        return row["year"] > until
    return (row["date"] or date(row["year"], 12, 31)) > date.fromisoformat(until)


@example(copies=[], ends=[(20, 21), (21, 20)], until=2000)
@example(copies=[], ends=[(20, 21), (21, 20)], until=2005)
@given(
    copies=st.lists(YEARS, max_size=20),
    ends=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=20),
    until=st.integers(2000, 2005) | st.sampled_from(["2000-06-30", "2003-06-30", "2005-02-28"]),
)
def test_a_corpus_until_a_year_or_day_is_what_is_there_without_later_papers_and_their_citations(
    merge_parts, copies, ends, until
):
    copies = [*copies, (20, 2000, (2, 1)), (21, 2005, (2, 1)), (22, 2003, (7, 1))]
    papers = [
        paper(each) | {"year": year, "date": date(year, *day) if year and day else None} for each, year, day in copies
    ]
    parts = {"papers": [papers[::2], papers[1::2]]}
    later = {row["corpusid"] for row in papers if is_after(row, until)}
    kept = [row for row in papers if row["corpusid"] not in later]
    abstracts = [abstract(each, f"text {each}") for each in range(15)]
    rows, omissions = merge_parts("papers", until=str(until), **parts, abstracts=[abstracts])
    abstracts = [row for row in abstracts if row["corpusid"] not in later]
    without = merge_parts("papers", papers=[kept], abstracts=[abstracts])
    assert rows == without[0]
    assert omissions.items() >= without[1].items()
    assert omissions["copies of papers from after corpus.until"] == len(copies) - len(kept)
    assert omissions["copies of abstracts from after corpus.until"] == len(later & set(range(15)))
    undated = sum(row["year"] is None for row in rows)
    if isinstance(until, str):
        without_date = sum(row["year"] == int(until[:4]) and row["date"] is None for row in papers)
        assert omissions[WITHOUT_DATE] == without_date
    assert omissions["papers without a year (kept; corpus.until takes them for earlier)"] == undated
    citations = ingested(*(citation(*pair) for pair in ends))
    rows, omissions = merge_parts("citations", until=str(until), **parts, citations=[citations])
    assert {(row["citing"], row["cited"]) for row in rows} == {pair for pair in ends if pair[0] not in later}
    assert omissions["copies of citations from after corpus.until"] == sum(pair[0] in later for pair in ends)
    assert "copies of papers from after corpus.until" not in omissions


THERE_ARE, NO_YEAR = "papers are from 1990 to 2003", "no paper has a year"
NO_DATE = "no paper of 2003 has a date of publication; set a year instead, such as 2003"


@pytest.mark.parametrize("table", ["papers", "citations"])
@pytest.mark.parametrize(
    ("years", "until", "says"),
    [
        ([[1990, None], [2003]], 1989, THERE_ARE),
        ([[1990], [2003]], 2004, THERE_ARE),
        ([[None], [None]], 2000, NO_YEAR),
        ([[], []], 2000, NO_YEAR),
        ([[1990], [2003]], "2004-01-01", THERE_ARE),
        ([[1990], [2003]], "2003-06-30", NO_DATE),
    ],
)
def test_a_last_year_before_or_after_all_papers_is_refused_with_the_years_that_there_are(
    merge_parts, table, years, until, says
):
    # Years are those of all buckets, not those of the one that is merged.
    papers = [[paper(at) | {"year": year, "bucket": at % 2} for at, year in enumerate(part, 1)] for part in years]
    further = {"abstracts": [[]]} if table == "papers" else {"citations": [[]]}
    with pytest.raises(InputError, match=rf"corpus\.until is {until}, and {says}"):
        merge_parts(table, until=str(until), papers=papers, **further)
