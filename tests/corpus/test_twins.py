"""Papers that are one work are found by DOI, title or abstract, and papers that only look like one are not."""

import gzip
import json
import re
from collections.abc import Iterable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.made_twins import SAME_TITLE, Maker, made_twins, pairs_of, table_of

from cocite.core.tables.files import read_table, write_table
from cocite.corpus.same_work import BANDS, LEAST_WORDS, PLACES, bands_of, jaccard, reason_of, record, shared_by
from cocite.corpus.twins import (
    CHAINED,
    LARGEST,
    MOST_TITLES,
    NO_KEY,
    NO_TWINS,
    REFUSED,
    find_twins,
    too_common,
)

TEXT = Maker(5).abstract(7)
OTHER_TEXT = Maker(6).abstract(7)
WORDS = TEXT.split()
CUT = " ".join(WORDS[: len(WORDS) // 2])
LONG = "Spatial memory of foraging bees under changing light conditions"
SHORT = "Spatial memory"


def found(buckets: Iterable[Iterable[dict]], **options: int) -> tuple[list[dict], dict[str, int]]:
    """The twins among papers in buckets, and the counts of what was left out."""
    with TemporaryDirectory() as folder:
        for bucket, papers in enumerate(buckets):
            write_table(Path(folder, "papers", f"{bucket}.parquet"), "papers", table_of(papers))
        paths = {"output": Path(folder, "twins.parquet"), "omissions": Path(folder, "omissions.parquet")}
        find_twins(Path(folder, "papers"), **{"memory_mb": 500, "threads": 1, **options}, **paths)
        omissions = read_table(paths["omissions"], "omissions").to_pylist()
        rows = read_table(paths["output"], "twins").to_pylist()
        return rows, {row["reason"]: row["count"] for row in omissions}


def paper(corpusid, title=None, abstract=None, year=None, doi=None, authors=()):
    given = {"title": title, "abstract": abstract, "year": year, "doi": doi, "authors": [*authors]}
    return {"corpusid": corpusid, **given}


def reason(one, other, papers_with_title=2):
    """Why two papers, each a title and what else is known of it, are one work."""
    one, other = ({"title": None} | side for side in (one, other))
    texts = [pa.array([side.pop("abstract", None)], pa.string()) for side in (one, other)]
    (abstracts,) = shared_by(*texts)
    reasons = {reason_of(*pair, abstracts, papers_with_title) for pair in permuted(record(**one), record(**other))}
    (same_both_ways,) = reasons
    return same_both_ways


def permuted(one, other):
    return (one, other), (other, one)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"title": LONG, "year": 2020}, {"title": f"{LONG.upper()}.", "year": 2021}, "title"),
        ({"title": LONG, "year": 2020}, {"title": f"<i>{LONG}</i>", "year": None}, "title"),
        (
            {"title": "Cats &amp; dogs: a naïve comparison of gaits"},
            {"title": "cats and dogs - A Naive Comparison of gaits"},
            "title",
        ),
        ({"title": LONG, "year": 2010, "abstract": TEXT}, {"title": LONG, "year": 2020, "abstract": CUT}, "title"),
        ({"title": SHORT, "year": 2010, "abstract": TEXT}, {"title": SHORT, "year": 2011, "abstract": CUT}, "title"),
        (
            {"title": SHORT, "year": 2010, "authors": ["Ada Li"]},
            {"title": SHORT, "year": 2011, "authors": ["Li, A."]},
            "title",
        ),
        (
            {"title": LONG, "year": 2010, "abstract": TEXT},
            {"title": LONG, "year": 2011, "abstract": OTHER_TEXT},
            "title",
        ),
        ({"title": "Aves", "abstract": TEXT}, {"title": "AVES", "abstract": TEXT}, "title"),
        ({"title": LONG, "doi": "10.1/a"}, {"title": f"{LONG} in the field", "doi": "10.1/a"}, "doi"),
        (
            {"title": "Aves", "doi": "10.1/a", "abstract": TEXT},
            {"title": "Birds", "doi": "10.1/a", "abstract": CUT},
            "doi",
        ),
        ({"title": LONG, "doi": "10.1/a"}, {"title": None, "doi": "10.1/a"}, "doi"),
        (
            {"title": LONG, "abstract": TEXT},
            {"title": "How foraging bees remember light", "abstract": TEXT},
            "abstract",
        ),
        (
            {"title": None, "abstract": TEXT, "authors": ["Ada Li"]},
            {"abstract": TEXT, "authors": ["Li, A."]},
            "abstract",
        ),
        (
            {"title": LONG, "abstract": TEXT, "authors": ["Ada Li"]},
            {"abstract": TEXT, "authors": ["Li, A."]},
            "abstract",
        ),
    ],
)
def test_what_is_one_work(one, other, expected):
    assert reason(one, other) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"title": LONG, "year": 2010}, {"title": LONG, "year": 2014}),
        ({"title": LONG, "year": 2010, "abstract": TEXT}, {"title": LONG, "year": 2013, "abstract": OTHER_TEXT}),
        ({"title": LONG, "year": 2010, "authors": ["Ada Li"]}, {"title": LONG, "year": 2010, "authors": ["Bo Xu"]}),
        ({"title": SHORT, "year": 2010}, {"title": SHORT, "year": 2010}),
        ({"title": SHORT, "year": 2010, "authors": ["Ada Li"]}, {"title": SHORT, "year": 2014, "authors": ["Ada Li"]}),
        (
            {"title": "Editorial", "year": 2010, "authors": ["Ada Li"]},
            {"title": "Editorial", "year": 2010, "authors": ["Ada Li"]},
        ),
        (
            {"title": "Aves", "year": 2010, "authors": ["Ada Li"]},
            {"title": "Aves", "year": 2010, "authors": ["Ada Li"]},
        ),
        ({"title": f"Correction to: {LONG}", "year": 2010}, {"title": f"Correction to: {LONG}", "year": 2010}),
        (
            {"title": LONG, "abstract": TEXT, "doi": "10.1/a"},
            {"title": f"Erratum: {LONG}", "abstract": TEXT, "doi": "10.1/a"},
        ),
        ({"title": f"{LONG}. Part I", "abstract": TEXT}, {"title": f"{LONG}. Part II", "abstract": TEXT}),
        ({"title": f"{LONG} (Part A)", "abstract": TEXT}, {"title": f"{LONG} (Part B)", "abstract": TEXT}),
        ({"title": f"{LONG}, 2018", "abstract": TEXT}, {"title": f"{LONG}, 2019", "abstract": TEXT}),
        ({"title": f"{LONG}: first report", "abstract": TEXT}, {"title": f"{LONG}: second report", "abstract": TEXT}),
        ({"title": LONG, "abstract": TEXT}, {"title": "Gut flora and ageing in mice", "abstract": TEXT}),
        ({"title": LONG, "abstract": TEXT, "year": 2010}, {"title": None, "abstract": TEXT, "year": 2010}),
        ({"title": None, "abstract": TEXT, "year": 2010}, {"title": None, "abstract": TEXT, "year": 2010}),
        ({"title": LONG, "abstract": TEXT, "authors": ["Ada Li"]}, {"abstract": TEXT, "authors": ["Bo Xu"]}),
        (
            {"title": LONG, "abstract": TEXT, "year": 2010},
            {"title": "Memory of foraging bees", "abstract": TEXT, "year": 2014},
        ),
        ({"title": LONG, "doi": "10.1/book"}, {"title": "Gut flora and ageing in mice", "doi": "10.1/book"}),
        (
            {"title": LONG, "abstract": " ".join(WORDS[:20])},
            {"title": "Foraging bees", "abstract": " ".join(WORDS[:20])},
        ),
    ],
)
def test_what_only_looks_like_one_work(one, other):
    assert reason(one, other) is None


