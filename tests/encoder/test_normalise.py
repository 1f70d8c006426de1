"""Encoders whose vectors have length 1, here, in training, and in sentence-transformers."""

from dataclasses import replace

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from tests.encoder.building import built, trained

from cocite.encoder.model import embed, open_encoder
from cocite.encoder.tokens import tokenise

TEXTS = ["bees collect nectar", "compilers allocate registers for loops", ""]


@pytest.fixture(scope="module")
def folders(tmp_path_factory, corpus, small_settings):
    """The same encoder with and without the setting."""
    folder = tmp_path_factory.mktemp("normalise")
    for name, normalise in (("scaled", True), ("plain", None)):
        settings = small_settings.model_copy(update={"normalise": normalise})
        built(corpus, folder / name, settings)
    return folder


def vectors(folder):
    encoder = open_encoder(folder)
    return embed(encoder, tokenise(TEXTS, encoder.tokenizer))


def test_vectors_are_those_of_the_pooling_scaled_to_length_one(folders):
    plain, scaled = vectors(folders / "plain"), vectors(folders / "scaled")
    assert np.allclose(np.linalg.norm(scaled, axis=1), 1, atol=1e-6)
    assert not np.allclose(np.linalg.norm(plain, axis=1), 1, atol=1e-2)
    assert np.allclose(scaled, plain / np.linalg.norm(plain, axis=1, keepdims=True), atol=1e-6)


def test_sentence_transformers_gives_the_same_vectors(folders):
    model = SentenceTransformer(str(folders / "scaled"), device="cpu")
    assert np.allclose(model.encode(TEXTS), vectors(folders / "scaled"), atol=1e-5)


def test_a_model_that_is_trained_from_it_scales_its_vectors_as_well(folders, tmp_path, inputs):
    from_it = replace(inputs, encoder=folders / "scaled")
    trained(tmp_path, from_it, loss={"kind": "mnrl"}, batch_size=8, max_steps=2, evaluations=1)
    learned = vectors(tmp_path / "model")
    assert np.allclose(np.linalg.norm(learned, axis=1), 1, atol=1e-6)
    assert not np.allclose(learned, vectors(folders / "scaled"))
    assert np.allclose(SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(TEXTS), learned, atol=1e-5)
