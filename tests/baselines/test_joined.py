"""The vectors of several models side by side."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.baselines.tables import embedded, papers, write_vectors

from cocite.baselines.methods.untrained import JoinedVectors

NAMES = st.sampled_from("abcdefgh")
VECTORS = st.lists(st.integers(-3, 3), min_size=2, max_size=2).filter(any)


@given(
    st.lists(st.dictionaries(NAMES, VECTORS, min_size=1), min_size=2, max_size=3),
    st.lists(st.integers(1, 4), min_size=3, max_size=3),
)
def test_cosines_are_weighted_means_of_the_cosines_by_each_model(tmp_path_factory, of_models, weights):
    folder, weights = tmp_path_factory.mktemp("joined"), weights[: len(of_models)]
    tables = [write_vectors(folder / f"{number}.parquet", given) for number, given in enumerate(of_models)]
    joined = JoinedVectors(kind="joined", models=tuple("abc"[: len(of_models)]), weights=tuple(map(float, weights)))
    texts = dict.fromkeys(of_models[0], ("title", None))
    found = embedded(joined, texts, folder / "vectors.parquet", joined_vectors=tables)
    assert set(found) == set.intersection(*map(set, of_models))
    for one in found:
        for other in found:
            cosines = [
                np.dot(of[one], of[other]) / np.linalg.norm(of[one]) / np.linalg.norm(of[other]) for of in of_models
            ]
            assert found[one] @ found[other] == pytest.approx(np.average(cosines, weights=weights), abs=1e-5)


def test_papers_are_joined_as_well(tmp_path):
    first, second = {1: [3, 4], 2: [1, 0]}, {2: [0, 2], 3: [1, 1]}
    tables = [write_vectors(tmp_path / f"{number}.parquet", of) for number, of in enumerate((first, second))]
    joined = JoinedVectors(kind="joined", models=("a", "b"))
    source = papers(tmp_path / "papers/0.parquet", dict.fromkeys((1, 2, 3), ("title", None)))
    found = embedded(joined, source, tmp_path / "vectors.parquet", joined_vectors=tables)
    assert {paper: vector.tolist() for paper, vector in found.items()} == {2: pytest.approx([0.5**0.5, 0, 0, 0.5**0.5])}
