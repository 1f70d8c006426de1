"""What an index finds and knows of papers, on the disk and searched by numpy alone, or of all held-out papers at once,
against a plain definition over all papers."""

import json
import subprocess
import sys

import numpy as np
import pytest
from bm25s import tokenize
from hypothesis import given
from hypothesis import strategies as st
from tests.retrieval.small import COLUMNS, LISTED, RUNS, VOTES, Small
from tests.rows import write_rows

from cocite.config.index import Lists
from cocite.core import searching
from cocite.core.errors import InputError
from cocite.graph.edges import edges_of_citations
from cocite.retrieval import building, candidates, search
from cocite.retrieval.building import build_index, in_8_bits
from cocite.retrieval.search import Index

WEIGHTS = {
    "rank": "learned",
    "known": "balanced",
    "weights": [{"name": name, "mean": 0.1, "deviation": 0.5, "weight": at + 1} for at, name in enumerate(COLUMNS)],
    "offsets": [{"from": 0, "to": 0, "more": 0, "balanced": 1, "less": 2}],
}


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Lists that are shorter than the corpus, and blocks that are."""
    for module in (search, candidates):
        monkeypatch.setattr(module, "LISTED", LISTED)
        monkeypatch.setattr(module, "VOTES", {name: search.Vote(*vote) for name, vote in VOTES.items()})
    monkeypatch.setattr(search, "ROWS_AT_ONCE", 13)
    monkeypatch.setattr(building, "PAPERS_AT_ONCE", 17)


def built(small, words=True):
    folders = {
        "papers": small.folder / "papers",
        "citations": small.folder / "citations",
        "links": small.folder / "edges",
    }
    given = {"settings": Lists(words=words), "models": ",".join(RUNS), "memory_mb": 500, "threads": 1}
    build_index([small.folder / name for name in RUNS], **folders, **given, output=small.folder / "index")
    (small.folder / "index/weights.json").write_text(json.dumps(WEIGHTS))
    return small.folder / "index"


@pytest.fixture
def small(tmp_path):
    """A small corpus whose papers are all searched, and whose vectors are those that 8 bits can hold."""
    small = Small(tmp_path)
    small.searched = small.ids
    small.citations = {each: sum(b == each for _, b in small.edges) for each in small.ids}
    for name, vectors in small.vectors.items():
        whole, _ = in_8_bits(np.array([*vectors.values()], np.float32))
        small.vectors[name] = dict(zip(vectors, whole.astype(float), strict=True))
    small.write()
    small.write_citations("citations/0.parquet", small.edges)
    (tmp_path / "edges").mkdir()
    (tmp_path / "edges.parquet").rename(tmp_path / "edges/0.parquet")
    return small


def text_of(small, paper):
    return " ".join(small.texts[paper])


def test_what_is_found_and_known_of_it_is_that_of_a_plain_definition(small):
    index = Index(built(small))
    found, expected = small.plain(LISTED, VOTES, papers=small.ids)
    for query in small.held_out:
        rows, values = index.candidates(text_of(small, query), index_vectors(small, query), without=query)
        assert {int(index.papers[row]) for row in rows} == found[query]
        for row, of_paper in zip(rows, values, strict=True):
            plain = expected[query, int(index.papers[row])]
            votes = [np.nan if plain[name] is None else plain[name] for name in VOTES]
            known = [*plain["cosines"], plain["words"], *votes, np.log1p(plain["citations"]), float(np.isnan(votes[0]))]
            known.append(np.nan if plain["age"] is None else np.log1p(plain["age"]))
            assert of_paper == pytest.approx(known, abs=1e-5, nan_ok=True)


def index_vectors(small, paper):
    return {
        name: (vectors[paper] / np.linalg.norm(vectors[paper])).astype(np.float32)
        for name, vectors in small.vectors.items()
    }


def test_only_the_papers_within_are_found_and_all_of_them(small):
    index = Index(built(small))
    query = small.held_out[0]
    text, vectors = text_of(small, query), index.vectors_of(query)
    everything = {each.paper for each in index.search(text, vectors, k=1000, without=query)}
    within = sorted(everything)[::3]
    assert {each.paper for each in index.search(text, vectors, k=1000, without=query, within=within)} == {*within}
    assert {paper for paper, _ in index.by_words(text, k=1000, within=within)} <= {*within}
    assert index.search(text, vectors, within=[]) == []


def test_the_score_is_the_sum_of_its_parts_and_offsets_are_by_setting(small):
    index = Index(built(small))
    query = small.held_out[0]
    rows, values = index.candidates(text_of(small, query), index_vectors(small, query), without=query)
    texts = values[:, :3]  # cosines and words count in deviations and by their ranks
    ranks = [[-np.log(2 + (texts[:, at] > row[at]).sum()) for at in range(3)] for row in texts]
    values = np.column_stack([(texts - texts.mean(axis=0)) / texts.std(axis=0), values[:, 3:], ranks])
    standard = np.nan_to_num((values - 0.1) / 0.5)
    for known, offset in (("more", 0), ("balanced", 1), ("less", 2), (None, 1)):
        scores = standard @ np.arange(1, 13) + offset * (index.citations[rows] == 0)
        best = sorted(zip(-scores, index.papers[rows], strict=True))[:5]
        found = index.search(text_of(small, query), index.vectors_of(query), k=5, known=known, without=query)
        assert [each.paper for each in found] == [paper for _, paper in best]
        assert [each.score for each in found] == pytest.approx([-score for score, _ in best], abs=1e-4)
        assert all(sum(each.parts.values()) == pytest.approx(each.score) for each in found)


def test_reciprocal_ranks_share_the_rank_of_equal_values():
    uncounted = [{**row, "weight": 0} for row in WEIGHTS["weights"][9:]]
    weights = search.Weights({**WEIGHTS, "rank": "reciprocal", "weights": WEIGHTS["weights"][:8] + uncounted})
    values = np.array([[3.0, 1, 1, 1, 1, 1, 0, 0], [1, 1, np.nan, 1, 1, 1, 0, 0], [1, 2, 1, 1, 1, 1, 0, 0]])
    parts = weights.parts(values, "more")
    assert parts["similarity"] == pytest.approx([1 / 61 + 2 / 62, 1 / 62 + 2 / 62, 1 / 62 + 2 / 61])
    assert parts["words"] == pytest.approx([3 / 61, 0, 3 / 61])


def test_lists_of_vectors_miss_little_and_all_of_them_nothing(tmp_path, monkeypatch):
    folder = tmp_path / "vectors"
    random = np.random.default_rng(1)
    ids = np.arange(2000) * 3
    matrix = random.standard_normal((len(ids), 16)).astype(np.float32)
    monkeypatch.setattr(building, "ALL_IN_ONE", 100)
    blocks = [(np.arange(len(ids)), matrix.astype(float))]
    monkeypatch.setattr(building, "vector_blocks", lambda files, given, size: blocks)
    monkeypatch.setattr(building, "count_rows", lambda files: len(ids))
    building._write_vectors(tmp_path, ids, folder)
    vectors = search.Vectors(folder)
    assert len(vectors.starts) == 46
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    for probes, least in ((45, 0.97), (22, 0.85)):
        monkeypatch.setattr(search, "NPROBE", probes)
        shares = []
        for query in random.standard_normal((30, 16)).astype(np.float32):
            best = set(np.argsort(-(unit @ query))[:20].tolist())
            shares.append(len(best & set(vectors.nearest(query, 20).tolist())) / 20)
        assert np.mean(shares) >= least


def test_a_query_without_a_known_word_is_answered_by_vectors(small):
    index = Index(built(small))
    query = small.held_out[0]
    found = index.search("unheard the of", index.vectors_of(query))
    assert query in {each.paper for each in found}
    assert {each.facts["words"] for each in found} == {None}
    assert {each.parts["words"] for each in found} == {0.0}
    assert len(index.search("", index.vectors_of(query))) == 20


def test_what_is_not_known_of_a_query_or_a_paper_is_none(small):
    query, other = small.held_out[:2]
    small.texts[query] = small.texts[other] = ("unheard", "unseen")
    for vectors in small.vectors.values():
        del vectors[other]
    index = Index(built(small.write()))
    found = {each.paper: each for each in index.search("unheard", index_vectors(small, query), k=99, without=query)}
    assert found[other].facts["cosine"] is None
    assert found[other].facts["words"] == 1
    alone = index.search("unheard", index_vectors(small, query), without=[query, other])
    assert {each.facts["words"] for each in alone} == {None}
    assert {each.parts["words"] for each in alone} == {0.0}


def test_a_missing_vector_and_an_unknown_setting_are_refused(small):
    index = Index(built(small, words=False))
    query = small.held_out[0]
    assert index.words is None
    assert index.vectors_of(7) == {}
    with pytest.raises(ValueError, match="a vector by each model of the index; there is none by two"):
        index.search("graph", {"one": index.vectors_of(query)["one"]})
    with pytest.raises(ValueError, match="known is 'most'; it can be more, balanced, less"):
        index.search("graph", index.vectors_of(query), known="most")


def test_links_of_papers_without_a_text_are_refused_and_so_is_a_model_without_vectors(small):
    (small.folder / "one").rename(small.folder / "three")
    (small.folder / "one").mkdir()
    with pytest.raises(InputError, match="one: has no vectors; embed the corpus by the model first"):
        built(small)
    assert not (small.folder / "index").exists()


@given(st.lists(st.integers(-3, 40), max_size=120), st.integers(1, 12))
def test_the_best_are_the_first_in_order_of_score_and_row(scores, count):
    rows = np.arange(len(scores)) * 2 + 5
    expected = sorted(zip([-score for score in scores], rows.tolist(), strict=True))[:count]
    assert search.best(np.array(scores, np.float32), rows, count).tolist() == [row for _, row in expected]


@given(st.text())
def test_words_are_split_as_bm25s_does(text):
    (expected,) = tokenize([text], stopwords=[], return_ids=False, show_progress=False)
    assert search.WORD.findall(text.lower()) == expected


def test_the_file_that_searches_needs_numpy_alone(small):
    folder = built(small)
    code = (
        "import sys, runpy; of = runpy.run_path(sys.argv[1]); from pathlib import Path\n"
        "index = of['Index'](Path(sys.argv[2])); paper = int(index.papers[0])\n"
        "print(len(index.search('graph', index.vectors_of(paper))))\n"
        "print({name.partition('.')[0] for name in sys.modules} & {'cocite', 'scipy', 'pyarrow', 'faiss', 'bm25s'})"
    )
    command = [sys.executable, "-c", code, search.__file__, str(folder)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "20\nset()\n"


def test_candidates_and_what_is_known_of_them_are_those_of_a_plain_definition(tmp_path, monkeypatch):
    monkeypatch.setattr(searching, "PAPERS_AT_ONCE", 7)
    monkeypatch.setattr(candidates, "PAIRS_AT_ONCE", 5)
    small = Small(tmp_path).write()
    table = small.find()
    found, expected = small.plain(LISTED, VOTES)
    rows = {(row.pop("query"), row.pop("paper")): row for row in table.to_pylist()}
    judged = {(q, int(p)) for q, of in small.judged.items() for p in of if q != int(p)}
    assert rows.keys() == {(q, p) for q, of in found.items() for p in of} | judged
    for (query, paper), row in rows.items():
        assert row.pop("split") == small.splits[query]
        assert row.pop("is_found") == (paper in found[query])
        assert row.pop("cosines") == pytest.approx(expected[query, paper].pop("cosines"), abs=1e-6)
        assert row == pytest.approx(expected[query, paper], abs=1e-5)


def test_what_a_text_lacks_is_not_a_number(tmp_path):
    small = Small(tmp_path)
    small.texts[small.held_out[1]] = ("unheard", "unseen")
    del small.vectors["two"][small.ids[-1]]
    table = small.write().find().to_pylist()
    assert all(row["words"] is None for row in table if row["query"] == small.held_out[1])
    assert all(row["words"] is not None for row in table if row["query"] != small.held_out[1])
    unlinked = {each for each in small.ids if not any(each in edge for edge in small.edges)}
    assert all((row["votes_10"] is None) == (row["paper"] in unlinked) for row in table)
    assert {np.isnan(row["cosines"][1]) for row in table if row["paper"] == small.ids[-1]} == {True}
    assert not np.isnan([row["cosines"][0] for row in table]).any()


def test_planted_citations_of_held_out_papers_change_nothing(tmp_path):
    small = Small(tmp_path).write()
    held_out = [(each, "holdout") for each in small.held_out]
    queries = write_rows(tmp_path / "queries.parquet", "queries", "corpusid split", held_out)

    def candidates_of(citations):
        given = {"queries": queries, "bucket": 0, "buckets": 1, "memory_mb": 500, "threads": 1}
        written = small.write_citations("citations.parquet", citations)
        edges_of_citations(written, **given, output=tmp_path / "edges.parquet")
        small.link()
        return small.find()

    planted = [(query, paper) for query, papers in small.relevant.items() for paper in papers]
    without = candidates_of(small.edges)
    assert candidates_of({*small.edges, *planted, *((b, a) for a, b in planted)}) == without
    # The same citations as edges of training would be found in the votes.
    small.edges = sorted({*small.edges, *planted})
    assert small.write().find() != without


def test_vectors_of_no_held_out_paper_and_a_graph_of_other_papers_are_refused(tmp_path):
    small = Small(tmp_path).write()
    for name in ("one", "two"):
        small.vectors[name] = {each: small.vectors[name][each] for each in small.ids[small.queries :]}
    small.write()
    with pytest.raises(InputError, match="holds no vector of a held-out paper; embed the corpus by the model first"):
        small.find()
    small = Small(tmp_path)
    small.edges = [(7, 9)]
    with pytest.raises(InputError, match="links none of the papers that are searched"):
        small.write().find()
