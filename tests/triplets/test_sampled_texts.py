"""Examples may hold texts that are no papers: they are written once, found again, and counted for what they are."""

from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import table_of
from tests.triplets.blocks import (
    found_by,
    sampler,
    write_papers,
    write_queries,
    write_triplets,
    written_checks,
    written_sample,
)

from cocite.config.sampler import Sampler
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.core.text_ids import text_id
from cocite.triplets import texts as module
from cocite.triplets.sampled import Sampled
from cocite.triplets.texts import (
    find_texts,
    materialise,
    texts_table,
    training_examples,
    validation_examples,
    write_documents,
    write_texts,
)

WORDS = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.none() | st.sampled_from("xyz")), min_size=1, max_size=30)
PAPERS = {paper: (f"title {paper}", f"abstract {paper}") for paper in range(1, 31)}
SEARCHES = {f"search {number}": "validation" if number > 8 else "train" for number in range(1, 11)}


def query(words):
    return text_id(words, None, is_query=True)


def document(title, abstract=None):
    return text_id(title, abstract, is_query=False)


class Searches(Sampler):
    """A sampler of searches: a few words, a paper that they find, a brought document, and no negative."""

    sampler: Literal["searches"] = "searches"
    gives = "sampled_examples"
    brings_texts: ClassVar[bool] = True

    def sample(self, block):
        found = sorted((query(words), 1 + place, split) for place, (words, split) in enumerate(SEARCHES.items()))
        brought = document("brought", "elsewhere")
        rows = [(text, 1, split, [paper, brought], []) for text, paper, split in found]
        texts = [
            texts_table([*SEARCHES], [None] * len(SEARCHES), is_query=True),
            texts_table(["brought"] * 2, ["elsewhere"] * 2, is_query=False),
        ]
        columns = "query number split positives negatives"
        return Sampled(rows=table_of("sampled_examples", columns, rows), texts=pa.concat_tables(texts))


@pytest.fixture
def folder(tmp_path):
    splits = {paper: "validation" if paper > 8 else "train" for paper in range(1, 11)}
    write_queries(tmp_path, splits)
    for bucket in (0, 1):
        write_papers(tmp_path, {paper: texts for paper, texts in PAPERS.items() if paper % 2 == bucket}, bucket)
    write_triplets(tmp_path / "triplets.parquet", [(paper, 10 + paper, 20 + paper, splits[paper]) for paper in splits])
    run(tmp_path, Searches(), "searches", texts=tmp_path / "texts.parquet")
    return tmp_path


def run(folder, asked, output, sources=(), texts=None):
    paths = [folder / f"{source}.parquet" for source in sources]
    return written_sample(folder, asked, paths, output=f"{output}.parquet", texts=texts)[0]


@given(WORDS, st.integers(1, 7), st.sets(st.sampled_from("abcdefgh")))
def test_texts_come_once_in_the_order_of_their_ids_and_are_found_again(tmp_path_factory, words, at_once, asked):
    path = tmp_path_factory.mktemp("texts") / "texts.parquet"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "ROWS_AT_ONCE", at_once)
        batches = [batch for pair in words for batch in texts_table(*zip(pair), is_query=False).to_batches()]
        written = write_texts(path, batches)
        rows = read_table(path, "sampled_texts").to_pylist()
        expected = {document(*pair): (*pair, False) for pair in words}
        assert written == len(rows)
        assert {row["text"]: (row["title"], row["abstract"], row["is_query"]) for row in rows} == expected
        wanted = np.array(sorted(document(title) for title in asked), dtype=np.int64)
        found = np.zeros(len(wanted), dtype=bool)
        texts = [row for batch in find_texts(wanted, found, [path, path]) for row in batch.to_pylist()]
    assert [row["text"] for row in texts] == [id_ for id_ in wanted if id_ in expected]
    assert found.tolist() == [id_ in expected for id_ in wanted]


def test_without_a_file_for_its_texts_a_sampler_that_brings_some_is_refused(folder):
    with pytest.raises(InputError, match="brings texts: --texts must name the file"):
        run(folder, Searches(), "again")


