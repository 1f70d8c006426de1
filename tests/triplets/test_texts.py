"""Sets that are compared have one size and one validation set; their texts lie in shards that can be streamed.

Examples may hold texts that are no papers: they are written once, found again, and counted for what they are.
"""

from itertools import groupby
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.large_ids import LARGE
from tests.papers import papers_table
from tests.rows import table_of

from cocite.config.sampler import Sampler
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, write_table
from cocite.core.written_ids import text_id
from cocite.triplets import texts
from cocite.triplets.sampled import LISTS, Sampled, documents_of
from cocite.triplets.texts import (
    find_texts,
    materialise,
    texts_table,
    write_documents,
    write_texts,
)

from .blocks import (
    block,
    examples_to_train_on,
    examples_to_validate_on,
    found_by,
    sample,
    sampler,
    write_queries,
    write_triplets,
    written_checks,
    written_sample,
)
from .blocks import write_examples as write_sampled
from .blocks import write_papers as write_bucket

PAPERS = range(1, 61)
LONG = [(query, 20 + query, 40 + i, "train") for query in range(1, 11) for i in range(4)]
SHORT = [(query, 30, 50 + i, "train") for query in range(1, 4) for i in range(3)]
WORDS = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.none() | st.sampled_from("xyz")), min_size=1, max_size=30)
OF_CORPUS = {paper: (f"title {paper}", f"abstract {paper}") for paper in range(1, 31)}
SEARCHES = {f"search {number}": "validation" if number > 8 else "train" for number in range(1, 11)}


def write_papers(folder, *, without_text=()):
    """Papers 1 to 60, their texts made of their numbers, with several row groups a bucket."""
    for bucket in range(3):
        ids = [paper for paper in PAPERS if paper % 3 == bucket]
        texts = {paper: (f"title {paper}", None if paper in without_text else f"abstract {paper}") for paper in ids}
        write_table(folder / f"{bucket}.parquet", "papers", papers_table(texts).to_batches(7))


@pytest.fixture
def folder(tmp_path):
    write_papers(tmp_path / "papers")
    write_triplets(tmp_path / "long.parquet", [*LONG, (11, 12, 13, "validation"), (11, 12, 14, "validation")])
    write_triplets(tmp_path / "short.parquet", [*SHORT, (11, 12, 13, "validation"), (15, 16, 17, "validation")])
    return tmp_path


def group(folder: Path):
    return [folder / "long.parquet", folder / "short.parquet"]


def training(folder, name, seed=1):
    return rows_of(examples_to_train_on(folder / f"{name}.parquet", group(folder), seed=seed))


def said_by(examples):
    """Examples as query, positives, negatives and aspect."""
    rows = examples.to_pylist()
    return [(row["query"], row["positives"], row["negatives"], row.get("aspect")) for row in rows]


def rows_of(examples):
    """Examples of one positive and one negative as triplets of ids."""
    columns = (examples[name].to_pylist() for name in ("query", *LISTS))
    return [(query, *positives, *negatives) for query, positives, negatives in zip(*columns, strict=True)]


def examples_of(rows):
    """Triplets of ids as examples, as a sampled set is read."""
    lists = {name: pa.array([[row[place]] for row in rows]) for place, name in enumerate(LISTS, start=1)}
    return pa.table({"query": [row[0] for row in rows], **lists, "order": pa.array(range(len(rows)), pa.uint64())})


def write_all_documents(folder, examples, texts=(), threads=1):
    """Write the documents of examples; return the rows of each bucket."""
    papers = folder / "papers"
    write_documents(folder / "documents", "training_documents", documents_of(examples), papers, texts, threads=threads)
    files = sorted((folder / "documents").iterdir())
    return [read_table(file, "training_documents") for file in files]


def documents(folder, rows, *, threads=2):
    """The documents that are written for triplets, by their ids."""
    written = [
        row for bucket in write_all_documents(folder, examples_of(rows), threads=threads) for row in bucket.to_pylist()
    ]
    return {row["corpusid"]: (row["title"], row["abstract"]) for row in written}


def written(folder, sets, of=None):
    """The examples that are written for a group, or for one of its sets."""
    files = {"output": folder / "examples.parquet", "documents": folder / "documents"}
    materialise(sets, triplets=of, papers=folder / "papers", seed=1, threads=1, **files)
    return read_table(files["output"], "training_examples" if of else "validation_examples")


