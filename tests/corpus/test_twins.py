"""Papers of one work, and no others, are found by DOI, title or abstract; works in place of records."""

import re
import shutil
from collections import defaultdict
from collections.abc import Iterable
from itertools import permutations
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.corpus.made import LIMITS, left_out, write_twins
from tests.made_twins import SAME_TITLE, Maker, made_twins, pairs_of, table_of
from tests.papers import papers_table
from tests.rows import table_of as rows_as_table

from cocite.core.tables.files import read_table, write_table
from cocite.corpus import twins
from cocite.corpus.same_work import BANDS, LEAST_WORDS, PLACES, bands_of, jaccard, reason_of, record, shared_by
from cocite.corpus.twins import find_twins, merge_twins

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
        find_twins(Path(folder, "papers"), **LIMITS | options, **paths)
        return read_table(paths["output"], "twins").to_pylist(), left_out(paths["omissions"], zero=True)


def paper(corpusid, title=None, abstract=None, year=None, doi=None, authors=()):
    given = {"title": title, "abstract": abstract, "year": year, "doi": doi, "authors": [*authors]}
    return {"corpusid": corpusid, **given}


def known(title=None, year=None, abstract=None, by=None, doi=None):
    """What is compared of a paper with one author or none: its record, and its abstract."""
    return record(title, year, doi, [by] if by else []), pa.array([abstract], pa.string())


def reason(one, other, papers_with_title=2):
    """Why two papers are one work, whichever comes first."""
    (abstracts,) = shared_by(one[1], other[1])
    pairs = permutations((one[0], other[0]))
    (same_both_ways,) = {reason_of(*pair, abstracts, papers_with_title) for pair in pairs}
    return same_both_ways


AND, DASH = "Cats &amp; dogs: a naïve comparison of gaits", "cats and dogs - A Naive Comparison of gaits"
FEW_WORDS = " ".join(WORDS[:20])
GUT, BEES = "Gut flora and ageing in mice", "Memory of foraging bees"
FOUR_WORDS = f"{BEES} in flight"
ONE_WORK = [
    (known(LONG, 2020), known(f"{LONG.upper()}.", 2021), "title"),
    (known(LONG, 2020), known(f"<i>{LONG}</i>"), "title"),
    (known(AND), known(DASH), "title"),
    (known(LONG, 2010, TEXT), known(LONG, 2020, CUT), "title"),
    (known(SHORT, 2010, TEXT), known(SHORT, 2011, CUT), "title"),
    (known(SHORT, 2010, by="Ada Li"), known(SHORT, 2011, by="Li, A."), "title"),
    (known(LONG, 2010, TEXT), known(LONG, 2011, OTHER_TEXT), "title"),
    (known("Aves", None, TEXT), known("AVES", None, TEXT), "title"),
    (known(LONG, doi="10.1/a"), known(f"{LONG} in the field", doi="10.1/a"), "doi"),
    (known("Aves", None, TEXT, doi="10.1/a"), known("Birds", None, CUT, doi="10.1/a"), "doi"),
    (known(LONG, doi="10.1/a"), known(None, doi="10.1/a"), "doi"),
    (known(LONG, None, TEXT), known("How foraging bees remember light", None, TEXT), "abstract"),
    (known(None, None, TEXT, "Ada Li"), known(None, None, TEXT, "Li, A."), "abstract"),
    (known(LONG, None, TEXT, "Ada Li"), known(None, None, TEXT, "Li, A."), "abstract"),
]
ONLY_ALIKE = [
    (known(LONG, 2010), known(LONG, 2014)),
    (known(LONG, 2010, TEXT), known(LONG, 2013, OTHER_TEXT)),
    (known(LONG, 2010, by="Ada Li"), known(LONG, 2010, by="Bo Xu")),
    (known(SHORT, 2010), known(SHORT, 2010)),
    (known(SHORT, 2010, by="Ada Li"), known(SHORT, 2014, by="Ada Li")),
    (known("Editorial", 2010, by="Ada Li"), known("Editorial", 2010, by="Ada Li")),
    (known("Aves", 2010, by="Ada Li"), known("Aves", 2010, by="Ada Li")),
    (known(f"Correction to: {LONG}", 2010), known(f"Correction to: {LONG}", 2010)),
    (known(LONG, None, TEXT, doi="10.1/a"), known(f"Erratum: {LONG}", None, TEXT, doi="10.1/a")),
    (known(f"{LONG}. Part I", None, TEXT), known(f"{LONG}. Part II", None, TEXT)),
    (known(f"{LONG} (Part A)", None, TEXT), known(f"{LONG} (Part B)", None, TEXT)),
    (known(f"{LONG}, 2018", None, TEXT), known(f"{LONG}, 2019", None, TEXT)),
    (known(f"{LONG}: first report", None, TEXT), known(f"{LONG}: second report", None, TEXT)),
    (known(LONG, None, TEXT), known(GUT, None, TEXT)),
    (known(LONG, 2010, TEXT), known(None, 2010, TEXT)),
    (known(None, 2010, TEXT), known(None, 2010, TEXT)),
    (known(LONG, None, TEXT, "Ada Li"), known(None, None, TEXT, "Bo Xu")),
    (known(LONG, 2010, TEXT), known(BEES, 2014, TEXT)),
    (known(LONG, doi="10.1/book"), known(GUT, doi="10.1/book")),
    (known(LONG, None, FEW_WORDS), known("Foraging bees", None, FEW_WORDS)),
]