def test_brought_texts_stand_among_the_documents_beside_the_papers(folder):
    files = {"output": folder / "examples.parquet", "documents": folder / "documents"}
    sets = [folder / "searches.parquet", folder / "texts.parquet"]
    materialise(sets, triplets=sets[0], papers=folder / "papers", seed=1, threads=2, **files)
    assert sorted(path.name for path in (folder / "documents").iterdir()) == ["0.parquet", "1.parquet"]
    written = read_table(folder / "documents", "training_documents").to_pylist()
    found = {row["corpusid"]: (row["title"], row["abstract"], row["is_query"]) for row in written}
    searches = {query(words): (words, None, True) for words, split in SEARCHES.items() if split == "train"}
    papers = {paper: (*PAPERS[paper], False) for paper in range(1, 9)}
    assert found == searches | papers | {document("brought", "elsewhere"): ("brought", "elsewhere", False)}
    assert len(written) == len(found)


def documents_of(folder, rows, *texts):
    """The buckets of the documents of examples."""
    write_documents(folder / "documents", "training_documents", rows, folder / "papers", texts, threads=1)
    return [read_table(folder / f"documents/{bucket}.parquet", "training_documents") for bucket in (0, 1)]


def test_every_bucket_of_documents_says_what_a_query_is_also_an_empty_one(folder):
    rows = training_examples(folder / "searches.parquet", [folder / "searches.parquet"], seed=1)
    nothing = pa.array([[]], pa.list_(pa.int64()))
    alone = rows.slice(0, 1).set_column(rows.column_names.index("positives"), "positives", nothing)
    buckets = documents_of(folder, alone, folder / "texts.parquet")
    assert sorted(map(len, buckets)) == [0, 1]
    assert all("is_query" in bucket.column_names for bucket in buckets)


def test_documents_of_papers_alone_do_not_say_what_a_query_is(folder):
    rows = training_examples(folder / "triplets.parquet", [folder / "triplets.parquet"], seed=1)
    for bucket in documents_of(folder, rows, folder / "texts.parquet"):
        assert bucket.column_names == ["corpusid", "title", "abstract"]


def test_a_text_that_no_table_holds_is_named_and_nothing_is_written(folder):
    rows = training_examples(folder / "searches.parquet", [folder / "searches.parquet"], seed=1)
    with pytest.raises(InputError, match=r"9 texts of the examples are in no table sampled_texts \(none are given\)"):
        documents_of(folder, rows)
    assert not (folder / "documents").exists()


def test_sets_made_of_others_keep_queries_that_are_texts_beside_papers(folder):
    union = run(folder, sampler("union", of=["searches", "triplets"]), "union", ["searches", "triplets"])
    assert sorted(union["query"].to_pylist()) == sorted([*map(query, SEARCHES), *range(1, 11)])
    assert {row["query"]: row["split"] for row in union.to_pylist() if row["query"] < 0} == {
        query(words): split for words, split in SEARCHES.items()
    }
    half = run(folder, sampler("subset", of="searches", share=0.5), "half", ["searches"])
    assert sorted(half["split"].to_pylist()) == ["train"] * 4 + ["validation"]
    assert set(half["query"].to_pylist()) <= set(map(query, SEARCHES))
    found = validation_examples([folder / "triplets.parquet", folder / "searches.parquet"], seed=1)
    assert sorted(found["query"].to_pylist()) == sorted([query("search 9"), query("search 10"), 9, 10])


def test_checks_count_texts_as_texts_and_their_queries_as_queries(folder):
    checks, per_query, _ = written_checks(folder, folder / "searches.parquet")
    assert found_by(checks) == {
        ("collision", "pairs"): (0, 20),
        ("no text", "query"): (0, 10),
        ("no text", "positive"): (0, 11),
        ("no text", "negative"): (0, 0),
    }
    assert [tuple(row.values()) for row in per_query] == [("train", 1, 8), ("validation", 1, 2)]
    run(folder, sampler("union", of=["searches", "triplets"]), "union", ["searches", "triplets"])
    checks, per_query, _ = written_checks(folder, folder / "union.parquet")
    assert found_by(checks)["no text", "positive"] == (0, 21)
    assert per_query[0] == {"split": "train", "count": 1, "queries": 16}