def template(n):
    """An abstract that differs from those of other numbers in its numbers alone."""
    return f"{re.sub(r' [0-9]+%', '', TEXT)} {n}1 cases, {n}2 controls, {n}3 visits and {n}4 deaths."


def test_abstracts_of_one_template_with_other_numbers_do_not_agree():
    one, other = ({"title": SHORT, "year": 2010, "abstract": template(n)} for n in (1, 2))
    assert reason(one, other) is None


def test_abstracts_must_agree_in_half_unless_title_and_years_make_one_work_likely():
    one, other = {"abstract": TEXT, "year": 2010}, {"abstract": f"{' '.join(WORDS[:30])} {OTHER_TEXT}", "year": 2011}
    four, six = "Memory of foraging bees in flight", LONG
    later = {**other, "year": 2015}
    assert [reason({**one, "title": title}, {**other, "title": title}) for title in (SHORT, four)] == [None, "title"]
    assert [reason({**one, "title": title}, {**later, "title": title}) for title in (four, six)] == [None, "title"]
    assert reason({**one, "title": "Abstracts"}, {"title": "Abstracts", "abstract": CUT}) == "title"


def test_a_title_that_many_papers_have_needs_more_than_the_year():
    assert reason({"title": LONG, "year": 2010}, {"title": LONG, "year": 2010}, papers_with_title=5) == "title"
    assert reason({"title": LONG, "year": 2010}, {"title": LONG, "year": 2010}, papers_with_title=6) is None
    assert reason({"title": LONG, "abstract": TEXT}, {"title": LONG, "abstract": CUT}, papers_with_title=6) == "title"


