"""Sets that are compared have one size and one validation set; their texts lie in shards that can be streamed."""

from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.large_ids import LARGE
from tests.papers import papers_table

from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, write_table
from cocite.triplets import texts
from cocite.triplets.sampled import LISTS
from cocite.triplets.texts import materialise, training_examples, validation_examples, write_documents

from .blocks import block, sample, write_triplets
from .blocks import write_examples as write_sampled
from .blocks import write_papers as write_bucket

PAPERS = range(1, 61)
LONG = [(query, 20 + query, 40 + i, "train") for query in range(1, 11) for i in range(4)]
SHORT = [(query, 30, 50 + i, "train") for query in range(1, 4) for i in range(3)]


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
    return rows_of(training_examples(folder / f"{name}.parquet", group(folder), seed=seed))


def rows_of(examples):
    """Examples of one positive and one negative as triplets of ids."""
    columns = (examples[name].to_pylist() for name in ("query", "positives", "negatives"))
    return [(query, *positives, *negatives) for query, positives, negatives in zip(*columns, strict=True)]


def examples_of(rows):
    """Triplets of ids as examples, as a sampled set is read."""
    lists = {name: pa.array([[row[place]] for row in rows]) for place, name in enumerate(LISTS, start=1)}
    return pa.table({"query": [row[0] for row in rows], **lists, "order": pa.array(range(len(rows)), pa.uint64())})


def documents(folder, rows, *, threads=2):
    """The documents that are written for triplets, by their ids."""
    write_documents(folder / "documents", "training_documents", examples_of(rows), folder / "papers", threads=threads)
    written = read_table(folder / "documents", "training_documents").to_pylist()
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
    one, again, other = (training_examples(long, [long], seed)["query"].to_pylist() for seed in (1, 1, 2))
    assert one == again != other
    order = [query for query, _ in groupby(one)]
    assert sorted(order) == list(range(1, 11))
    assert order != sorted(order)


def test_the_common_validation_set_holds_each_triplet_of_all_sets_once_and_no_query_trains_and_validates(folder):
    found = rows_of(validation_examples(group(folder), seed=1))
    assert sorted(found) == [(11, 12, 13), (11, 12, 14), (15, 16, 17)]
    assert not {row[0] for row in training(folder, "long")} & {row[0] for row in found}


def test_validation_triplets_of_several_sets_are_cut_to_equal_sizes(folder):
    write_triplets(folder / "long.parquet", [(11, 12, paper, "validation") for paper in range(20, 40)])
    found = validation_examples(group(folder), seed=1)
    assert len(found) == 4


def test_a_set_without_examples_of_a_split_is_named_with_the_configuration_key(folder):
    write_triplets(folder / "short.parquet", [(1, 2, 3, "train")])
    with pytest.raises(InputError, match=r"short\.parquet: no validation example; .*queries\.validation"):
        validation_examples(group(folder), seed=1)
    write_triplets(folder / "none.parquet", [(11, 12, 13, "validation")])
    with pytest.raises(InputError, match=r"none\.parquet: no training example"):
        training_examples(folder / "long.parquet", [folder / "long.parquet", folder / "none.parquet"], 1)


@given(triplets=st.lists(st.tuples(*[st.sampled_from(PAPERS)] * 3), min_size=1, max_size=30), at_once=st.integers(1, 9))
def test_each_paper_of_the_triplets_is_there_once_with_its_texts(tmp_path_factory, triplets, at_once):
    folder = tmp_path_factory.mktemp("texts")
    write_papers(folder / "papers")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(texts, "PAPERS_IN_MEMORY", at_once)
        found = documents(folder, triplets)
    assert found == {paper: (f"title {paper}", f"abstract {paper}") for triplet in triplets for paper in triplet}


def test_the_documents_lie_in_the_buckets_of_the_papers_whatever_the_threads(folder):
    files = []
    for threads in (1, 4):
        documents(folder, training(folder, "long"), threads=threads)
        files.append({path.name: path.read_bytes() for path in (folder / "documents").iterdir()})
    assert files[0] == files[1]
    assert sorted(files[0]) == ["0.parquet", "1.parquet", "2.parquet"]


def test_a_paper_without_abstract_has_its_title(folder):
    write_papers(folder / "papers", without_text=(30,))
    assert documents(folder, [(1, 2, 30)])[30] == ("title 30", None)


def test_papers_without_any_text_or_record_are_named_and_nothing_is_written(folder):
    write_table(folder / "papers/0.parquet", "papers", papers_table({30: (None, None), 33: ("title 33", None)}))
    with pytest.raises(InputError, match=r"2 papers of the triplets have neither title nor .* them 30\."):
        documents(folder, [(1, 2, 30), (1, 33, 99)])
    assert {path.name for path in folder.iterdir()} == {"papers", "long.parquet", "short.parquet"}


def test_sets_of_examples_and_of_triplets_are_cut_to_the_same_number_of_documents(folder):
    # Nine triplets name 27 documents; examples of eight name 24 when there are three of them.
    many = [(query, "result", [20, 21], [30, 31, 32, 33, 34]) for query in range(1, 9)]
    path = write_sampled(folder / "many.parquet", many)
    examples = training_examples(path, [*group(folder), path], seed=1)
    assert len(examples) == 3
    assert examples["aspect"].to_pylist() == ["result"] * 3
    assert len(training_examples(folder / "long.parquet", [*group(folder), path], seed=1)) == 9


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
    path = write_sampled(
        folder / "few.parquet", [(15, None, [16], [17], "validation"), (19, None, [16], [18, 17, 1], "validation")]
    )
    write_triplets(
        folder / "short.parquet", [(15, 16, 17, "validation"), (11, 12, 13, "validation"), (11, 12, 14, "validation")]
    )
    found = validation_examples([folder / "short.parquet", path], seed=1).to_pylist()
    assert sorted((row["query"], row["positives"], row["negatives"]) for row in found) == [
        (11, [12], [13]),
        (11, [12], [14]),
        (15, [16], [17]),
        (19, [16], [18, 17, 1]),
    ]


def test_a_union_of_triplets_and_examples_counts_in_documents_and_validates_like_its_sets(folder):
    rows = [(1, "result", [20, 21], [30]), (12, "result", [13], [14, 15], "validation")]
    paths = [folder / "short.parquet", write_sampled(folder / "few.parquet", rows)]
    union = folder / "union.parquet"
    write_table(union, "sampled_examples", sample("union", block([1, 2, 3, 11, 12, 15], PAPERS, paths)).rows)
    validating = validation_examples([union], seed=1)
    assert sorted(map(str, said_by(validating))) == [
        "(11, [12], [13], None)",
        "(12, [13], [14, 15], 'result')",
        "(15, [16], [17], None)",
    ]
    # Nine triplets name 27 documents, and the example four more. The next of those that are cut off would be too much.
    assert len(training_examples(union, [union], seed=1)) == 10
    cut = training_examples(union, [folder / "short.parquet", union], seed=1)
    assert 23 < sum(1 + len(positives) + len(negatives) for _, positives, negatives, _ in said_by(cut)) <= 27


def said_by(examples):
    """Examples as query, positives, negatives and aspect."""
    return list(zip(*(examples[name].to_pylist() for name in ("query", *LISTS, "aspect")), strict=True))
