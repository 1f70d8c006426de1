"""Adapters compute what the library adapters computes, learn alone, and lie several in one folder."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel

from cocite.config.models import TrainingSettings
from cocite.core.errors import InputError
from cocite.encoder.adapters import adapters_in, new_adapter, read_adapter, save_adapters, switch_on
from cocite.encoder.model import Encoder, open_encoder
from cocite.encoder.training import train_encoder

SIZES = {
    "vocab_size": 20,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 16,
}
OF_THE_LIBRARY = [
    [1.60879, -0.3799, 1.14063, -0.52177, -1.49764, -1.58737, 1.23286, 0.93937],
    [1.63175, -0.41086, 1.10706, -0.50352, -1.53104, -1.55126, 1.2313, 0.95489],
]
"""The first token of two documents by adapters 1.3.0 and transformers 4.57.6: a BertAdapterModel of these sizes and an
adapter `seq_bn[reduction_factor=4]`, with the weights of `filled`."""


def filled(weights):
    """Numbers that follow from the name and the place of each weight: sines, about 1 for those of normalisation."""
    for name, weight in weights:
        first = sum(map(ord, name)) % 97
        numbers = torch.sin(first + torch.arange(weight.numel(), dtype=torch.float64)).reshape(weight.shape) * 0.5
        weight.data.copy_(1 + 0.2 * numbers if name.endswith("LayerNorm.weight") else numbers)


def names_of_the_library(adapter):
    for layer, bottleneck in enumerate(adapter):
        place = f"encoder.layer.{layer}.output.adapters.search"
        for kind in ("weight", "bias"):
            yield f"{place}.adapter_down.0.{kind}", getattr(bottleneck.down, kind)
            yield f"{place}.adapter_up.{kind}", getattr(bottleneck.up, kind)


def test_the_tokens_are_those_of_the_library():
    encoder = Encoder(AutoModel.from_config(AutoConfig.for_model("bert", **SIZES)), "mean", None).eval()
    filled(encoder.transformer.named_parameters())
    adapter = new_adapter(encoder, "search", 4)
    filled(names_of_the_library(adapter))
    switch_on(encoder, adapter)
    ids = torch.tensor([[3, 7, 1, 4, 9], [5, 2, 8, 0, 0]])
    mask = torch.tensor([[1] * 5, [1, 1, 1, 0, 0]])
    with torch.inference_mode():
        tokens = encoder.transformer(ids, attention_mask=mask).last_hidden_state[:, 0]
    torch.testing.assert_close(tokens, torch.tensor(OF_THE_LIBRARY), rtol=0, atol=2e-5)


@pytest.fixture
def train(inputs, outputs_in, tmp_path):
    """A function that trains an adapter by its name from the folder of an encoder; it returns the model's folder."""

    def run(name, encoder=inputs.encoder, folder=None, **settings):
        where = tmp_path / (folder or name)
        trainable = {"kind": "adapter", "name": name, "reduction": 4} if name else "all"
        given = TrainingSettings(epochs=1, batch_size=4, lr=3e-3, trainable=trainable, **settings)
        options = {"seed": 1, "training_seed": 1, "threads": 1, "state": where / "state"}
        train_encoder(replace(inputs, encoder=encoder), outputs_in(where), given, **options)
        return where / "model"

    return run


def weights_of(model: Path, name: str):
    return load_file(model / "adapters" / name / "adapter.safetensors")


def test_an_adapter_learns_alone_and_the_encoder_stays_as_it_was(train, encoder):
    model = train("search")
    before, after = (load_file(folder / "model.safetensors") for folder in (encoder, model))
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert adapters_in(model) == ["search"]
    assert weights_of(model, "search").keys() == {
        f"bert.encoder.layer.0.output.adapters.search.{inner}.{kind}"
        for inner in ("adapter_down.0", "adapter_up")
        for kind in ("weight", "bias")
    }


def test_the_card_says_how_the_adapter_is_switched_on(train):
    card = (train("search") / "README.md").read_text()
    assert 'model.load_adapter("this folder/adapters/search", use_safetensors=True, set_active=True)' in card
    assert "| trainable: reduction | 4 |" in card
    assert "model.encode" not in card


