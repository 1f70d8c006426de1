"""The search for neighbours: who is searched, in what order, and what is refused."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.neighbours.small_searches import LINE, read_counts, read_rows, search, write_queries, write_vectors
from tests.papers import papers_table
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.embeddings import SearchSettings
from cocite.core.errors import InputError
from cocite.core.tables import TABLES
from cocite.core.tables.files import read_table, write_table
from cocite.neighbours.searching import NOT_REACHED, NOT_SEARCHED, queries_at_once, search_neighbours


def test_neighbours_come_by_distance_and_ties_by_corpus_id(tmp_path):
    found = search(tmp_path, LINE, {1: "train"}, k=3)
    assert found == [(1, 1, 2, 9.0), (1, 2, 4, 9.0), (1, 3, 3, 25.0)]


def write_papers(folder: Path, abstracts: dict[int, str | None]) -> Path:
    texts = {paper: (f"title {paper}", abstract) for paper, abstract in abstracts.items()}
    write_table(folder / "papers.parquet", "papers", papers_table(texts))
    return folder / "papers.parquet"


def test_among_papers_with_a_text_only_those_have_a_rank(tmp_path):
    papers = write_papers(tmp_path, {**dict.fromkeys(LINE, "an abstract"), 2: None})
    found = search(tmp_path, LINE, {1: "train", 2: "train"}, k=2, papers=[papers])
    assert [row[:3] for row in found] == [(1, 1, 4), (1, 2, 3)]  # paper 2, as near as 4, has no abstract


def test_among_the_papers_of_triplets_only_those_have_a_rank(tmp_path):
    rows = {"query": [1, 1], "positive": [3, 3], "negative": [4, 9], "split": ["train"] * 2}
    columns = {name: TABLES["triplets"].columns[name].type for name in TABLES["triplets"].columns}
    table = pa.table({name: pa.array(rows.get(name, [None] * 2), type_) for name, type_ in columns.items()})
    pq.write_table(table, tmp_path / "triplets.parquet")
    found = search(tmp_path, LINE, {1: "train", 2: "train"}, k=1, papers=[tmp_path / "triplets.parquet"])
    assert [row[:3] for row in found] == [(1, 1, 4)]  # 2 is as near, and in no triplet


def test_papers_without_a_vector_do_no_harm_whatever_their_ids(tmp_path):
    papers = write_papers(tmp_path, dict.fromkeys([*LINE, 2**31, 2**31 + 8, 2**40, 2**62], "an abstract"))
    assert search(tmp_path, LINE, {1: "train"}, papers=[papers]) == search(tmp_path, LINE, {1: "train"})


def test_each_shard_holds_the_queries_of_one_remainder(tmp_path):
    splits = dict.fromkeys(LINE, "train")
    whole = search(tmp_path, LINE, splits)
    shards = [search(tmp_path, LINE, splits, shard=(shard, 2)) for shard in range(2)]
    assert shards == [[row for row in whole if row[0] % 2 == shard] for shard in range(2)]


def test_a_shard_without_queries_is_an_empty_table(tmp_path):
    assert search(tmp_path, LINE, {1: "train"}, shard=(0, 2)) == []


def test_queries_without_a_vector_are_counted(tmp_path):
    tables = write_vectors(tmp_path, LINE), write_queries(tmp_path, {1: "train", 8: "train", 9: "validation"})
    where = {name: tmp_path / f"{name}.parquet" for name in ("state", "output", "omissions")}
    search_neighbours(*tables, SearchSettings(metric="l2", k=2), memory_mb=1000, threads=1, **where)
    assert read_counts(tmp_path) == {NOT_SEARCHED: 2, NOT_REACHED: 0}
    assert len(read_rows(where["output"])) == 2


def test_papers_that_are_kept_out_are_not_queries(tmp_path):
    assert {row[0] for row in search(tmp_path, LINE, {1: "train", 8: "excluded", 9: "holdout"})} == {1}


def test_the_largest_k_leaves_a_paper_that_is_no_neighbour(tmp_path):
    assert len(search(tmp_path, LINE, {1: "train"}, k=3)) == 3


LEAK = "holds 1 papers that are kept out, 2 among them"
WRONG = r"graph_embeddings\.parquet: the vector of the paper or text 6 is not finite or is too"


@pytest.mark.parametrize(
    ("vectors", "splits", "changed", "message"),
    [
        ({}, {}, {"shard": (2, 2)}, "--shard is 2, but of 2 shards it must be from 0 to 1"),
        ({}, {2: "holdout"}, {}, LEAK),
        ({}, {2: "excluded"}, {}, LEAK),
        ({}, {}, {"k": 4}, r"neighbours\.k is 4, but .* holds 5 papers"),
        ({-1: [1.0, 1.0]}, {}, {}, r"graph_embeddings\.parquet: holds the corpus id -1; ids must lie between 0"),
        *(({6: [1.0, wrong]}, {}, {"metric": "cosine"}, WRONG) for wrong in (float("nan"), float("inf"), 1e20)),
        *(({6: [1.0, wrong]}, {}, {"metric": "l2"}, WRONG) for wrong in (float("nan"), float("inf"), 1e20)),
        *(({6: [1.0, wrong]}, {}, {"metric": "inner_product"}, WRONG) for wrong in (float("nan"), float("inf"), 1e20)),
    ],
)
def test_what_cannot_be_searched_is_refused_and_nothing_is_written(tmp_path, vectors, splits, changed, message):
    with pytest.raises(InputError, match=message):
        search(tmp_path, {**LINE, **vectors}, {1: "train", **splits}, **changed)
    assert not (tmp_path / "neighbours.parquet").exists()


@pytest.mark.parametrize("largest", [2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1])
def test_the_largest_ids_are_found(tmp_path, largest):
    vectors = {**LINE, largest: [1.0, 0.0], largest - 1: [2.0, 0.0]}
    assert search(tmp_path, vectors, {largest: "train"}, k=2) == [(largest, 1, 1, 1.0), (largest, 2, largest - 1, 1.0)]


def test_among_papers_with_a_text_large_ids_are_found_too(tmp_path):
    vectors = {2**40 + paper: vector for paper, vector in LINE.items()}
    papers = write_papers(tmp_path, {**dict.fromkeys(vectors, "an abstract"), 2**40 + 2: None})
    found = search(tmp_path, vectors, {2**40 + 1: "train"}, k=2, papers=[papers])
    assert found == [(2**40 + 1, 1, 2**40 + 4, 9.0), (2**40 + 1, 2, 2**40 + 3, 25.0)]


def test_more_memory_takes_more_queries_at_once_and_too_little_still_one():
    """A query takes 15,000 keys and two vectors, 126,144 bytes; a thread 3 × 4096 vectors and 256 × 4096 products."""
    threads_mb = 2 * 41.943040
    assert queries_at_once(5000, 768, 400 + threads_mb + 126.145, 2) == 1000
    assert queries_at_once(5000, 768, 100, 2) == 1


def run(folder: Path, command: str, settings: dict[str, object], *options: str) -> None:
    arguments = [command, "--vectors", folder / "graph_embeddings.parquet", "--settings", json.dumps(settings)]
    CliRunner().invoke(app, ["neighbours", *map(str, arguments), "--threads", "1", *options], catch_exceptions=False)


def test_the_commands_build_search_and_measure_an_index(tmp_path):
    write_vectors(tmp_path, LINE)
    queries = ["--queries", str(write_queries(tmp_path, {1: "train", 9: "train"}))]
    index, quality, found, omissions = (str(tmp_path / name) for name in ("index", "quality", "found", "omissions"))
    asked = {"metric": "l2", "index": {"kind": "ivf", "nprobe": 1}, "k": 2}
    run(tmp_path, "index", {"metric": "l2", "index": {"kind": "ivf", "nlist": 1}}, "--seed", "1", "--output", index)
    written = ["--output", found, "--omissions", omissions, "--state", str(tmp_path / "state")]
    shard = ["--shard", "1", "2", "--memory-mb", "1000"]
    run(tmp_path, "search", asked, *queries, *shard, "--index", index, *written)
    run(tmp_path, "measure", asked, *queries, "--index", index, "--sample", "3", "--seed", "1", "--output", quality)
    assert read_rows(Path(found)) == [(1, 1, 2, 9.0), (1, 2, 4, 9.0)]
    assert read_table(Path(omissions), "omissions").to_pylist() == [
        {"reason": NOT_REACHED, "count": 0},
        {"reason": NOT_SEARCHED, "count": 1},
    ]
    (row,) = read_table(Path(quality), "search_quality").to_pylist()
    assert (row["k"], row["queries"], row["recall"]) == (2, 1, 1.0)
