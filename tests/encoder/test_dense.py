"""A linear map behind the pooling: of published encoders, of probes, in training, and in sentence-transformers."""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from tests.encoder.building import trained, vectors_by
from tests.encoder.published import fetched as published_fetch
from tests.examples import HYBRID

from cocite.config.encoders import EncoderSettings, LearnedMap
from cocite.core.atomic import read_json, write_json
from cocite.core.errors import InputError
from cocite.core.tables.places import Trained, name_of_map
from cocite.encoder.fetch import fetch_encoder
from cocite.encoder.layers import IDENTITY, TANH, Dense, read_dense, save_dense
from cocite.encoder.losses import MultipleNegativesRanking
from cocite.encoder.model import open_encoder

TEXTS = ["bees collect nectar", "compilers allocate registers for loops", "flowers in the meadow"]


def drawn_map(takes=16, gives=8, *, bias=True, seed=3) -> torch.nn.Linear:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return torch.nn.Linear(takes, gives, bias=bias)


@pytest.fixture
def published(encoder, tmp_path):
    """A function that makes an encoder as sentence-transformers saves one: a transformer, a pooling and a Dense."""

    def make(*maps: Dense, name="published") -> Path:
        folder = shutil.copytree(encoder, tmp_path / name)
        modules = read_json(folder / "modules.json")
        for number, dense in enumerate(maps, len(modules)):
            path = f"{number}_Dense"
            save_dense(dense, folder / path)
            kind = "sentence_transformers.models.Dense"
            modules.append({"idx": number, "name": str(number), "path": path, "type": kind})
        write_json(folder / "modules.json", modules)
        return folder

    return make


def fetched(source, tmp_path, **settings) -> Path:
    return published_fetch(source, tmp_path / "fetched", max_length=16, **settings)


vectors = partial(vectors_by, texts=TEXTS)


def test_vectors_behind_the_map_of_a_published_encoder_can_be_cut(published, tmp_path):
    source = published(Dense(drawn_map()))
    folder = fetched(source, tmp_path)
    expected = SentenceTransformer(str(source)).encode(TEXTS)
    np.testing.assert_allclose(vectors(folder), expected, atol=1e-5)
    np.testing.assert_allclose(vectors(folder, dimension=5), expected[:, :5], atol=1e-5)
    with pytest.raises(InputError, match="gives vectors of 8 dimensions, and 9 are to be kept"):
        open_encoder(folder, dimension=9)


def test_a_chain_of_maps_is_kept(published, inputs, tmp_path):
    sizes, activations = ((16, 24), (24, 12), (12, 8)), (IDENTITY, TANH, TANH)
    maps = [Dense(drawn_map(*size, bias=size != (24, 12)), of) for size, of in zip(sizes, activations, strict=True)]
    source = published(*maps)
    folder = fetched(source, tmp_path)
    np.testing.assert_allclose(vectors(folder), SentenceTransformer(str(source)).encode(TEXTS), atol=1e-5)
    model = trained(tmp_path / "trained", replace(inputs, encoder=folder), loss="mnrl", max_steps=2) / "model"
    assert not np.allclose(vectors(model), vectors(folder), atol=1e-5)
    np.testing.assert_allclose(SentenceTransformer(str(model)).encode(TEXTS), vectors(model), atol=1e-5)


@pytest.mark.parametrize("sizes", [[(16, 12), (8, 8)], [(12, 8)]])
def test_maps_that_do_not_follow_one_another_are_refused(published, tmp_path, sizes):
    with pytest.raises(InputError, match="cannot embed a text: mat1 and mat2 shapes cannot be multiplied"):
        fetched(published(*(Dense(drawn_map(*size)) for size in sizes)), tmp_path)


def test_a_model_that_is_trained_from_an_encoder_that_normalises_scales_its_vectors_as_well(encoder, inputs, tmp_path):
    from_it = replace(inputs, encoder=fetched(encoder, tmp_path, normalise=True))
    model = trained(tmp_path / "trained", from_it, loss="mnrl", max_steps=2) / "model"
    learned, plain = vectors(model), vectors(encoder)
    np.testing.assert_allclose(np.linalg.norm(learned, axis=1), 1, atol=1e-6)
    assert not np.allclose(learned, plain / np.linalg.norm(plain, axis=1, keepdims=True))
    np.testing.assert_allclose(SentenceTransformer(str(model)).encode(TEXTS), learned, atol=1e-5)


@pytest.fixture
def mapped(encoder, tmp_path):
    """A function that fetches the encoder with the map of a probe behind it, and that map."""
    loss, weight = MultipleNegativesRanking(kind="mnrl"), drawn_map(16, 16, bias=False).weight.detach()
    maps = tmp_path / "maps.safetensors"
    save_file({name_of_map(Trained("mnrl scale=20.0 sampled_negatives=true", 128, 1)): weight}, maps)

    def fetch(seed=1):
        learned = LearnedMap(probe="which", triplets="specter", loss=loss, training_seed=seed)
        settings = EncoderSettings(model=str(encoder), max_length=16, linear_map=learned)
        fetch_encoder(settings, tmp_path / "mapped", maps=maps)
        return tmp_path / "mapped", weight.numpy()

    return fetch


def test_the_map_of_a_probe_is_put_behind_the_encoder(mapped, encoder):
    folder, weight = mapped()
    np.testing.assert_allclose(vectors(folder), vectors(encoder) @ weight.T, atol=1e-5)
    assert "the probe which learned from the triplets specter" in (folder / "README.md").read_text()
    with pytest.raises(InputError, match="holds no map"):
        mapped(seed=2)


def test_the_map_learns_with_the_encoder_and_is_saved_with_it(mapped, aspects, tmp_path):
    inputs = replace(aspects, encoder=mapped()[0])
    model = trained(tmp_path / "trained", inputs, objectives=HYBRID, epochs=1) / "model"
    before, after = (read_dense(folder / "2_Map").linear.weight for folder in (inputs.encoder, model))
    assert not torch.equal(before, after)
    np.testing.assert_allclose(SentenceTransformer(str(model)).encode(TEXTS), vectors(model), atol=1e-5)
    in_space = SentenceTransformer(str(model / "aspects/result")).encode(TEXTS)
    space = load_file(model / "aspects/result/2_Dense/model.safetensors")
    expected = vectors(model) @ space["linear.weight"].numpy().T + space["linear.bias"].numpy()
    np.testing.assert_allclose(in_space, expected, atol=1e-5)


def test_additions_of_low_rank_leave_the_map_as_it_is(mapped, inputs, tmp_path):
    started = replace(inputs, encoder=mapped()[0])
    model = trained(tmp_path / "added", started, trainable="lora") / "model"
    assert torch.equal(*(read_dense(folder / "2_Map").linear.weight for folder in (started.encoder, model)))