@pytest.mark.parametrize(("one", "other", "expected"), [*ONE_WORK, *((*pair, None) for pair in ONLY_ALIKE)])
def test_what_is_one_work_and_what_only_looks_like_one(one, other, expected):
    assert reason(one, other) == expected


def template(n):
    """An abstract that differs from those of other numbers in its numbers alone."""
    return f"{re.sub(r' [0-9]+%', '', TEXT)} {n}1 cases, {n}2 controls, {n}3 visits and {n}4 deaths."


def test_abstracts_of_one_template_with_other_numbers_do_not_agree():
    assert reason(known(SHORT, 2010, template(1)), known(SHORT, 2010, template(2))) is None


@pytest.mark.parametrize(
    ("title", "year", "expected"),
    [(SHORT, 2011, None), (FOUR_WORDS, 2011, "title"), (FOUR_WORDS, 2015, None), (LONG, 2015, "title")],
)
def test_abstracts_must_agree_in_half_unless_title_and_years_make_one_work_likely(title, year, expected):
    partly = f"{' '.join(WORDS[:30])} {OTHER_TEXT}"
    assert reason(known(title, 2010, TEXT), known(title, year, partly)) == expected
    assert reason(known("Abstracts", 2010, TEXT), known("Abstracts", None, CUT)) == "title"


@pytest.mark.parametrize(
    ("one", "other", "papers", "expected"),
    [
        (known(LONG, 2010), known(LONG, 2010), 5, "title"),
        (known(LONG, 2010), known(LONG, 2010), 6, None),
        (known(LONG, None, TEXT), known(LONG, None, CUT), 6, "title"),
    ],
)
def test_a_title_that_many_papers_have_needs_more_than_the_year(one, other, papers, expected):
    assert reason(one, other, papers_with_title=papers) == expected


