"""Sentences that cite as queries: what they are paired with, by the definition, and what never reaches an example."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import write_rows
from tests.triplets.blocks import (
    block,
    examples_to_train_on,
    sample,
    sampler,
    write_papers,
    write_queries,
    written_sample,
)

from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.core.tables.papers import Twins
from cocite.core.written_ids import text_id
from cocite.triplets.sampled import documents_of
from cocite.triplets.samplers.contexts import TOO_FEW, WITHOUT_TEXT
from cocite.triplets.texts import write_documents

PAPERS = range(1, 41)


def query(words):
    return text_id(words, None, is_query=True)


def write_contexts(folder, sentences, buckets=2):
    """sentences: (citing, words, cited)."""
    paths = [folder / f"contexts/{bucket}.parquet" for bucket in range(buckets)]
    for bucket, path in enumerate(paths):
        rows = [(citing, query(words), sorted(cited), words) for citing, words, cited in sentences]
        ours = sorted(row for row in rows if row[0] % buckets == bucket)
        write_rows(path, "contexts", "citing context cited sentence", ours)
    return paths


def sampled(folder, sentences, queries, texts=PAPERS, kept_out=(), buckets=2, seed=1, works=None, **asked):
    """The examples by the words of their query, and the omissions that occurred; `works` stand for their twins."""
    given_block = block(queries, set(texts) - set(kept_out), write_contexts(folder, sentences, buckets), seed=seed)
    twins = Twins(*np.array(sorted((works or {}).items()), dtype=np.int64).reshape(-1, 2).T.copy())
    given_block = replace(given_block, kept_out=np.array(sorted(kept_out), dtype=np.int64), twins=twins)
    found = sample("contexts", given_block, **asked)
    words = {row["text"]: row["title"] for batch in found.texts for row in batch.to_pylist()}
    rows = defaultdict(list)
    for row in found.rows.to_pylist():
        rows[words[row["query"]]].append(row)
    assert set(words) == {row["query"] for row in found.rows.to_pylist()}
    return dict(rows), {reason: count for reason, count in found.omissions.items() if count}


def test_a_negative_id_of_a_citing_paper_is_refused_with_its_file(tmp_path):
    with pytest.raises(InputError, match=r"1\.parquet: contains the corpus id -5"):
        sampled(tmp_path, [(1, "one is here", [13]), (-5, "another", [12])], [1])


SENTENCES = [
    (1, "both are here", [11, 12]),
    (1, "one is here", [13]),
    (1, "one is here again", [11]),
    (2, "only this one", [14]),
    (3, "of no query", [15]),
]


@pytest.mark.parametrize(
    ("sentences", "expected", "omitted"),
    [
        ([], {"both are here"}, {TOO_FEW: 2}),
        ([(1, "three are here", [11, 12, 13])], {"both are here", "three are here"}, {TOO_FEW: 2}),
        ([(1, "one of two has a text", [11, 99])], {"both are here"}, {TOO_FEW: 3}),
        ([(1, "none of two has a text", [98, 99])], {"both are here"}, {TOO_FEW: 2, WITHOUT_TEXT: 1}),
    ],
)
def test_sentences_that_cite_too_few_papers_with_a_text_make_no_example(tmp_path, sentences, expected, omitted):
    published = {"min_cited": 2, "positives": 1, "elsewhere": 0, "easy": 1}
    rows, counts = sampled(tmp_path, [*SENTENCES, *sentences], [1], **published)
    assert set(rows) == expected
    assert counts == omitted
    for (row,) in rows.values():
        assert (len(row["positives"]), len(row["negatives"]), row["negative_kinds"]) == (1, 1, ["easy"])
        assert row["negatives"][0] not in {11, 12, 13}


def test_a_sentence_that_names_a_kept_out_paper_reaches_no_example(tmp_path):
    sentences = [
        (1, "cites a kept-out paper", [11, 20]),
        (1, "stands in a kept-out paper as well", [11]),
        (1, "cites one in another paper", [12]),
        (1, "is fine", [12]),
        (20, "stands in a kept-out paper as well", [13]),
        (3, "cites one in another paper", [20]),
    ]
    rows, left_out = sampled(tmp_path, sentences, [1], kept_out=[20], easy=0)
    assert {words: (row["positives"], row["negatives"]) for words, (row,) in rows.items()} == {"is fine": ([12], [11])}
    assert left_out == {"sentences of papers that are kept out, or that cite one": 3}


def test_records_of_a_work_are_one_paper_in_a_sentence_and_a_twin_of_its_own_is_none(tmp_path):
    sentences = [
        (1, "two records of one work", [11, 12]),
        (1, "two works", [12, 13]),
        (1, "its own twin", [5]),
        (1, "its own twin and two works", [5, 13, 14]),
    ]
    texts = set(PAPERS) - {5, 12}
    asked = {"min_cited": 2, "positives": 3, "elsewhere": 0, "easy": 1}
    rows, left_out = sampled(tmp_path, sentences, [1], texts, works={5: 1, 12: 11}, **asked)
    found = {words: sorted(row["positives"]) for words, (row,) in rows.items()}
    assert found == {"two works": [11, 13], "its own twin and two works": [13, 14]}
    assert left_out == {TOO_FEW: 1, WITHOUT_TEXT: 1}


def test_of_a_sentence_that_two_papers_have_the_smaller_id_makes_the_example(tmp_path):
    rows, left_out = sampled(tmp_path, [(3, "the same", [11]), (2, "the same", [12])], [2, 3], easy=1)
    assert {words: row["positives"] for words, (row,) in rows.items()} == {"the same": [12]}
    assert left_out == {
        "sentences that a paper with a smaller id has as well": 1,
        "queries without an example: no sentence that can be used": 1,
    }


def test_a_paper_has_no_more_sentences_than_asked_for_whatever_the_buckets(tmp_path):
    sentences = [(citing, f"{citing} says {number}", [11 + number]) for citing in (1, 2) for number in range(9)]
    rows, left_out = sampled(tmp_path, sentences, [1, 2], per_query=3)
    assert sorted(words[0] for words in rows) == ["1"] * 3 + ["2"] * 3
    assert left_out == {"sentences of a paper beyond per_query": 12}
    assert sampled(tmp_path, sentences, [1, 2], per_query=3, buckets=1)[0] == rows
    assert sampled(tmp_path, sentences, [1], per_query=3)[0].items() <= rows.items()
    assert set(sampled(tmp_path, sentences, [1, 2], per_query=3, seed=2)[0]) != set(rows)


def test_paired_each_positive_has_a_negative_of_its_own(tmp_path):
    rows, _ = sampled(tmp_path, SENTENCES, [1], paired=True, easy=3)
    found = rows["both are here"]
    assert sorted(row["positives"] for row in found) == [[11], [12]]
    assert [row["number"] for row in found] == [1, 2]
    assert len({row["negatives"][0] for row in found}) == 2
    assert len(sampled(tmp_path, SENTENCES, [1], paired=True, oversample=True, positives=3)[0]["one is here"]) == 3


CITED = st.sets(st.integers(1, 12), min_size=1, max_size=4)
WORDS = st.sampled_from([f"sentence {number}" for number in range(8)])


@given(
    st.dictionaries(st.tuples(st.integers(1, 12), WORDS), CITED, min_size=1, max_size=20),
    st.sets(st.integers(1, 12), max_size=3),
    st.sets(st.integers(1, 12), max_size=10),
)
def test_examples_are_those_of_the_definition(tmp_path, sentences, kept_out, texts):
    queries = set(range(1, 9)) - kept_out
    texts = texts | set(range(100, 120))
    given_rows = [(citing, words, cited) for (citing, words), cited in sentences.items()]
    asked = {"per_query": 9, "positives": 4, "elsewhere": 20, "easy": 2}
    rows, _ = sampled(tmp_path, given_rows, queries or {50}, texts, kept_out, **asked)
    forbidden = {words for (citing, words), cited in sentences.items() if {citing, *cited} & kept_out}
    expected = {}
    for (citing, words), cited in sorted(sentences.items()):
        positives = (cited & texts) - kept_out
        if citing in queries and words not in forbidden and positives and words not in expected:
            others = {paper for (other, _), papers in sentences.items() if other == citing for paper in papers}
            expected[words] = positives, (others - cited) & (texts - kept_out), others | {citing}
    assert set(rows) == set(expected)
    for words, (positives, elsewhere, near) in expected.items():
        (row,) = rows[words]
        kinds = dict(zip(row["negatives"], row["negative_kinds"], strict=True))
        assert set(row["positives"]) == positives
        assert {paper for paper, kind in kinds.items() if kind == "elsewhere"} == elsewhere
        easy = {paper for paper, kind in kinds.items() if kind == "easy"}
        assert len(easy) == 2
        assert easy <= texts - kept_out - near


def test_the_examples_and_their_texts_are_written_and_read_as_documents(tmp_path):
    write_queries(tmp_path, {1: "train", 2: "validation", 20: "holdout"})
    papers, texts_path = write_papers(tmp_path, list(PAPERS)), tmp_path / "texts.parquet"
    sources = write_contexts(tmp_path, [*SENTENCES, (1, "names a held-out one", [20])])
    found, _ = written_sample(tmp_path, sampler("contexts", easy=1), sources, texts=texts_path)
    splits = {row["query"]: row["split"] for row in found.to_pylist()}
    assert splits[query("only this one")] == "validation"
    assert splits[query("one is here")] == "train"
    texts = read_table(texts_path, "sampled_texts").to_pylist()
    assert {row["title"] for row in texts} == {words for citing, words, _ in SENTENCES if citing != 3}
    rows = examples_to_train_on(tmp_path / "sampled.parquet", [tmp_path / "sampled.parquet"], 1)
    write_documents(tmp_path / "documents", "training_documents", documents_of(rows), papers, [texts_path], threads=1)
    documents = read_table(tmp_path / "documents", "training_documents").to_pylist()
    of_first = {words for citing, words, _ in SENTENCES if citing == 1}
    assert {row["title"] for row in documents if row["is_query"]} == of_first