def test_generated_twins_are_found_and_hard_negatives_are_not():
    made = made_twins(60, seed=7)
    rows, counts = found([made.papers])
    right = pairs_of({each["corpusid"]: work for each, work in zip(made.papers, made.works, strict=True)})
    got = pairs_of({row["corpusid"]: row["group"] for row in rows})
    kinds = {each["corpusid"]: kind for each, kind in zip(made.papers, made.kinds, strict=True)}
    same_title = {pair for pair in right if kinds[pair[0]] in SAME_TITLE}
    assert len(got & right) / len(got) >= 0.99
    assert len(got & same_title) / len(same_title) >= 0.95
    assert counts[NO_TWINS] > 1000  # so that there was something to refuse


MADE = made_twins(2, seed=3).papers


@settings(max_examples=4)
@given(st.randoms(use_true_random=False), st.integers(1, 5), st.integers(1, 2))
def test_what_is_found_does_not_depend_on_buckets_ids_order_and_threads(random: Random, buckets, threads):
    expected = {frozenset(group) for group in groups_of(found([MADE])[0])}
    ids = random.sample(range(10**12), len(MADE))
    named = [{**each, "corpusid": new} for each, new in zip(MADE, ids, strict=True)]
    old = {new: each["corpusid"] for each, new in zip(MADE, ids, strict=True)}
    parts = [named[:1]] + [[] for _ in range(buckets)]
    for each in named[1:]:
        random.choice(parts).append(each)
    rows, _ = found(filter(None, parts), threads=threads)
    assert {frozenset(old[each] for each in group) for group in groups_of(rows)} == expected
    with_text = {each["corpusid"] for each in named if each.get("title") and each.get("abstract")}
    for group in groups_of(rows):
        standing = min(with_text.intersection(group) or group)
        assert {row["group"] for row in rows if row["corpusid"] in group} == {standing}


def groups_of(rows):
    groups = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row["corpusid"])
    return list(groups.values())


def test_links_of_all_reasons_form_one_group_and_each_paper_has_its_strongest_link():
    papers = [
        paper(40, LONG, None, 2020, "10.1/A"),
        paper(30, f"{LONG} in the field", None, 2020, "https://doi.org/10.1/a"),
        paper(20, LONG.lower(), TEXT, 2021, "10.1/b"),
        paper(10, "Foraging bees and their memory", f"{TEXT} We thank the bees.", 2021),
        paper(50, "Gut flora and ageing in mice", OTHER_TEXT, 2021),
    ]
    rows, counts = found([papers])
    (shared,) = shared_by(pa.array([TEXT]), pa.array([papers[3]["abstract"]]))
    assert [tuple(row.values()) for row in rows] == [
        (10, 10, "abstract", pytest.approx(shared.runs / (shared.runs + 4))),
        (20, 10, "title", None),
        (30, 10, "doi", None),
        (40, 10, "doi", None),
    ]
    assert {reason: count for reason, count in counts.items() if count} == {}


def test_a_title_that_too_many_papers_have_joins_none():
    papers = [paper(n, LONG, None, 2020, f"10.1/{n}") for n in range(LARGEST + 1)]
    rows, counts = found([papers])
    assert (rows, counts[too_common("title")]) == ([], 1)
    papers[0]["abstract"] = papers[1]["abstract"] = TEXT  # two that are found by this
    assert [(row["corpusid"], row["reason"]) for row in found([papers])[0]] == [(0, "title"), (1, "title")]


@pytest.mark.parametrize("with_title", [8, LARGEST + 10])
def test_a_title_that_many_papers_have_stays_common_for_papers_with_alike_abstracts(with_title):
    papers = [paper(n, LONG, None, 2020) for n in range(with_title)]
    papers[0]["abstract"], papers[1]["abstract"] = template(1), template(2)
    rows, counts = found([papers])
    pairs_by_title = with_title * (with_title - 1) // 2 if with_title <= LARGEST else 0
    assert (rows, counts[NO_TWINS]) == ([], pairs_by_title or 1)  # the two were compared, by their abstracts