def test_generated_twins_are_found_and_hard_negatives_are_not():
    made = made_twins(60, seed=7)
    rows, counts = found([made.papers])
    right = pairs_of({each["corpusid"]: work for each, work in zip(made.papers, made.works, strict=True)})
    got = pairs_of({row["corpusid"]: row["group"] for row in rows})
    kinds = {each["corpusid"]: kind for each, kind in zip(made.papers, made.kinds, strict=True)}
    same_title = {pair for pair in right if kinds[pair[0]] in SAME_TITLE}
    assert len(got & right) / len(got) >= 0.99
    assert len(got & same_title) / len(same_title) >= 0.95
    assert counts[twins.NO_TWINS] > 1000  # so that there was something to refuse


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
    papers = [paper(n, LONG, None, 2020, f"10.1/{n}") for n in range(twins.LARGEST + 1)]
    rows, counts = found([papers])
    assert (rows, counts[twins.too_common("title")]) == ([], 1)
    papers[0]["abstract"] = papers[1]["abstract"] = TEXT  # two that are found by this
    assert [(row["corpusid"], row["reason"]) for row in found([papers])[0]] == [(0, "title"), (1, "title")]


@pytest.mark.parametrize("with_title", [8, twins.LARGEST + 10])
def test_a_title_that_many_papers_have_stays_common_for_papers_with_alike_abstracts(with_title):
    papers = [paper(n, LONG, None, 2020) for n in range(with_title)]
    papers[0]["abstract"], papers[1]["abstract"] = template(1), template(2)
    rows, counts = found([papers])
    pairs_by_title = with_title * (with_title - 1) // 2 if with_title <= twins.LARGEST else 0
    assert (rows, counts[twins.NO_TWINS]) == ([], pairs_by_title or 1)  # the two were compared, by their abstracts


