"""A linear map behind the pooling: of published encoders, of probes, in training, and in sentence-transformers."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from tests.encoder.building import trained
from tests.encoder.published import fetched as published_fetch
from tests.examples import HYBRID

from cocite.config.encoders import EncoderSettings, LearnedMap
from cocite.core.atomic import read_json, write_json
from cocite.core.errors import InputError
from cocite.core.tables.probes import Trained, name_of_map
from cocite.encoder.fetch import fetch_encoder
from cocite.encoder.layers import Dense, read_dense, save_dense
from cocite.encoder.losses.mnrl import MultipleNegativesRanking
from cocite.encoder.model import embed, open_encoder
from cocite.encoder.tokens import tokenise

TEXTS = ["bees collect nectar", "compilers allocate registers for loops", "flowers in the meadow"]
WEIGHTS = "2_Map/model.safetensors"


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


def vectors(folder, **options):
    opened = open_encoder(folder, **options)
    return embed(opened, tokenise(TEXTS, opened.tokenizer))


@pytest.mark.parametrize("activation", ["Identity", "Tanh"])
def test_the_map_of_a_published_encoder_stays_with_it(published, tmp_path, activation):
    source = published(Dense(drawn_map(), activation))
    folder = fetched(source, tmp_path)
    expected = SentenceTransformer(str(source)).encode(TEXTS)
    assert expected.shape == (3, 8)
    np.testing.assert_allclose(vectors(folder), expected, atol=1e-5)
    np.testing.assert_allclose(SentenceTransformer(str(folder)).encode(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(vectors(folder, dimension=5), expected[:, :5], atol=1e-5)
    with pytest.raises(InputError, match="gives vectors of 8 dimensions, and 9 are to be kept"):
        open_encoder(folder, dimension=9)


def test_mapped_vectors_are_scaled_where_that_is_asked_for(published, tmp_path):
    source = published(Dense(drawn_map()))
    folder = fetched(source, tmp_path, normalise=True)
    mapped = SentenceTransformer(str(source)).encode(TEXTS)
    expected = mapped / np.linalg.norm(mapped, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors(folder), expected, atol=1e-5)
    np.testing.assert_allclose(SentenceTransformer(str(folder)).encode(TEXTS), expected, atol=1e-5)


def test_maps_that_cannot_be_kept_are_refused(published, tmp_path):
    two = published(Dense(drawn_map()), Dense(drawn_map(8, 8)), name="two")
    with pytest.raises(InputError, match="lists Transformer Pooling Dense Dense; it must be"):
        fetched(two, tmp_path)
    with pytest.raises(InputError, match="gives vectors of 16 dimensions, and the map behind it takes 12"):
        fetched(published(Dense(drawn_map(12, 8)), name="narrow"), tmp_path)
    other = published(Dense(drawn_map()), name="other")
    config = read_json(other / "2_Dense/config.json")
    write_json(other / "2_Dense/config.json", config | {"activation_function": "torch.nn.modules.activation.GELU"})
    with pytest.raises(InputError, match=r"its activation is .*\.GELU, and Identity and Tanh are known"):
        fetched(other, tmp_path)
    pickled = published(Dense(drawn_map()), name="pickled")
    (pickled / "2_Dense/model.safetensors").rename(pickled / "2_Dense/pytorch_model.bin")
    with pytest.raises(InputError, match=r"holds no model\.safetensors; pickled weights are not loaded"):
        fetched(pickled, tmp_path)


@pytest.fixture
def mapped(encoder, tmp_path):
    """A function that fetches the encoder with the map of a probe behind it, and that map."""
    loss, weight = MultipleNegativesRanking(kind="mnrl"), drawn_map(16, 16, bias=False).weight.detach()
    maps = tmp_path / "maps.safetensors"
    save_file({name_of_map(Trained("mnrl temperature=20.0 sampled_negatives=true", 128, 1)): weight}, maps)

    def fetch(seed=1):
        learned = LearnedMap(probe="which", triplets="specter", loss=loss, seed=seed)
        settings = EncoderSettings(model=str(encoder), max_length=16, map=learned)
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
