"""Choosing queries and held-out papers."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.papers import papers_table
from typer.testing import CliRunner

from cocite.config.queries import QuerySettings
from cocite.corpus.commands import app
from cocite.corpus.queries.selection import (
    ASKED_AND_EXCLUDED,
    NO_CORPUS_ID,
    SHORT_OF_HOLDOUT,
    SHORT_OF_QUERIES,
    UNKNOWN,
    select,
)
from cocite.ground.errors import InputError
from cocite.tables.files import read_table, write_table

PAPERS = 300
WITHOUT_TEXT = 5
FIELDS = [["Biology"], ["Art", "Biology"], ["Physics"], []]
RULE = {"from_": "rule", "count": 40, "min_citations": 3, "min_references": 2, "validation": 0.25, "holdout": 20}


def year_of(paper):
    return None if paper % 7 == 0 else 2000 + paper % 11


def fields_of(paper):
    return FIELDS[paper % len(FIELDS)]


def rows_of_papers(bucket, buckets):
    """Papers 0 … 299; every fifth has no abstract, paper 1 no title, and every seventh no year."""
    ids = [n for n in range(PAPERS) if n % buckets == bucket]
    texts = {n: (None if n == 1 else f"Title {n}", None if n % WITHOUT_TEXT == 0 else "text") for n in ids}
    return papers_table(texts, fields=[fields_of(n) for n in ids], year=[year_of(n) for n in ids])


@pytest.fixture(scope="session")
def pairs():
    """Distinct citations at random, also to and from papers without a record."""
    random = np.random.default_rng(5)
    drawn = {tuple(map(int, pair)) for pair in random.integers(0, PAPERS + 50, size=(1800, 2))}
    return sorted(pair for pair in drawn if pair[0] != pair[1])


def write_corpus(folder, pairs, buckets):
    for bucket in range(buckets):
        write_table(folder / "papers" / f"{bucket}.parquet", "papers", rows_of_papers(bucket, buckets))
        chosen = [pair for pair in pairs if pair[0] % buckets == bucket]
        table = pa.table(
            {
                "citing": pa.array([citing for citing, _ in chosen], pa.int64()),
                "cited": pa.array([cited for _, cited in chosen], pa.int64()),
                "influential": pa.array([False] * len(chosen)),
                "intents": pa.array([[] for _ in chosen], pa.list_(pa.string())),
            }
        )
        write_table(folder / "citations" / f"{bucket}.parquet", "citations", table)
    return folder


@pytest.fixture(scope="session")
def corpus(tmp_path_factory, pairs):
    return write_corpus(tmp_path_factory.mktemp("corpus"), pairs, buckets=2)


@pytest.fixture
def run(corpus, tmp_path):
    """Select with changed settings; return split → ids, and the omissions."""

    def run(folder=corpus, seed=1, threads=1, exclude=(), **changed):
        select(
            folder / "papers",
            folder / "citations",
            QuerySettings(**RULE | changed),
            seed,
            exclude=exclude,
            output=tmp_path / "queries",
            omissions=tmp_path / "omissions",
            memory_mb=500,
            threads=threads,
        )
        splits = {"train": set(), "validation": set(), "holdout": set(), "excluded": set()}
        for row in read_table(tmp_path / "queries", "queries").to_pylist():
            splits[row["split"]].add(row["corpusid"])
        omissions = read_table(tmp_path / "omissions", "omissions").to_pylist()
        return splits, {row["reason"]: row["count"] for row in omissions}

    return run


def by_hand(pairs, min_citations, min_references):
    """The candidates, by definition."""
    texts = {n for n in range(PAPERS) if n % WITHOUT_TEXT != 0 and n != 1}
    cited_by = {n: {citing for citing, cited in pairs if cited == n} for n in texts}
    references = {n: {cited for citing, cited in pairs if citing == n} & texts for n in texts}
    return {n for n in texts if len(cited_by[n]) >= min_citations and len(references[n]) >= min_references}


def test_all_candidates_of_the_rule_and_no_others_can_be_queries(run, pairs):
    splits, omissions = run(count=10**6, holdout=0)
    expected = by_hand(pairs, 3, 2)
    assert splits["train"] | splits["validation"] == expected
    assert 50 < len(expected) < 200
    assert omissions[SHORT_OF_QUERIES] == 10**6 - len(expected)


YEARS = st.none() | st.integers(1998, 2012)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    years=st.tuples(YEARS, YEARS).filter(lambda years: None in years or years[0] <= years[1]),
    fields=st.sets(st.sampled_from(["Art", "Biology", "Physics"])),
)
def test_queries_and_held_out_papers_have_a_year_and_a_field_as_asked_for(run, pairs, years, fields):
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
            run(**asked)
        return
    splits, _ = run(**asked)
    assert splits["holdout"] == held_out
    assert splits["train"] | splits["validation"] == expected


def test_papers_with_the_largest_ids_can_be_queries_and_be_excluded(tmp_path):
    ids = [2**63 - 1 - number for number in range(9, -1, -1)]
    texts = dict.fromkeys(ids, ("a title", "an abstract"))
    write_table(tmp_path / "papers/0.parquet", "papers", papers_table(texts))
    columns = {"citing": ids[:-1], "cited": ids[1:], "influential": [False] * 9}
    intents = pa.array([[]] * 9, pa.list_(pa.string()))
    write_table(tmp_path / "citations/0.parquet", "citations", pa.table({**columns, "intents": intents}))
    (tmp_path / "excluded.txt").write_text(f"{ids[3]}\n{2**62}\n")
    rule = RULE | {"min_citations": 1, "min_references": 1, "count": 9, "holdout": 2, "holdout_references": 1}
    select(
        tmp_path / "papers",
        tmp_path / "citations",
        QuerySettings(**rule),
        1,
        exclude=[tmp_path / "excluded.txt"],
        output=tmp_path / "queries",
        omissions=tmp_path / "omissions",
        memory_mb=500,
        threads=1,
    )
    splits = read_table(tmp_path / "queries", "queries").to_pylist()
    assert {row["corpusid"] for row in splits if row["split"] == "excluded"} == {ids[3], 2**62}
    # All but the first are cited and all but the last cite; one of them is excluded.
    assert {row["corpusid"] for row in splits if row["split"] != "excluded"} == set(ids[1:-1]) - {ids[3]}
    assert sum(row["split"] == "holdout" for row in splits) == 2


def test_a_field_that_no_paper_has_is_refused_with_those_that_they_have(run):
    with pytest.raises(InputError, match=r"queries\.fields names 'biology', .* they have Art, Biology, Physics\."):
        run(fields=("Art", "biology"))


@pytest.mark.parametrize("references", [3, 5, 8])
def test_held_out_papers_cite_as_many_papers_with_text_as_the_benchmark_ranks(run, pairs, references):
    splits, omissions = run(holdout=10**6, count=10**6, holdout_references=references)
    expected = by_hand(pairs, 3, references)
    assert splits["holdout"] == expected
    assert splits["train"] | splits["validation"] == by_hand(pairs, 3, 2) - expected
    assert omissions[SHORT_OF_HOLDOUT] == 10**6 - len(expected)


def test_the_splits_have_the_sizes_that_are_asked_for_and_share_no_paper(run):
    splits, omissions = run()
    sizes = {"train": 30, "validation": 10, "holdout": 20, "excluded": 0}
    assert {name: len(ids) for name, ids in splits.items()} == sizes
    assert len(set.union(*splits.values())) == 60
    assert set(omissions.values()) == {0}


def test_buckets_and_threads_do_not_change_the_choice(run, pairs, tmp_path):
    assert run(write_corpus(tmp_path, pairs, buckets=5), threads=2) == run()


def test_another_seed_chooses_other_papers(run):
    first, second = run(seed=1)[0], run(seed=2)[0]
    assert all(first[split] != second[split] for split in ("train", "validation", "holdout"))


def test_more_queries_keep_those_that_were_drawn_before(run):
    fewer, more = run(count=20)[0], run(count=30)[0]
    assert fewer["train"] | fewer["validation"] < more["train"] | more["validation"]
    assert fewer["holdout"] == more["holdout"]


@pytest.mark.parametrize(("count", "validating"), [(1, 0), (2, 1), (3, 1), (8, 2)])
def test_validation_gets_its_share_and_at_least_one_query_of_two(run, count, validating):
    assert len(run(count=count)[0]["validation"]) == validating


def test_the_ids_of_a_file_are_the_queries_if_they_have_text(run, pairs, tmp_path):
    candidates = sorted(by_hand(pairs, 3, 5))
    path = tmp_path / "ids.txt"
    # 2 has text, twice; 5 has no abstract; 1 no title; 999 no record
    path.write_text(f"2\n5\n1\n\n999\n2\n{candidates[0]}\n")
    splits, omissions = run(from_="file", path=str(path), holdout=10**6, count=1)
    assert splits["train"] | splits["validation"] == {2, candidates[0]}
    assert splits["holdout"] == set(candidates) - {2, candidates[0]}
    assert omissions[UNKNOWN] == 3


def test_excluded_papers_are_never_drawn_and_stand_in_the_table(run, pairs, tmp_path):
    first, second = sorted(by_hand(pairs, 3, 2))[:40], sorted(by_hand(pairs, 3, 5))[-10:]
    lists = [tmp_path / "first.txt", tmp_path / "second.txt"]
    lists[0].write_text("\n".join(map(str, first)))
    lists[1].write_text("\n".join(map(str, [*second, first[0], 123456])))  # 123456 has no record
    splits, omissions = run(exclude=lists, count=10**6, holdout=5)
    excluded = {*first, *second}
    assert splits["excluded"] == excluded | {123456}
    assert splits["train"] | splits["validation"] | splits["holdout"] == by_hand(pairs, 3, 2) - excluded
    assert len(splits["holdout"]) == 5
    assert omissions[ASKED_AND_EXCLUDED] == 0


def test_excluding_papers_that_were_not_drawn_changes_no_draw(run, tmp_path):
    before, _ = run()
    bystanders = set(range(PAPERS)) - set.union(*before.values())
    (tmp_path / "ids.txt").write_text("\n".join(map(str, bystanders)))
    after, _ = run(exclude=[tmp_path / "ids.txt"])
    assert after == before | {"excluded": bystanders}


def test_an_excluded_paper_that_is_asked_for_is_no_query_and_counted(run, pairs, tmp_path):
    asked, excluded = tmp_path / "ids.txt", tmp_path / "excluded.txt"
    asked.write_text("2\n3\n4\n5\n")  # 5 has no abstract
    excluded.write_text("3\n5\n")
    splits, omissions = run(from_="file", path=str(asked), exclude=[excluded])
    assert splits["train"] | splits["validation"] == {2, 4}
    assert splits["excluded"] == {3, 5}
    assert (omissions[ASKED_AND_EXCLUDED], omissions[UNKNOWN]) == (2, 0)


def test_the_documents_of_a_benchmark_are_excluded_by_their_corpus_ids(run, tmp_path):
    names = sorted(["12", "relish:13", "search-query:q1", "MED-4", "0a1b", "14", "99999999999999999999"])
    nothing = {name: pa.nulls(len(names), pa.string()) for name in ("title", "abstract", "field")}
    more = pa.array([[] for _ in names], pa.list_(pa.string()))
    path = tmp_path / "documents.parquet"
    write_table(path, "documents", pa.table({"document": names, **nothing, "more": more}))
    splits, omissions = run(exclude=[path])
    assert splits["excluded"] == {12, 13, 14}
    assert omissions[NO_CORPUS_ID] == 4


def test_queries_are_drawn_among_published_ones_that_have_text(run, pairs, tmp_path):
    published = sorted({*range(0, PAPERS, 3), 777})
    path = tmp_path / "published.parquet"
    write_table(path, "published_queries", pa.table({"corpusid": published}))
    (tmp_path / "excluded.txt").write_text("6\n9\n")
    asked = {"from_": "triplets", "path": str(path), "exclude": [tmp_path / "excluded.txt"]}
    splits, omissions = run(**asked, count=10**6)
    texts = {n for n in range(PAPERS) if n % WITHOUT_TEXT != 0 and n != 1}
    usable = texts & set(published) - {6, 9} - splits["holdout"]
    assert splits["train"] | splits["validation"] == usable
    assert splits["holdout"] <= by_hand(pairs, 3, 5) - {6, 9}
    assert (omissions[ASKED_AND_EXCLUDED], omissions[UNKNOWN]) == (2, 1 + len(set(published) - texts - {777}))
    fewer, _ = run(**asked, count=25)
    assert len(fewer["train"] | fewer["validation"]) == 25
    assert fewer["train"] | fewer["validation"] < usable
    assert fewer["holdout"] == splits["holdout"]


def test_a_line_of_the_file_that_is_no_id_is_named(run, tmp_path):
    for wrong in (b"2x", b"-2", b"9223372036854775808", b"9" * 43, b"9" * 5000, b"1,2", b"\xff"):
        (tmp_path / "ids.txt").write_bytes(b"1\n" + wrong + b"\n")
        with pytest.raises(InputError, match=r"ids\.txt, line 2: .* is not a corpus id; a line has one") as error:
            run(from_="file", path=str(tmp_path / "ids.txt"))
        assert len(str(error.value)) < len(str(tmp_path)) + 200


def test_a_mark_before_the_first_id_of_the_file_is_no_part_of_it(run, tmp_path):
    (tmp_path / "ids.txt").write_text("\ufeff2\n", encoding="utf-8")
    splits, _ = run(from_="file", path=str(tmp_path / "ids.txt"))
    assert splits["train"] == {2}


def test_no_query_at_all_is_an_error(run, tmp_path):
    # Of 300 papers, every fifth and paper 1 have no text.
    told = r"No paper can be a query: the corpus has 300 papers, 239 with title and abstract, and 1,\d{3} citations"
    with pytest.raises(InputError, match=rf"{told}.* 1000 times"):
        run(min_citations=1000)
    (tmp_path / "ids.txt").write_text("5\n10\n")
    with pytest.raises(InputError, match=r"ids\.txt: none of its 2 ids"):
        run(from_="file", path=str(tmp_path / "ids.txt"))


def test_the_command_takes_the_section_of_the_configuration(corpus, tmp_path):
    section = {"from": "rule"} | {name: value for name, value in RULE.items() if name != "from_"}
    folders = [f"--{name}={corpus / name}" for name in ("papers", "citations")]
    limits = ["--seed=1", "--memory-mb=500", "--threads=1"]
    outputs = [f"--output={tmp_path / 'queries'}", f"--omissions={tmp_path / 'omissions'}"]
    result = CliRunner().invoke(app, ["select", *folders, f"--settings={json.dumps(section)}", *limits, *outputs])
    assert result.exit_code == 0, result.output
    assert read_table(tmp_path / "queries", "queries").num_rows == 60