@pytest.mark.parametrize("relabel", [*LARGE, lambda paper: 2**63 - 61 + paper])
def test_texts_go_with_large_ids_too(tmp_path, relabel):
    papers = {relabel(paper): (f"title {paper}", f"abstract {paper}") for paper in PAPERS}
    write_bucket(tmp_path, papers)
    rows = [(relabel(query), relabel(60), relabel(query + 1)) for query in range(1, 50)]
    wanted = {relabel(paper) for paper in (*range(1, 51), 60)}
    assert documents(tmp_path, rows) == {paper: papers[paper] for paper in wanted}


def test_all_sets_are_cut_to_the_size_of_the_smallest_by_whole_queries_but_the_last(folder):
    assert len(training(folder, "long")) == len(training(folder, "short")) == 9
    queries = [row[0] for row in training(folder, "long")]
    assert [len(list(block)) for _, block in groupby(queries)] == [4, 4, 1]


def test_the_triplets_of_a_query_follow_each_other_and_queries_come_at_random(folder):
    long = folder / "long.parquet"
    one, again, other = (examples_to_train_on(long, [long], seed)["query"].to_pylist() for seed in (1, 1, 2))
    assert one == again != other
    order = [query for query, _ in groupby(one)]
    assert sorted(order) == list(range(1, 11))
    assert order != sorted(order)


def test_the_common_validation_set_holds_each_triplet_of_all_sets_once_and_no_query_trains_and_validates(folder):
    found = rows_of(examples_to_validate_on(group(folder), seed=1))
    assert sorted(found) == [(11, 12, 13), (11, 12, 14), (15, 16, 17)]
    assert not {row[0] for row in training(folder, "long")} & {row[0] for row in found}


def test_validation_triplets_of_several_sets_are_cut_to_equal_sizes(folder):
    write_triplets(folder / "long.parquet", [(11, 12, paper, "validation") for paper in range(20, 40)])
    found = examples_to_validate_on(group(folder), seed=1)
    assert len(found) == 4


def test_sets_too_large_to_be_ordered_at_once_are_written_as_smaller_ones_are(folder, monkeypatch):
    def write_all():
        both = [written(folder, group(folder), of=of).to_pylist() for of in (None, folder / "long.parquet")]
        return both, read_table(folder / "documents", "training_documents").to_pylist()

    at_once = write_all()
    monkeypatch.setattr(texts, "SHUFFLED_AT_ONCE", 3)
    assert write_all() == at_once
    assert not list(folder.glob(".*"))


def test_a_set_without_examples_of_a_split_is_named_with_the_configuration_key(folder):
    write_triplets(folder / "short.parquet", [(1, 2, 3, "train")])
    with pytest.raises(InputError, match=r"short\.parquet: no validation example; .*queries\.validation"):
        examples_to_validate_on(group(folder), seed=1)
    write_triplets(folder / "none.parquet", [(11, 12, 13, "validation")])
    with pytest.raises(InputError, match=r"none\.parquet: no training example"):
        examples_to_train_on(folder / "long.parquet", [folder / "long.parquet", folder / "none.parquet"], 1)


@given(
    st.lists(st.tuples(*[st.sampled_from(PAPERS)] * 3), min_size=1, max_size=30),
    st.sets(st.sampled_from(PAPERS)),
    st.integers(1, 9),
)
def test_each_paper_of_the_triplets_is_there_once_with_its_texts(tmp_path, triplets, without_text, at_once):
    write_papers(tmp_path / "papers", without_text=without_text)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(texts, "PAPERS_IN_MEMORY", at_once)
        found = documents(tmp_path, triplets)
    named = {paper for triplet in triplets for paper in triplet}
    assert found == {p: (f"title {p}", None if p in without_text else f"abstract {p}") for p in named}


def test_the_documents_lie_in_the_buckets_of_the_papers_whatever_the_threads(folder):
    files = []
    for threads in (1, 4):
        documents(folder, training(folder, "long"), threads=threads)
        files.append({path.name: path.read_bytes() for path in (folder / "documents").iterdir()})
    assert files[0] == files[1]
    assert sorted(files[0]) == ["0.parquet", "1.parquet", "2.parquet"]


def test_papers_without_any_text_or_record_are_named_and_nothing_is_written(folder):
    write_table(folder / "papers/0.parquet", "papers", papers_table({30: (None, None), 33: ("title 33", None)}))
    with pytest.raises(InputError, match=r"2 papers of the triplets have neither title nor .* them 30\."):
        documents(folder, [(1, 2, 30), (1, 33, 99)])
    assert {path.name for path in folder.iterdir()} == {"papers", "long.parquet", "short.parquet"}


