"""SGC: features passed along the edges of a graph."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.baselines.tables import embedded, papers, train, write_vectors
from tests.rows import write_rows

from cocite.baselines.methods import sgc
from cocite.baselines.methods.sgc import PropagatedFeatures
from cocite.baselines.steps import Sources
from cocite.core.errors import InputError

BY_HOPS = {hops: PropagatedFeatures(kind="sgc", of="sif", graph="citation", hops=hops) for hops in (1, 2, 5)}


def by_definition(features: dict, edges: list, hops: int) -> dict:
    """Sᵏ X with loops, in whole matrices of float64 (Wu et al., 2019, equations 2 to 6), rows of length 1."""
    papers = sorted(features)
    adjacency = np.zeros((len(papers), len(papers)))
    for source, target, weight in edges:
        if source in features and target in features:
            one, other = papers.index(source), papers.index(target)
            adjacency[one, other] = adjacency[other, one] = max(weight, adjacency[one, other])
    with_loops = adjacency + np.eye(len(papers))
    scale = np.diag(with_loops.sum(axis=1) ** -0.5)
    smooth = np.linalg.matrix_power(scale @ with_loops @ scale, hops) @ np.array([features[paper] for paper in papers])
    lengths = np.linalg.norm(smooth, axis=1, keepdims=True)
    return dict(zip(papers, smooth / np.where(lengths > 0, lengths, 1), strict=True))


def propagate(folder, features: dict, edges: list, baseline=BY_HOPS[1], memory_mb: float = 100, splits=None) -> Path:
    """The model over papers in two buckets, and a graph in two buckets."""
    halves = [{p: f for p, f in features.items() if p % 2 == half} for half in (0, 1)]
    vectors = [write_vectors(folder / f"vectors-{at}.parquet", half) for at, half in enumerate(halves) if half]
    paths = [folder / f"edges-{half}.parquet" for half in (0, 1)]
    for half, path in enumerate(paths):
        write_rows(path, "edges", "source target weight", sorted(edges[half::2]))
    sources = Sources(paper_vectors=vectors, edges=paths)
    return train(baseline, folder, sources, splits, training_seed=0, memory_mb=memory_mb)


def of_documents(folder: Path, baseline: PropagatedFeatures, model: Path, features: dict, **more) -> dict:
    below = {"model": model, "document_vectors": write_vectors(folder / "below.parquet", features), **more}
    return embedded(baseline, dict.fromkeys(features, ("title", None)), folder / "vectors.parquet", **below)


PAPERS = st.integers(1, 12)
FEATURES = st.lists(st.integers(-3, 3), min_size=3, max_size=3)


@given(
    features=st.dictionaries(PAPERS, FEATURES, min_size=1),
    pairs=st.dictionaries(
        st.tuples(PAPERS, PAPERS).filter(lambda p: p[0] != p[1]), st.sampled_from([1, 2.5]), max_size=30
    ),
    hops=st.sampled_from(sorted(BY_HOPS)),
    memory_mb=st.sampled_from([100, 0]),
)
def test_features_are_those_of_the_definition(tmp_path_factory, features, pairs, hops, memory_mb):
    folder = tmp_path_factory.mktemp("sgc")
    edges = [(*pair, weight) for pair, weight in pairs.items()]
    model = propagate(folder, features, edges, BY_HOPS[hops], memory_mb)
    expected = by_definition(features, edges, hops)
    found = of_documents(folder, BY_HOPS[hops], model, {str(paper): [9, 9, 9] for paper in features})
    assert {int(name) for name in found} == set(expected)
    for name, vector in found.items():
        assert vector == pytest.approx(expected[int(name)], abs=1e-5)


def test_a_document_that_is_no_paper_keeps_its_own_features_with_length_1(tmp_path):
    model = propagate(tmp_path, {1: [1, 0], 2: [0, 1]}, [(1, 2, 1.0)])
    found = of_documents(tmp_path, BY_HOPS[1], model, {"abc": [3, 4], "task:1": [5, 5]})
    assert found["abc"] == pytest.approx([0.6, 0.8])
    assert found["task:1"] == pytest.approx([0.5**0.5, 0.5**0.5])


def test_papers_of_the_corpus_have_the_same_vectors_as_documents_that_they_are(tmp_path):
    features = {1: [1, 0], 2: [0, 1], 9: [3, 4]}
    model = propagate(tmp_path, {1: features[1], 2: features[2]}, [(1, 2, 1.0)])
    source = papers(tmp_path / "papers/0.parquet", dict.fromkeys(features, ("title", None)))
    below = write_vectors(tmp_path / "below-papers.parquet", features)
    of_papers = embedded(BY_HOPS[1], source, tmp_path / "found.parquet", model=model, document_vectors=below)
    as_documents = of_documents(tmp_path, BY_HOPS[1], model, {str(paper): vector for paper, vector in features.items()})
    assert [str(paper) for paper in of_papers] == list(as_documents)
    assert (np.stack([*of_papers.values()]) == np.stack([*as_documents.values()])).all()


def test_documents_of_other_ids_are_the_papers_that_they_are_matched_with(tmp_path):
    model = propagate(tmp_path, {1: [1, 0], 2: [0, 1]}, [(1, 2, 1.0)])
    columns = "document corpusid matched_by has_record"
    known = write_rows(tmp_path / "papers.parquet", "document_papers", columns, [("70", 2, "mag", True)])
    features = {"1": [3, 4], "70": [3, 4]}
    vectors_of = of_documents(tmp_path, BY_HOPS[1], model, features, document_papers=known)
    assert vectors_of["1"] == pytest.approx([0.6, 0.8])  # not the paper 1
    assert vectors_of["70"] == pytest.approx([0.5**0.5, 0.5**0.5])


def test_validation_queries_keep_their_features_as_held_out_papers_do(tmp_path):
    features, edges = {1: [0, 2], 2: [1, 0], 4: [3, 4]}, [(1, 2, 1.0), (2, 4, 1.0)]
    model = propagate(tmp_path, features, edges, splits={2: "train", 4: "validation"})
    expected = by_definition(features, edges[:1], 1)
    for name, vector in of_documents(tmp_path, BY_HOPS[1], model, {name: [1, 0] for name in "124"}).items():
        assert vector == pytest.approx(expected[int(name)])


def test_a_killed_propagation_goes_on_after_the_columns_that_are_done(tmp_path, monkeypatch):
    features = {paper: [paper, paper**2, 1.0] for paper in range(1, 9)}
    edges = [(paper, paper + 1, 1.0) for paper in range(1, 8)]
    whole = np.load(propagate(tmp_path / "whole", features, edges, BY_HOPS[2], 0) / "vectors.npy")
    multiply, done = sgc.propagated, []

    def killed(*given):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(multiply(*given))
        return done[-1]

    monkeypatch.setattr(sgc, "propagated", killed)
    with pytest.raises(KeyboardInterrupt):
        propagate(tmp_path / "killed", features, edges, BY_HOPS[2], 0)
    done.clear()
    again = np.load(propagate(tmp_path / "killed", features, edges, BY_HOPS[2], 0) / "vectors.npy")
    assert len(done) == 1
    assert (again == whole).all()


def test_what_is_not_given_is_named(tmp_path):
    model = propagate(tmp_path, {1: [1, 0]}, [])
    with pytest.raises(InputError, match="No document_vectors is given"):
        embedded(BY_HOPS[1], {"1": ("title", None)}, tmp_path / "vectors.parquet", model=model)
