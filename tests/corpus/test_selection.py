"""Choosing queries and held-out papers."""

import json

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from cocite.corpus.commands import app
from cocite.corpus.selection import QuerySettings, select
from cocite.errors import InputError
from cocite.files import read_table, write_table

PAPERS = 300
WITHOUT_TEXT = 5
RULE = {"from_": "rule", "count": 40, "min_citations": 3, "min_references": 2, "validation": 0.25, "holdout": 20}


def rows_of_papers(bucket, buckets):
    """Papers 0 … 299; every fifth has no abstract, and paper 1 no title."""
    ids = [n for n in range(PAPERS) if n % buckets == bucket]
    return pa.table(
        {
            "corpusid": pa.array(ids, pa.int64()),
            "title": pa.array([None if n == 1 else f"Title {n}" for n in ids], pa.string()),
            "abstract": pa.array([None if n % WITHOUT_TEXT == 0 else "text" for n in ids], pa.string()),
            "fields": pa.array([[] for _ in ids], pa.list_(pa.string())),
            **{name: pa.nulls(len(ids), pa.string()) for name in ("venue", "doi")},
            **{name: pa.nulls(len(ids), pa.int32()) for name in ("year", "citation_count", "reference_count")},
        }
    )


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

    def run(folder=corpus, seed=1, threads=1, **changed):
        select(
            folder / "papers",
            folder / "citations",
            QuerySettings(**RULE | changed),
            seed,
            output=tmp_path / "queries",
            omissions=tmp_path / "omissions",
            memory_mb=500,
            threads=threads,
        )
        splits = {"train": set(), "validation": set(), "holdout": set()}
        for row in read_table(tmp_path / "queries", "queries").to_pylist():
            splits[row["split"]].add(row["corpusid"])
        omissions = read_table(tmp_path / "omissions", "omissions").to_pylist()
        return splits, {row["reason"]: row["count"] for row in omissions}

    return run


def short_of(omissions, word):
    (count,) = (count for reason, count in omissions.items() if reason.startswith(word))
    return count


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
    assert short_of(omissions, "queries") == 10**6 - len(expected)


def test_held_out_papers_cite_at_least_five_papers_with_text(run, pairs):
    splits, omissions = run(holdout=10**6, count=10**6)
    expected = by_hand(pairs, 3, 5)
    assert splits["holdout"] == expected
    assert splits["train"] | splits["validation"] == by_hand(pairs, 3, 2) - expected
    assert short_of(omissions, "held-out") == 10**6 - len(expected)


def test_the_splits_have_the_sizes_that_are_asked_for_and_share_no_paper(run):
    splits, omissions = run()
    assert {name: len(ids) for name, ids in splits.items()} == {"train": 30, "validation": 10, "holdout": 20}
    assert len(set.union(*splits.values())) == 60
    assert set(omissions.values()) == {0}


def test_buckets_and_threads_do_not_change_the_choice(run, pairs, tmp_path):
    assert run(write_corpus(tmp_path, pairs, buckets=5), threads=2) == run()


def test_another_seed_chooses_other_papers(run):
    first, second = run(seed=1)[0], run(seed=2)[0]
    assert all(first[split] != second[split] for split in first)


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
    assert short_of(omissions, "ids of the file") == 3


def test_a_line_of_the_file_that_is_no_id_is_named(run, tmp_path):
    for wrong in (b"2x", b"-2", b"9223372036854775808", b"\xff"):
        (tmp_path / "ids.txt").write_bytes(b"1\n" + wrong + b"\n")
        with pytest.raises(InputError, match=r"ids\.txt, line 2: .* is not a corpus id"):
            run(from_="file", path=str(tmp_path / "ids.txt"))


def test_a_mark_before_the_first_id_of_the_file_is_no_part_of_it(run, tmp_path):
    (tmp_path / "ids.txt").write_text("\ufeff2\n", encoding="utf-8")
    splits, _ = run(from_="file", path=str(tmp_path / "ids.txt"))
    assert splits["train"] == {2}


def test_no_query_at_all_is_an_error(run, tmp_path):
    with pytest.raises(InputError, match=r"No paper can be a query.*1000 papers"):
        run(min_citations=1000)
    (tmp_path / "ids.txt").write_text("5\n")
    with pytest.raises(InputError, match=r"ids\.txt: none of its ids"):
        run(from_="file", path=str(tmp_path / "ids.txt"))


def test_the_command_takes_the_section_of_the_configuration(corpus, tmp_path):
    section = {"from": "rule"} | {name: value for name, value in RULE.items() if name != "from_"}
    folders = [f"--{name}={corpus / name}" for name in ("papers", "citations")]
    limits = ["--seed=1", "--memory-mb=500", "--threads=1"]
    outputs = [f"--output={tmp_path / 'queries'}", f"--omissions={tmp_path / 'omissions'}"]
    result = CliRunner().invoke(app, ["select", *folders, f"--settings={json.dumps(section)}", *limits, *outputs])
    assert result.exit_code == 0, result.output
    assert read_table(tmp_path / "queries", "queries").num_rows == 60