def test_sets_of_examples_and_of_triplets_are_cut_to_the_same_number_of_documents(folder):
    # Nine triplets name 27 documents; examples of eight name 24 when there are three of them.
    many = [(query, "result", [20, 21], [30, 31, 32, 33, 34]) for query in range(1, 9)]
    path = write_sampled(folder / "many.parquet", many)
    examples = examples_to_train_on(path, [*group(folder), path], seed=1)
    assert len(examples) == 3
    assert examples["aspect"].to_pylist() == ["result"] * 3
    assert len(examples_to_train_on(folder / "long.parquet", [*group(folder), path], seed=1)) == 9


def test_examples_are_written_with_their_aspects_and_the_kinds_of_their_negatives(folder):
    path = write_sampled(folder / "some.parquet", [(1, "result", [20, 21], [30]), (1, "background", [22], [31, 32])])
    rows = written(folder, [path], path).to_pylist()
    assert {row["aspect"]: (row["positives"], row["negatives"], row["negative_kinds"]) for row in rows} == {
        "result": ([20, 21], [30], ["easy"]),
        "background": ([22], [31, 32], ["easy", "easy"]),
    }
    documents = read_table(folder / "documents", "training_documents")["corpusid"].to_pylist()
    assert sorted(documents) == [1, 20, 21, 22, 30, 31, 32]


def test_the_common_validation_set_holds_examples_beside_triplets_each_once(folder):
    few = [(15, None, [16], [17], "validation"), (19, None, [16], [18, 17, 1], "validation")]
    path = write_sampled(folder / "few.parquet", few)
    rows = [(15, 16, 17), (11, 12, 13), (11, 12, 14)]
    write_triplets(folder / "short.parquet", rows, split="validation")
    found = examples_to_validate_on([folder / "short.parquet", path], seed=1)
    expected = [(11, [12], [13]), (11, [12], [14]), (15, [16], [17]), (19, [16], [18, 17, 1])]
    assert sorted(said_by(found)) == [(*row, None) for row in expected]


def test_a_union_of_triplets_and_examples_counts_in_documents_and_validates_like_its_sets(folder):
    rows = [(1, "result", [20, 21], [30]), (12, "result", [13], [14, 15], "validation")]
    paths = [folder / "short.parquet", write_sampled(folder / "few.parquet", rows)]
    union = folder / "union.parquet"
    write_table(union, "sampled_examples", sample("union", block([1, 2, 3, 11, 12, 15], PAPERS, paths)).rows)
    validating = examples_to_validate_on([union], seed=1)
    expected = [(11, [12], [13], None), (12, [13], [14, 15], "result"), (15, [16], [17], None)]
    assert sorted(said_by(validating)) == expected
    # Nine triplets name 27 documents, and the example four more. The next of those that are cut off would be too much.
    assert len(examples_to_train_on(union, [union], seed=1)) == 10
    cut = examples_to_train_on(union, [folder / "short.parquet", union], seed=1)
    assert 23 < sum(1 + len(positives) + len(negatives) for _, positives, negatives, _ in said_by(cut)) <= 27


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
def searched(tmp_path):
    splits = {paper: "validation" if paper > 8 else "train" for paper in range(1, 11)}
    write_queries(tmp_path, splits)
    for bucket in (0, 1):
        write_bucket(tmp_path, {paper: texts for paper, texts in OF_CORPUS.items() if paper % 2 == bucket}, bucket)
    write_triplets(tmp_path / "triplets.parquet", [(paper, 10 + paper, 20 + paper, splits[paper]) for paper in splits])
    run(tmp_path, Searches(), "searches", texts=tmp_path / "texts.parquet")
    return tmp_path


def run(searched, asked, output, sources=(), texts=None):
    paths = [searched / f"{source}.parquet" for source in sources]
    return written_sample(searched, asked, paths, output=f"{output}.parquet", texts=texts)[0]


