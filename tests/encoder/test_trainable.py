"""Which weights learn: adapters, as the library adapters has them, additions of low rank, and bias terms."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from tests.encoder.published import edit, fetched, published
from transformers import AutoConfig, AutoModel

from cocite.config.models import TrainingSettings
from cocite.core.errors import InputError
from cocite.encoder.adapters import (
    adapters_in,
    choose_weights,
    learned_weights,
    new_adapter,
    read_adapter,
    save_adapters,
    switch_on,
)
from cocite.encoder.model import Encoder, open_encoder

SIZES = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 16, "max_position_embeddings": 16}
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
def train_adapter(inputs, train):
    """A function that trains an adapter by its name from the folder of an encoder; it returns the model's folder."""

    def run(name, encoder=inputs.encoder, **settings):
        trainable = {"kind": "adapter", "name": name, "reduction": 3} if name else "all"
        return train(inputs=replace(inputs, encoder=encoder), trainable=trainable, epochs=1, **settings) / "model"

    return run


def weights_of(model: Path, name: str):
    return load_file(model / "adapters" / name / "adapter.safetensors")


def test_an_adapter_learns_alone_the_encoder_stays_as_it_was_and_the_card_says_how_to_switch_it_on(
    train_adapter, encoder
):
    model = train_adapter("search")
    before, after = (load_file(folder / "model.safetensors") for folder in (encoder, model))
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert adapters_in(model) == ["search"]
    names = (f"{inner}.{kind}" for inner in ("adapter_down.0", "adapter_up") for kind in ("weight", "bias"))
    assert weights_of(model, "search").keys() == {f"bert.encoder.layer.0.output.adapters.search.{n}" for n in names}
    card = (model / "README.md").read_text()
    assert 'model.load_adapter("this folder/adapters/search", use_safetensors=True, set_active=True)' in card
    assert "| trainable: reduction | 3 |" in card
    assert "model.encode" not in card


def test_several_lie_in_one_folder_and_one_of_the_same_name_learns_on(train_adapter):
    first = train_adapter("search")
    second = train_adapter("proximity", encoder=first)
    assert adapters_in(second) == ["proximity", "search"]
    before, kept = (weights_of(model, "search") for model in (first, second))
    assert all(torch.equal(weight, kept[name]) for name, weight in before.items())
    third = train_adapter("search", encoder=second, max_steps=1, warmup=0.0)
    moved = max(float((weight - before[name]).abs().max()) for name, weight in weights_of(third, "search").items())
    assert 0 < moved < 0.01
    assert adapters_in(third) == ["proximity", "search"]
    assert adapters_in(train_adapter(None, encoder=first)) == []  # an encoder that learns itself has none


CONFIG, WEIGHTS = "adapters/search/adapter_config.json", "adapters/search/adapter.safetensors"


def doubled(path):
    save_file({name: weight.repeat(2, *[1] * (weight.ndim - 1)) for name, weight in load_file(path).items()}, path)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("proximity", lambda folder: None, "has no adapter proximity; it has search"),
        ("search", lambda folder: edit(folder / CONFIG, config={"mh_adapter": True}), "mh_adapter is True"),
        ("search", lambda folder: (folder / WEIGHTS).rename(folder / "a.bin"), "pickled weights are not loaded"),
        ("search", lambda folder: doubled(folder / WEIGHTS), "cannot be opened as an encoder"),
    ],
)
def test_an_adapter_that_is_not_there_or_does_not_fit_is_refused(encoder, tmp_path, name, change, message):
    opened = open_encoder(encoder)
    switch_on(opened, new_adapter(opened, "search", 4))
    save_adapters(opened, encoder, tmp_path)
    change(tmp_path)
    with pytest.raises(InputError, match=message):
        read_adapter(opened, tmp_path, name)


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


def changed(folder, encoder):
    """The weights of the trained encoder that differ from those it started from: name → difference."""
    before, after = (load_file(path / "model.safetensors") for path in (encoder, folder / "model"))
    assert before.keys() == after.keys()
    return {name: after[name] - before[name] for name in before if not torch.equal(before[name], after[name])}


def test_bias_trains_the_bias_terms_and_nothing_else(train, encoder):
    names = changed(train(trainable="bias"), encoder)
    assert names
    assert all(name.endswith("bias") for name in names)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_low_rank_additions_are_merged_into_the_linear_weights_also_of_a_base_in_bfloat16(train, encoder, precision):
    trainable = {"kind": "lora", "rank": 2, "alpha": 8}
    differences = changed(train(trainable=trainable, precision=precision), encoder)
    assert any("attention" in name for name in differences)
    for name, difference in differences.items():
        assert name.endswith("weight")
        assert "embeddings" not in name
        assert 1 <= torch.linalg.matrix_rank(difference, rtol=1e-3) <= 2


OF_DECODERS = frozenset(["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"])
LINEAR = {
    **dict.fromkeys(("qwen3", "llama", "gemma3_text"), OF_DECODERS),
    "modernbert": {"Wqkv", "Wo", "Wi"},
    "xlm-roberta": {"query", "key", "value", "dense"},
    "t5": {"q", "k", "v", "o", "wi", "wo"},
}


@pytest.mark.parametrize("kind", LINEAR)
def test_low_rank_additions_are_to_the_linear_layers_of_the_architecture_or_to_some_of_them(kind, tmp_path):
    folder = fetched(published(tmp_path / "plain", kind), tmp_path / "model")
    for modules in (None, sorted(LINEAR[kind])[:2]):
        model = open_encoder(folder, "bfloat16", reduced=True)
        choose_weights(model, TrainingSettings(trainable={"kind": "lora", "modules": modules}), seed=1)
        learned = learned_weights(model)
        assert {name.split(".lora_")[0].rpartition(".")[2] for name in learned} == {*(modules or LINEAR[kind])}
        assert {weight.dtype for weight in learned.values()} == {torch.float32}
        assert {weight.dtype for name, weight in model.named_parameters() if "lora_" not in name} == {torch.bfloat16}
    lacking = TrainingSettings(trainable={"kind": "lora", "modules": [*modules, "c_attn"]})
    there = ", ".join(sorted(LINEAR[kind]))
    with pytest.raises(InputError, match=f"has c_attn; the linear layers are {there}."):
        choose_weights(open_encoder(folder), lacking, seed=1)


def test_both_libraries_open_what_was_trained_by_low_rank_additions(train):
    folder = train(trainable="lora")
    assert SentenceTransformer(str(folder / "model"), device="cpu").encode("bees").shape == (16,)
    loading = AutoModel.from_pretrained(folder / "model", output_loading_info=True)[1]
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]
    assert not list((folder / "model").glob("adapter*"))