def test_several_lie_in_one_folder_and_one_of_the_same_name_learns_on(train):
    first = train("search")
    second = train("proximity", encoder=first)
    assert adapters_in(second) == ["proximity", "search"]
    assert all(
        torch.equal(weight, weights_of(second, "search")[name]) for name, weight in weights_of(first, "search").items()
    )
    third = train("search", encoder=second, folder="third", max_steps=1, warmup=0.0)
    moved = max(
        float((weight - weights_of(first, "search")[name]).abs().max())
        for name, weight in weights_of(third, "search").items()
    )
    assert 0 < moved < 0.01
    assert adapters_in(third) == ["proximity", "search"]


def test_an_encoder_that_learns_itself_leaves_the_adapters_behind(train):
    assert adapters_in(train(None, encoder=train("search"), folder="whole")) == []


def test_a_saved_adapter_is_the_one_that_was_switched_on(encoder, tmp_path):
    opened = open_encoder(encoder)
    switch_on(opened, new_adapter(opened, "regression", 2))
    save_adapters(opened, encoder, tmp_path)
    again = read_adapter(opened, tmp_path, "regression")
    for name, weight in opened.adapter.state_dict().items():
        assert torch.equal(again.state_dict()[name], weight)
    config = json.loads((tmp_path / "adapters/regression/adapter_config.json").read_text())
    assert config["config"]["reduction_factor"] == 2


@pytest.fixture
def saved(encoder, tmp_path):
    """An encoder, and a folder with its adapter search."""
    opened = open_encoder(encoder)
    switch_on(opened, new_adapter(opened, "search", 4))
    save_adapters(opened, encoder, tmp_path)
    return opened, tmp_path


def test_an_adapter_that_is_not_there_is_refused_with_those_that_are(saved):
    opened, folder = saved
    with pytest.raises(InputError, match="has no adapter proximity; it has search"):
        read_adapter(opened, folder, "proximity")


def test_an_adapter_of_another_kind_is_refused(saved):
    opened, folder = saved
    path = folder / "adapters/search/adapter_config.json"
    config = json.loads(path.read_text())
    config["config"]["mh_adapter"] = True
    path.write_text(json.dumps(config))
    with pytest.raises(InputError, match="mh_adapter is True"):
        read_adapter(opened, folder, "search")


def test_pickled_weights_are_refused(saved):
    opened, folder = saved
    weights = folder / "adapters/search/adapter.safetensors"
    weights.rename(weights.with_name("pytorch_adapter.bin"))
    with pytest.raises(InputError, match="pickled weights are not loaded"):
        read_adapter(opened, folder, "search")


def test_an_adapter_of_another_encoder_is_refused(saved):
    opened, folder = saved
    path = folder / "adapters/search/adapter.safetensors"
    save_file({name: weight.repeat(2, *[1] * (weight.ndim - 1)) for name, weight in load_file(path).items()}, path)
    with pytest.raises(InputError, match="cannot be opened as an encoder"):
        read_adapter(opened, folder, "search")


def test_an_encoder_without_such_layers_is_refused():
    config = AutoConfig.for_model("gpt2", n_embd=8, n_layer=1, n_head=2, vocab_size=20)
    encoder = Encoder(AutoModel.from_config(config), "mean", None)
    with pytest.raises(InputError, match="this one is a gpt2"):
        new_adapter(encoder, "search", 4)


@pytest.mark.parametrize("kind", ["roberta", "electra", "mpnet", "deberta", "deberta-v2"])
def test_encoders_with_the_layers_of_bert_take_bottlenecks(kind):
    transformer = AutoModel.from_config(AutoConfig.for_model(kind, pad_token_id=1, **SIZES)).eval()
    encoder = Encoder(transformer, "mean", None)
    tokens = {"input_ids": torch.tensor([[5, 6, 7]]), "attention_mask": torch.ones(1, 3, dtype=torch.int64)}
    before = encoder(tokens)
    switch_on(encoder, new_adapter(encoder, "search", 4))
    assert not torch.equal(encoder(tokens), before)