@given(WORDS, st.integers(1, 7), st.sets(st.sampled_from("abcdefgh")))
def test_texts_come_once_in_the_order_of_their_ids_and_are_found_again(tmp_path, words, at_once, asked):
    path = tmp_path / "texts.parquet"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(texts, "ROWS_AT_ONCE", at_once)
        batches = [batch for pair in words for batch in texts_table(*zip(pair), is_query=False).to_batches()]
        written = write_texts(path, batches)
        rows = read_table(path, "sampled_texts").to_pylist()
        expected = {document(*pair): (*pair, False) for pair in words}
        assert written == len(rows)
        assert {row["text"]: (row["title"], row["abstract"], row["is_query"]) for row in rows} == expected
        wanted = np.array(sorted(document(title) for title in asked), dtype=np.int64)
        found = np.zeros(len(wanted), dtype=bool)
        rows = [row for batch in find_texts(wanted, found, [path, path]) for row in batch.to_pylist()]
    assert [row["text"] for row in rows] == [id_ for id_ in wanted if id_ in expected]
    assert found.tolist() == [id_ in expected for id_ in wanted]


def test_brought_texts_stand_among_the_documents_beside_the_papers(searched):
    files = {"output": searched / "examples.parquet", "documents": searched / "documents"}
    sets = [searched / "searches.parquet", searched / "texts.parquet"]
    materialise(sets, triplets=sets[0], papers=searched / "papers", seed=1, threads=2, **files)
    assert sorted(path.name for path in (searched / "documents").iterdir()) == ["0.parquet", "1.parquet"]
    written = read_table(searched / "documents", "training_documents").to_pylist()
    found = {row["corpusid"]: (row["title"], row["abstract"], row["is_query"]) for row in written}
    searches = {query(words): (words, None, True) for words, split in SEARCHES.items() if split == "train"}
    papers = {paper: (*OF_CORPUS[paper], False) for paper in range(1, 9)}
    assert found == searches | papers | {document("brought", "elsewhere"): ("brought", "elsewhere", False)}
    assert len(written) == len(found)


def test_buckets_of_documents_say_what_a_query_is_also_empty_ones_but_not_where_all_are_papers(searched):
    of_searches, of_papers = (
        examples_to_train_on(path, [path], seed=1)
        for path in (searched / "searches.parquet", searched / "triplets.parquet")
    )
    nothing = pa.array([[]], pa.list_(pa.int64()))
    alone = of_searches.slice(0, 1).set_column(of_searches.column_names.index("positives"), "positives", nothing)
    buckets = write_all_documents(searched, alone, [searched / "texts.parquet"])
    assert sorted(map(len, buckets)) == [0, 1]
    assert all("is_query" in bucket.column_names for bucket in buckets)
    for bucket in write_all_documents(searched, of_papers, [searched / "texts.parquet"]):
        assert bucket.column_names == ["corpusid", "title", "abstract"]


def test_a_text_that_no_table_holds_is_named_and_nothing_is_written(searched):
    rows = examples_to_train_on(searched / "searches.parquet", [searched / "searches.parquet"], seed=1)
    with pytest.raises(InputError, match=r"9 texts of the examples are in no table sampled_texts \(none are given\)"):
        write_all_documents(searched, rows)
    assert not (searched / "documents").exists()


def test_sets_made_of_others_keep_queries_that_are_texts_beside_papers(searched):
    union = run(searched, sampler("union", of=["searches", "triplets"]), "union", ["searches", "triplets"])
    assert sorted(union["query"].to_pylist()) == sorted([*map(query, SEARCHES), *range(1, 11)])
    assert {row["query"]: row["split"] for row in union.to_pylist() if row["query"] < 0} == {
        query(words): split for words, split in SEARCHES.items()
    }
    half = run(searched, sampler("subset", of="searches", share=0.5), "half", ["searches"])
    assert sorted(half["split"].to_pylist()) == ["train"] * 4 + ["validation"]
    assert set(half["query"].to_pylist()) <= set(map(query, SEARCHES))
    found = examples_to_validate_on([searched / "triplets.parquet", searched / "searches.parquet"], seed=1)
    assert sorted(found["query"].to_pylist()) == sorted([query("search 9"), query("search 10"), 9, 10])


def test_checks_count_texts_as_texts_and_their_queries_as_queries(searched):
    checks, per_query, _ = written_checks(searched, searched / "searches.parquet")
    assert found_by(checks) == {
        ("collision", "pairs"): (0, 20),
        ("no text", "query"): (0, 10),
        ("no text", "positive"): (0, 11),
        ("no text", "negative"): (0, 0),
    }
    assert [tuple(row.values()) for row in per_query] == [("train", 1, 8), ("validation", 1, 2)]
    run(searched, sampler("union", of=["searches", "triplets"]), "union", ["searches", "triplets"])
    checks, per_query, _ = written_checks(searched, searched / "union.parquet")
    assert found_by(checks)["no text", "positive"] == (0, 21)
    assert per_query[0] == {"split": "train", "count": 1, "queries": 16}