def test_groups_that_chain_many_titles_are_given_up():
    titles = [f"{LONG} {word}" for word in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")]
    alike = [paper(n, title, TEXT, 2020) for n, title in enumerate(titles)]
    again = paper(6, titles[0], TEXT, 2020)
    rows, counts = found([[*alike, again]])
    assert len(titles) > twins.MOST_TITLES
    # By abstract all are one work. Without these links, two papers of one title are left.
    assert [(row["corpusid"], row["group"], row["reason"]) for row in rows] == [(0, 0, "title"), (6, 0, "title")]
    assert (counts[twins.CHAINED], counts[twins.REFUSED]) == (20, 0)
    chapters = [{**each, "doi": "10.1/book"} for each in alike]
    rows, counts = found([chapters])
    assert (rows, counts[twins.CHAINED], counts[twins.REFUSED]) == ([], 0, 6)


def test_papers_with_nothing_to_compare_are_counted():
    short = " ".join(WORDS[: LEAST_WORDS - 1])
    rows, counts = found([[paper(1), paper(2, "…", short), paper(3, doi="10.1/a"), paper(4, LONG)]])
    assert (rows, counts[twins.NO_KEY]) == ([], 2)
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


IDS = st.integers(0, 19)
INTENTS = st.sets(st.sampled_from(["background", "methodology", "result"]))


@pytest.fixture
def united(tmp_path):
    """What is written of a table in buckets by the key of its first column, and how many rows are left out."""

    def united(table, rows, works, buckets):
        shutil.rmtree(tmp_path / "records", ignore_errors=True)
        for bucket in range(buckets):
            mine = rows.filter(pa.array([key % buckets == bucket for key in rows[0].to_pylist()], pa.bool_()))
            write_table(tmp_path / f"records/{table}/{bucket}.parquet", table, mine)
        given = {"records": tmp_path / "records" / table, "twins": write_twins(tmp_path / "twins.parquet", works)}
        merge_twins(table, **given, **LIMITS, output=tmp_path / table, omissions=tmp_path / "omissions")
        files = [tmp_path / table / f"{bucket}.parquet" for bucket in range(buckets)]
        found = [read_table(file, table).to_pylist() for file in files]
        assert all(next(iter(row.values())) % buckets == bucket for bucket, part in enumerate(found) for row in part)
        [count] = left_out(tmp_path / "omissions", zero=True).values()
        return sorted((row for part in found for row in part), key=str), count

    return united


def standing_for(works):
    return {paper: min(records) for records in works for paper in records}


def distinct(sets):
    taken = set()
    for one in sets:
        yield sorted(one - taken)
        taken |= one


WORKS = st.lists(st.sets(IDS, min_size=2, max_size=4), max_size=4).map(
    lambda sets: [one for one in distinct(sets) if len(one) > 1]
)


@settings(max_examples=5)
@given(
    citations=st.dictionaries(st.tuples(IDS, IDS), st.tuples(st.booleans(), INTENTS), min_size=1, max_size=120),
    works=WORKS,
    buckets=st.integers(1, 3),
)
def test_works_cite_what_their_records_cite_once_and_never_themselves(united, citations, works, buckets):
    work = standing_for(works)
    expected = {}
    for (citing, cited), (influential, intents) in citations.items():
        ends = work.get(citing, citing), work.get(cited, cited)
        if ends[0] != ends[1]:
            before = expected.get(ends, (False, set()))
            expected[ends] = before[0] or influential, before[1] | intents
    rows = [(*ends, influential, sorted(intents)) for ends, (influential, intents) in sorted(citations.items())]
    table = rows_as_table("citations", "citing cited influential intents", rows)
    found, count = united("citations", table, works, buckets)
    assert {tuple(row.values())[:2]: (row["influential"], set(row["intents"])) for row in found} == expected
    assert count == len(citations) - len(expected)
    assert all(row["intents"] == sorted(row["intents"]) for row in found)


@settings(max_examples=10)
@given(
    sentences=st.dictionaries(st.tuples(IDS, st.integers(-9, -1)), st.sets(IDS, min_size=1), min_size=1),
    works=WORKS,
    buckets=st.integers(1, 3),
)
def test_a_sentence_of_several_records_is_one_that_cites_works(united, sentences, works, buckets):
    work = standing_for(works)
    expected = defaultdict(set)
    for (citing, context), cited in sentences.items():
        owner = work.get(citing, citing)
        expected[owner, context] |= {work.get(paper, paper) for paper in cited} - {owner}
    rows = [(citing, context, sorted(cited), f"s{context}") for (citing, context), cited in sorted(sentences.items())]
    found, _ = united("contexts", rows_as_table("contexts", "citing context cited sentence", rows), works, buckets)
    assert {(row["citing"], row["context"]): row["cited"] for row in found} == {
        key: sorted(cited) for key, cited in expected.items() if cited
    }
    assert all(row["sentence"] == f"s{row['context']}" for row in found)


def test_one_paper_of_a_work_stays_as_it_is(united):
    texts = {paper: (f"title {paper}", f"abstract {paper}") for paper in range(9)}
    found, count = united("papers", papers_table(texts), [[1, 4, 6], [2, 8]], 2)
    assert [row["corpusid"] for row in found] == [0, 1, 2, 3, 5, 7]
    assert all(row["title"] == f"title {row['corpusid']}" for row in found)
    assert count == 3


@pytest.mark.long
def test_records_of_hci_with_one_title_and_abstract_are_twins(shared, read_rows):
    """The release has records of one text for each of two conferences, and no authors."""
    release = shared / "data/releases/hci"
    abstracts = {row["corpusid"]: row["abstract"] for row in read_rows(release / "abstracts")}
    table = [
        paper(id_ := row["corpusid"], row["title"], abstracts.get(id_), int(row["year"]), row["externalids"]["DOI"])
        for row in read_rows(release / "papers")
    ]
    group = {row["corpusid"]: row["group"] for row in found([table], memory_mb=1000)[0]}
    texts = {}
    for each in table:
        texts.setdefault((each["title"].casefold(), each["abstract"].casefold()), []).append(each["corpusid"])
    one_text = [ids for ids in texts.values() if len(ids) > 1]
    assert len(one_text) > 30
    assert all(len({group.get(each, each) for each in ids}) == 1 for ids in one_text)
    assert len(group) == pytest.approx(162, abs=10)
