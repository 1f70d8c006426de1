"""The search for neighbours: who is searched, in what order, and what is refused."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.neighbours.small_searches import LINE, read_counts, read_rows, search, write_queries, write_vectors
from tests.papers import papers_table

from cocite.config.embeddings import SearchSettings
from cocite.core.errors import InputError
from cocite.core.tables import TABLES
from cocite.core.tables.files import write_table
from cocite.neighbours.searching import NOT_REACHED, NOT_SEARCHED, queries_at_once, search_neighbours


def test_neighbours_come_by_distance_and_ties_by_corpus_id(tmp_path: Path) -> None:
    found = search(tmp_path, LINE, {1: "train"}, k=3)
    assert found == [(1, 1, 2, 9.0), (1, 2, 4, 9.0), (1, 3, 3, 25.0)]


def test_a_query_is_not_its_own_neighbour_even_among_equal_vectors(tmp_path: Path) -> None:
    found = search(tmp_path, {paper: [1.0, 2.0] for paper in range(1, 9)}, {4: "train"}, k=5)
    assert [row[2] for row in found] == [1, 2, 3, 5, 6]
    assert {row[3] for row in found} == {0.0}


def test_cosine_is_blind_to_length(tmp_path: Path) -> None:
    vectors = {1: [1.0, 0.0], 2: [90.0, 0.0], 3: [0.6, 0.8], 4: [0.0, 5.0], 5: [-2.0, 0.0]}
    found = search(tmp_path, vectors, {1: "validation"}, metric="cosine", k=3)
    assert [row[2] for row in found] == [2, 3, 4]
    assert [row[3] for row in found] == pytest.approx([0.0, 0.4, 1.0], abs=1e-7)


def test_inner_product_favours_long_vectors(tmp_path: Path) -> None:
    vectors = {1: [1.0, 0.0], 2: [1.0, 0.0], 3: [9.0, 9.0], 4: [-1.0, 0.0], 5: [0.0, 3.0]}
    found = search(tmp_path, vectors, {1: "train"}, metric="inner_product", k=3)
    assert found == [(1, 1, 3, -9.0), (1, 2, 2, -1.0), (1, 3, 5, 0.0)]


def write_papers(folder: Path, abstracts: dict[int, str | None]) -> Path:
    texts = {paper: (f"title {paper}", abstract) for paper, abstract in abstracts.items()}
    write_table(folder / "papers.parquet", "papers", papers_table(texts))
    return folder / "papers.parquet"


def test_among_papers_with_a_text_only_those_have_a_rank(tmp_path: Path) -> None:
    papers = write_papers(tmp_path, {**dict.fromkeys(LINE, "an abstract"), 2: None})
    found = search(tmp_path, LINE, {1: "train", 2: "train"}, k=2, papers=[papers])
    assert [row[:3] for row in found] == [(1, 1, 4), (1, 2, 3)]  # paper 2, as near as 4, has no abstract


def test_among_the_papers_of_triplets_only_those_have_a_rank(tmp_path: Path) -> None:
    rows = {"query": [1, 1], "positive": [3, 3], "negative": [4, 9], "split": ["train"] * 2}
    columns = {name: TABLES["triplets"].columns[name].type for name in TABLES["triplets"].columns}
    table = pa.table({name: pa.array(rows.get(name, [None] * 2), type_) for name, type_ in columns.items()})
    pq.write_table(table, tmp_path / "triplets.parquet")
    found = search(tmp_path, LINE, {1: "train", 2: "train"}, k=1, papers=[tmp_path / "triplets.parquet"])
    assert [row[:3] for row in found] == [(1, 1, 4)]  # 2 is as near, and in no triplet


def test_papers_without_a_vector_do_no_harm_whatever_their_ids(tmp_path: Path) -> None:
    papers = write_papers(tmp_path, dict.fromkeys([*LINE, 2**31, 2**31 + 8, 2**40, 2**62], "an abstract"))
    assert search(tmp_path, LINE, {1: "train"}, papers=[papers]) == search(tmp_path, LINE, {1: "train"})


def test_a_shard_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--shard is 2, but of 2 shards it must be from 0 to 1"):
        search(tmp_path, LINE, {1: "train"}, shard=(2, 2))


def test_each_shard_holds_the_queries_of_one_remainder(tmp_path: Path) -> None:
    splits = dict.fromkeys(LINE, "train")
    whole = search(tmp_path, LINE, splits)
    shards = [search(tmp_path, LINE, splits, shard=(shard, 2)) for shard in range(2)]
    assert shards == [[row for row in whole if row[0] % 2 == shard] for shard in range(2)]


def test_a_shard_without_queries_is_an_empty_table(tmp_path: Path) -> None:
    assert search(tmp_path, LINE, {1: "train"}, shard=(0, 2)) == []


def test_queries_without_a_vector_are_counted(tmp_path: Path) -> None:
    tables = write_vectors(tmp_path, LINE), write_queries(tmp_path, {1: "train", 8: "train", 9: "validation"})
    where = {name: tmp_path / f"{name}.parquet" for name in ("state", "output", "omissions")}
    search_neighbours(*tables, SearchSettings(metric="l2", k=2), memory_mb=1000, threads=1, **where)
    assert read_counts(tmp_path) == {NOT_SEARCHED: 2, NOT_REACHED: 0}
    assert len(read_rows(where["output"])) == 2


def test_papers_that_are_kept_out_are_not_queries(tmp_path: Path) -> None:
    assert {row[0] for row in search(tmp_path, LINE, {1: "train", 8: "excluded", 9: "holdout"})} == {1}


@pytest.mark.parametrize("split", ["holdout", "excluded"])
def test_a_paper_that_is_kept_out_in_the_index_is_refused(tmp_path: Path, split: str) -> None:
    with pytest.raises(InputError, match=r"holds 1 papers that are kept out, 2 among them"):
        search(tmp_path, LINE, {1: "train", 2: split})
    assert not (tmp_path / "neighbours.parquet").exists()


def test_k_must_leave_a_paper_that_is_no_neighbour(tmp_path: Path) -> None:
    assert len(search(tmp_path, LINE, {1: "train"}, k=3)) == 3
    with pytest.raises(InputError, match=r"neighbours\.k is 4, but .* holds 5 papers"):
        search(tmp_path, LINE, {1: "train"}, k=4)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), 1e20])
@pytest.mark.parametrize("metric", ["cosine", "l2", "inner_product"])
def test_a_vector_that_is_not_finite_or_too_long_is_refused(tmp_path: Path, metric: str, wrong: float) -> None:
    with pytest.raises(InputError, match=r"graph_embeddings\.parquet: the vector of paper 6 is not finite or is too"):
        search(tmp_path, {**LINE, 6: [1.0, wrong]}, {1: "train"}, metric=metric)


def test_a_negative_id_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"graph_embeddings\.parquet: holds the corpus id -1; ids must lie between 0"):
        search(tmp_path, {**LINE, -1: [1.0, 1.0]}, {1: "train"})


@pytest.mark.parametrize("largest", [2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1])
def test_the_largest_ids_are_found(tmp_path: Path, largest: int) -> None:
    vectors = {**LINE, largest: [1.0, 0.0], largest - 1: [2.0, 0.0]}
    assert search(tmp_path, vectors, {largest: "train"}, k=2) == [
        (largest, 1, 1, 1.0),
        (largest, 2, largest - 1, 1.0),
    ]


def test_among_papers_with_a_text_large_ids_are_found_too(tmp_path: Path) -> None:
    vectors = {2**40 + paper: vector for paper, vector in LINE.items()}
    papers = write_papers(tmp_path, {**dict.fromkeys(vectors, "an abstract"), 2**40 + 2: None})
    found = search(tmp_path, vectors, {2**40 + 1: "train"}, k=2, papers=[papers])
    assert found == [(2**40 + 1, 1, 2**40 + 4, 9.0), (2**40 + 1, 2, 2**40 + 3, 25.0)]


def test_more_memory_takes_more_queries_at_once_and_too_little_still_one() -> None:
    """A query takes 15,000 keys and two vectors, 126,144 bytes; a thread 3 × 4096 vectors and 256 × 4096 products."""
    threads_mb = 2 * 41.943040
    assert queries_at_once(5000, 768, 400 + threads_mb + 126.145, 2) == 1000
    assert queries_at_once(5000, 768, 100, 2) == 1