def test_groups_that_chain_many_titles_are_given_up():
    titles = [f"{LONG} {word}" for word in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")]
    alike = [paper(n, title, TEXT, 2020) for n, title in enumerate(titles)]
    again = paper(6, titles[0], TEXT, 2020)
    rows, counts = found([[*alike, again]])
    assert len(titles) > MOST_TITLES
    # By abstract all are one work. Without these links, two papers of one title are left.
    assert [(row["corpusid"], row["group"], row["reason"]) for row in rows] == [(0, 0, "title"), (6, 0, "title")]
    assert (counts[CHAINED], counts[REFUSED]) == (20, 0)
    chapters = [{**each, "doi": "10.1/book"} for each in alike]
    rows, counts = found([chapters])
    assert (rows, counts[CHAINED], counts[REFUSED]) == ([], 0, 6)


def test_papers_with_nothing_to_compare_are_counted():
    short = " ".join(WORDS[: LEAST_WORDS - 1])
    rows, counts = found([[paper(1), paper(2, "…", short), paper(3, doi="10.1/a"), paper(4, LONG)]])
    assert (rows, counts[NO_KEY]) == ([], 2)


def test_a_corpus_without_papers_has_no_twins():
    assert found([[]])[0] == []


letters = st.text("ab c1-", max_size=40)


@given(letters, letters)
def test_what_abstracts_share_is_what_sets_of_runs_share(one, other):
    words = [re.findall(r"[a-z0-9]+", text) for text in (one, other)]
    runs = [{tuple(each[at : at + 3]) for at in range(len(each) - 2)} for each in words]
    numbers = [set(filter(str.isdigit, each)) for each in words]
    (shared,) = shared_by(pa.array([one]), pa.array([other]))
    assert shared == (
        *(min(map(len, words)), len(runs[0]), len(runs[1]), len(runs[0] & runs[1])),
        *(min(map(len, numbers)), len(numbers[0] & numbers[1])),
    )


def test_words_are_told_apart_without_case_and_at_dashes_and_quotes():
    one, other = "“Bees” – naïve ones—FLY at 40 m", "bees naïve ones fly at 40 m"
    (shared,) = shared_by(pa.array([one]), pa.array([other]))
    assert (shared.runs, shared.other_runs, shared.shared_runs, shared.shared_numbers) == (5, 5, 5, 1)
    assert shared_by(pa.array([None], pa.string()), pa.array([one]))[0].words == 0


@pytest.mark.parametrize("changed", [2, 4, 8])
def test_abstracts_share_a_band_as_often_as_their_jaccard_index_tells(changed):
    random, maker = Random(changed), Maker(changed)
    texts, others = [], []
    for _ in range(1500):
        words = maker.some(120)
        texts.append(" ".join(words))
        for place in random.sample(range(len(words)), changed):
            words[place] = f"{words[place]}x"
        others.append(" ".join(words))
    (bands, _), (other_bands, _) = bands_of(pa.array(texts)), bands_of(pa.array(others))
    indexes = np.array([jaccard(shared) for shared in shared_by(pa.array(texts), pa.array(others))])
    expected = (1 - (1 - indexes**PLACES) ** BANDS).mean()
    assert (bands == other_bands).any(axis=1).mean() == pytest.approx(expected, abs=0.03)


@pytest.mark.long
def test_records_of_hci_with_one_title_and_abstract_are_twins(shared):
    """The release has records of one text for each of two conferences, and no authors."""
    papers, abstracts = {}, {}
    release = shared / "data/releases/hci"
    for dataset, rows in (("papers", papers), ("abstracts", abstracts)):
        for path in sorted((release / dataset).iterdir()):
            rows |= {row["corpusid"]: row for row in map(json.loads, gzip.decompress(path.read_bytes()).splitlines())}
    table = [
        paper(
            each, row["title"], (abstracts.get(each) or {}).get("abstract"), int(row["year"]), row["externalids"]["DOI"]
        )
        for each, row in papers.items()
    ]
    group = {row["corpusid"]: row["group"] for row in found([table], memory_mb=1000)[0]}
    texts = {}
    for each in table:
        texts.setdefault((each["title"].casefold(), each["abstract"].casefold()), []).append(each["corpusid"])
    one_text = [ids for ids in texts.values() if len(ids) > 1]
    assert len(one_text) > 30
    assert all(len({group.get(each, each) for each in ids}) == 1 for ids in one_text)
    assert len(group) == pytest.approx(162, abs=10)
