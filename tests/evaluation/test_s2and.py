"""S2AND: its folder, the clustering of signatures by embeddings alone, and B³."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluation import folders
from tests.evaluation.folders import BenchmarkFolder, score_rows, scores_of

from cocite.config.benchmarks import TASKS
from cocite.evaluation.benchmark import Benchmark
from cocite.evaluation.metrics import b3_statistic
from cocite.evaluation.scored import UnscorableError, Vectors
from cocite.evaluation.scoring import score_task
from cocite.evaluation.supervised import clusters_up_to, cosine_distances

TASK = TASKS["s2and_qian"]
RUN = replace(folders.RUN, modes=["compat", "correct"], evaluation_seeds=[3, 4])


@pytest.fixture
def s2and(tmp_path):
    return BenchmarkFolder(tmp_path, "s2and")


def authors_of(signatures):
    """The table of authors of some signatures."""
    authors = {author: {"signature_ids": []} for *_, author in signatures.values()}
    for signature, (*_, author) in signatures.items():
        authors[author]["signature_ids"].append(signature)
    return authors


def write_dataset(folder, signatures, *, papers=None, authors=None):
    """Signatures as paper, block and author by id."""
    papers = papers or {paper: {"title": f"t{paper}"} for paper, *_ in signatures.values()}
    tables = {"papers": {paper: {"paper_id": paper, **row} for paper, row in papers.items()}}
    placed = {name: (int(paper), {"block": block}) for name, (paper, block, _) in signatures.items()}
    tables["signatures"] = {name: {"paper_id": paper, "author_info": info} for name, (paper, info) in placed.items()}
    tables["clusters"] = authors or authors_of(signatures)
    for table, members in tables.items():
        folder.write_text(f"qian/qian_{table}.json", json.dumps(members))


def blocks(count):
    """Blocks of four signatures, two for each of two authors."""
    return {
        f"s{block}-{n}": (str(10 * block + n), f"j smith {block}", f"a{block}-{n % 2}")
        for block in range(count)
        for n in range(4)
    }


def test_a_signature_has_a_paper_a_block_and_an_author_and_a_tenth_of_the_blocks_is_for_the_test(s2and):
    signatures = blocks(20)
    write_dataset(s2and, signatures)
    found = s2and.prepare().signatures["s2and_qian"]
    assert found["s1-2"][:3] == ("12", "j smith 1", "a1-0")
    assert s2and.documents()["12"] == ("t12", None)
    assert s2and.omitted()["task s2and_pubmed absent"] == 1
    assert json.loads((s2and.tables / "sizes.json").read_text())["tasks"] == {"s2and_qian": 80}
    splits = {block: split for _, block, _, split in found.values()}
    assert Counter(splits.values()) == {"train": 18, "test": 2}
    write_dataset(s2and, dict(reversed(signatures.items())))
    assert s2and.prepare().signatures["s2and_qian"] == found  # whatever their order in the file


def test_what_cannot_be_scored_is_counted(s2and):
    signatures = blocks(50) | {"lone": ("7", "j smith 0", "nobody")}
    authors = authors_of(signatures) | {"nobody": {"signature_ids": []}, "second": {"signature_ids": ["s0-1"]}}
    papers = {paper: {"title": "t"} for paper, _, _ in signatures.values() if paper != "490"} | {"9999": {"title": "t"}}
    write_dataset(s2and, signatures, papers=papers, authors=authors)
    assert set(s2and.prepare("s2and_qian").signatures["s2and_qian"]) == signatures.keys() - {"lone", "s49-0"}
    assert s2and.omitted() == {
        "task s2and_qian: signature without an author": 1,
        "task s2and_qian: signature of a second author (the first counts)": 1,
        "task s2and_qian: document without text": 1,
        "document that no task asks for": 2,  # one is no signature's, one only of the signature without an author
    }


@pytest.mark.parametrize(
    ("table", "text", "message"),
    [
        ("signatures", '{"s0-1": {"paper_id": 1}}', "qian_signatures.json, s0-1: the key 'author_info' is missing"),
        ("signatures", '{"s0-1": {"paper_id": 1, "author_info": {}}}', "s0-1, author_info: the key 'block' is missing"),
        ("signatures", "{}", "qian_signatures.json: has 0 blocks; two are needed"),
        ("clusters", '{"c": {"signature_ids": "s"}}', "c: signature_ids must be a list of ids, not 's'"),
        ("clusters", "[]", "qian_clusters.json: not a JSON object"),
        ("papers", '{"1": null}', "qian_papers.json, 1: must be an object, not None"),
        ("papers", "{}", "no text for the document '0'"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(s2and, table, text, message):
    write_dataset(s2and, blocks(2))
    s2and.write_text(f"qian/qian_{table}.json", text)
    s2and.refuses(message, "s2and_qian")


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from("xyz"), st.integers(1, 3)), min_size=1, max_size=12))
def test_b3_is_the_mean_overlap_of_each_signatures_cluster_and_author_as_often_as_it_is_drawn(rows):
    named, counts = [row[:2] for row in rows], [count - 1 for *_, count in rows[:-1]] + [1]
    precision, recall = (
        np.average(
            [named.count(mine) / [one[side] for one in named].count(mine[side]) for mine in named], weights=counts
        )
        for side in (1, 0)
    )
    expected = {"b3_precision": precision, "b3_recall": recall, "b3_f1": 2 * precision * recall / (precision + recall)}
    for metric in TASK.metrics:
        found = b3_statistic([[author] for author, _ in named], [[cluster] for _, cluster in named], metric)
        assert found(np.array([counts])) == pytest.approx(100 * expected[metric])


def test_distances_are_those_of_cosines_and_one_to_a_vector_of_zeros():
    distances = cosine_distances(np.array([[1.0, 0.0], [3.0, 4.0], [0.0, 0.0]]))
    assert distances == pytest.approx([1 - 0.6, 1, 1])


def test_average_linkage_merges_by_the_mean_distance_of_all_pairs():
    # b is at .1 of a; c at .2 of b and .4 of a, so at .3 of both on average.
    merges = {"x": np.array([[0, 1, 0.1, 2], [2, 3, 0.3, 3]])}
    signatures = {"x": ["a", "b", "c"], "y": ["d"]}
    assert clusters_up_to(0.25, signatures, merges) == {"a": "x:1", "b": "x:1", "c": "x:2", "d": "y:1"}
    assert len(set(clusters_up_to(0.3, signatures, merges).values())) == 2
    assert len(set(clusters_up_to(0.05, signatures, merges).values())) == 4


def benchmark_with(vectors_of_authors, noise=0.01):
    """A prepared task of blocks, and vectors of their papers around those of their authors."""
    signatures = {name: (*row, "test" if row[1].endswith("0") else "train") for name, row in blocks(20).items()}
    matrix = np.array([vectors_of_authors(author) for _, _, author, _ in signatures.values()], dtype=float)
    matrix += np.random.default_rng(1).normal(0, noise, matrix.shape)
    rows = {document: row for row, (document, *_) in enumerate(signatures.values())}
    return Benchmark(signatures={TASK.name: signatures}), Vectors(rows, matrix.astype(np.float32))


def test_authors_whose_papers_lie_apart_are_told_apart_at_a_distance_learnt_elsewhere():
    scored = score_task(TASK, *benchmark_with(lambda author: [1, 0] if author.endswith("0") else [0, 1]), RUN)
    rows = score_rows(scored)
    assert [(row["metric"], row["evaluation_seed"], row["mode"], row["value"]) for row in rows] == [
        (metric, 3, "both", 100.0) for metric in ("b3_f1", "b3_precision", "b3_recall")
    ]
    assert {row["scored"] for row in rows} == {8}  # two test blocks of four signatures
    assert len(scored.outcomes) == 3 * 8


def test_signatures_without_vectors_are_left_out_and_blocks_to_learn_from_are_needed():
    benchmark, vectors = benchmark_with(lambda author: [1, 0], noise=0.0)
    expected = {"b3_f1": 200 / 3, "b3_precision": 50, "b3_recall": 100}  # a cluster a block, of two authors
    assert scores_of(score_task(TASK, benchmark, vectors, RUN)) == pytest.approx(expected)

    def scored_on(documents):
        known = Vectors({name: row for name, row in vectors.rows.items() if name in documents}, vectors.matrix)
        return score_task(TASK, benchmark, known, replace(RUN, largest_missing=1.0))

    row = score_rows(scored_on(vectors.rows.keys() - {"0"}))[0]
    assert [row[name] for name in ("documents", "missing", "scored", "unscored")] == [80, 1, 7, 1]
    tested = {document for document, _, _, split in benchmark.signatures[TASK.name].values() if split == "test"}
    with pytest.raises(UnscorableError, match="no signature with a vector to train on"):
        scored_on(tested)
