"""Encoders made of trained ones: the mean of their weights, and another pooling."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from tests.encoder.building import vectors_by

from cocite.core.errors import InputError
from cocite.encoder import poolings
from cocite.encoder.build import average_models, repool
from cocite.encoder.model import open_encoder
from cocite.encoder.spaces import read_space, save_spaces, spaces_in

TEXTS = ["bees collect nectar", "compilers allocate registers for loops"]
WEIGHTS = "model.safetensors"


def changed(folder: Path, source: Path, by: float) -> Path:
    """A copy of an encoder with this added to all its weights."""
    shutil.copytree(source, folder)
    save_file({name: weight + by for name, weight in load_file(source / WEIGHTS).items()}, folder / WEIGHTS)
    return folder


def test_weights_are_the_means_and_all_else_is_as_the_first_has_it(encoder, tmp_path):
    models = [changed(tmp_path / str(number), encoder, by) for number, by in enumerate((0.0, 0.25, 0.5))]
    average_models(models, tmp_path / "mean")
    expected = load_file(changed(tmp_path / "expected", encoder, 0.25) / WEIGHTS)
    found = load_file(tmp_path / "mean" / WEIGHTS)
    assert found.keys() == expected.keys()
    for name, weight in expected.items():
        torch.testing.assert_close(found[name], weight, rtol=0, atol=1e-6)
    for name in ("tokenizer.json", "modules.json", "config.json"):
        assert (tmp_path / "mean" / name).read_bytes() == (models[0] / name).read_bytes()


def test_the_mean_of_an_encoder_with_itself_gives_its_vectors_and_its_card_says_so(encoder, tmp_path):
    average_models([encoder, encoder], tmp_path / "mean")
    plain = vectors_by(encoder, TEXTS)
    assert (vectors_by(tmp_path / "mean", TEXTS) == plain).all()
    assert SentenceTransformer(str(tmp_path / "mean")).encode(TEXTS) == pytest.approx(plain, abs=1e-5)
    lines = (tmp_path / "mean" / "README.md").read_text().splitlines()
    title = next(number for number, line in enumerate(lines) if line.startswith("# "))
    assert lines[title + 2].startswith("The weights are the mean of those of 2 trainings")


def test_maps_to_the_spaces_of_aspects_are_averaged_along(encoder, tmp_path):
    models = [shutil.copytree(encoder, tmp_path / name) for name in ("one", "other")]
    for folder in models:
        save_spaces({"result": torch.nn.Linear(16, 16)}, folder)
    average_models(models, tmp_path / "mean")
    one, other, mean = (read_space(folder, "result").weight for folder in (*models, tmp_path / "mean"))
    assert not torch.equal(one, other)
    torch.testing.assert_close(mean, (one + other) / 2)
    in_space = tmp_path / "mean" / "aspects" / "result" / WEIGHTS
    assert in_space.resolve() == (tmp_path / "mean" / WEIGHTS).resolve()


def test_encoders_that_are_not_alike_have_no_mean(encoder, tmp_path):
    narrower = shutil.copytree(encoder, tmp_path / "narrower")
    weights = load_file(encoder / WEIGHTS)
    name = min(weights)
    save_file(weights | {name: weights[name][..., :-1].contiguous()}, narrower / WEIGHTS)
    with pytest.raises(InputError, match="cannot be averaged with the other encoders: The size of tensor"):
        average_models([encoder, narrower], tmp_path / "mean")
    save_file({key: weight for key, weight in weights.items() if key != name}, narrower / WEIGHTS)
    with pytest.raises(InputError, match=f"does not contain tensor {name}"):
        average_models([encoder, narrower], tmp_path / "mean")
    (narrower / WEIGHTS).unlink()
    with pytest.raises(InputError, match="No such file"):
        average_models([encoder, narrower], tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


def test_another_pooling_of_an_encoder_has_its_weights_and_other_vectors(encoder, tmp_path):
    repool(encoder, "cls", tmp_path / "run/model_in_cls/model")
    other = tmp_path / "run/model_in_cls/model"
    assert poolings.pooling_in(encoder) != poolings.pooling_in(other) == "cls"
    assert (other / "model.safetensors").samefile(encoder / "model.safetensors")
    assert "The pooling is cls, and was mean in the training" in (other / "README.md").read_text()
    assert "The pooling is cls" not in (encoder / "README.md").read_text()
    texts = ["bees collect nectar"]
    theirs = SentenceTransformer(str(other), device="cpu")
    tokens = theirs.tokenize(texts)
    hidden = theirs[0].auto_model(**{key: tokens[key] for key in ("input_ids", "attention_mask")}).last_hidden_state
    assert torch.allclose(torch.from_numpy(vectors_by(other, texts)), hidden[:, 0], atol=1e-5)


def test_another_pooling_leaves_out_the_spaces_that_were_learned_with_the_first(encoder, tmp_path):
    with_spaces = shutil.copytree(encoder, tmp_path / "model")
    save_spaces({"result": torch.nn.Linear(open_encoder(encoder).transformer.config.hidden_size, 4)}, with_spaces)
    repool(with_spaces, "cls", tmp_path / "other")
    assert "result" in spaces_in(with_spaces)
    assert spaces_in(tmp_path / "other") == []
    assert not (tmp_path / "other/aspects").exists()
    assert "The spaces of aspects are left out" in (tmp_path / "other/README.md").read_text()


def test_a_pooling_by_sentence_is_refused(encoder, tmp_path):
    with pytest.raises(InputError, match="by sentence"):
        repool(encoder, "sentences", tmp_path / "model")
    assert not (tmp_path / "model").exists()
