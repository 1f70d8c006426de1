"""A corpus of works in place of records, against the same by definition."""

import shutil
from collections import defaultdict

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.corpus.made import left_out, write_twins
from tests.papers import papers_table

from cocite.core.tables.files import read_table, write_table
from cocite.corpus.twins import merge_twins

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
        merge_twins(
            table,
            records=tmp_path / "records" / table,
            twins=write_twins(tmp_path / "twins.parquet", works),
            memory_mb=400,
            threads=1,
            output=tmp_path / table,
            omissions=tmp_path / "omissions",
        )
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
    types = pa.int64(), pa.int64(), pa.bool_(), pa.list_(pa.string())
    names = "citing", "cited", "influential", "intents"
    columns = zip(names, zip(*rows, strict=True), types, strict=True)
    given = pa.table({name: pa.array(values, kind) for name, values, kind in columns})
    found, count = united("citations", given, works, buckets)
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
    given = pa.table(dict(zip(("citing", "context", "cited", "sentence"), zip(*rows, strict=True), strict=True)))
    found, _ = united("contexts", given, works, buckets)
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
