"""What is left out of an encoder's folder without a change of its vectors, and adapters of another shape."""

import pickle
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.encoder.changes import (
    POOLING,
    TEXTS,
    TOKENIZER,
    WEIGHTS,
    WORD,
    Marks,
    changed,
    indexed,
    reweighed,
    with_padding,
    written,
)
from tests.encoder.published import as_sentence_transformer, edit, fetched, published

from cocite.core.atomic import read_json
from cocite.core.errors import InputError
from cocite.encoder.adapters import new_adapter, save_adapters, switch_on
from cocite.encoder.model import open_encoder


def test_texts_in_lowercase_need_a_tokenizer_that_does_so_itself(layered, tmp_path):
    lowering = shutil.copytree(layered, tmp_path / "lowering")
    edit(lowering / TEXTS, do_lower_case=True)
    fetched(lowering, tmp_path / "lowers")
    cased = as_sentence_transformer(published(tmp_path / "plain", "roberta"), tmp_path / "cased")
    edit(cased / TEXTS, do_lower_case=True)
    with pytest.raises(InputError, match="its texts are put into lowercase"):
        fetched(cased, tmp_path / "model")


def test_sentences_need_tokens_that_they_start_and_end_with(layered, tmp_path):
    folder = shutil.copytree(layered, tmp_path / "layered")
    edit(folder / "tokenizer_config.json", sep_token=None, cls_token=None)
    with pytest.raises(InputError, match="layered: its vocabulary has no tokens that a sentence starts and ends with"):
        fetched(folder, tmp_path / "model", pooling="sentences")


TAKEN = {
    "another attention": written("config.json", _attn_implementation="some-org/kernels"),
    "no tuples": written("config.json", return_dict=False, output_attentions=True, torchscript=True),
    "no quantisation": written("config.json", quantization_config=None),
    "prompts counted where none are": written(POOLING, include_prompt=False),
    "other numbers": reweighed(lambda weights: weights.update({WORD: weights[WORD].double()})),
    "positions among the weights": reweighed(
        lambda weights: weights.update({"embeddings.position_ids": torch.arange(32)[None]})
    ),
    "no pooler": reweighed(lambda weights: [weights.pop(f"pooler.dense.{name}") for name in ("weight", "bias")]),
    "a prefix": reweighed(lambda weights: [weights.update({f"bert.{name}": weights.pop(name)}) for name in [*weights]]),
    "weights in a part": indexed("decoy.safetensors"),
    "a pickle that nothing names": lambda folder: (folder / "w.bin").write_bytes(pickle.dumps(Marks(folder / "run"))),
    "padding in front": changed(TOKENIZER, with_padding),
    "a tokenizer of another name": written(
        "tokenizer_config.json", name_or_path="some-org/t", auto_map=["own.T", None]
    ),
    "an adapter elsewhere": written("1_Pooling/adapter_config.json", base_model_name_or_path="some-org/base"),
}
"""Changes of a folder that leave its vectors as they are."""


@pytest.mark.parametrize("name", TAKEN)
def test_what_changes_no_vector_is_left_out(name, layered, tmp_path):
    folder = shutil.copytree(layered, tmp_path / "layered")
    TAKEN[name](folder)
    model = fetched(folder, tmp_path / "model")
    kept = load_file(model / WEIGHTS)
    assert all(
        torch.equal(kept[name], weight) for name, weight in load_file(layered / WEIGHTS).items() if "pooler" not in name
    )
    assert read_json(model / TOKENIZER)["padding"] is None
    assert not any("some-org" in path.read_text() for path in model.rglob("*.json"))


TOLD = {
    "dimensions that are cut": (
        written("config_sentence_transformers.json", truncate_dim=4),
        "The encoder's own vectors are cut to 4 dimensions, and here only by the setting dimension of a model.",
    ),
    "prompts": (
        written("config_sentence_transformers.json", prompts={"query": "query: "}),
        "The encoder has prompts that are left out, as the setting prompts is",
    ),
}
"""Changes of a folder that are not taken over, and what is said of them."""


@pytest.mark.parametrize("name", TOLD)
def test_what_is_left_out_is_told(name, layered, tmp_path, capsys):
    change, told = TOLD[name]
    folder = shutil.copytree(layered, tmp_path / "layered")
    change(folder)
    fetched(folder, tmp_path / "model")
    assert told in capsys.readouterr().err


HOSTILE_ADAPTERS = {
    "no config": ({"config": None}, "has no config of bottlenecks"),
    "a list": ({"config": []}, "has no config of bottlenecks"),
    "no reduction": ({"config": {}}, "cannot be opened as an encoder: KeyError: 'reduction_factor'"),
    "text": ({"config": {"reduction_factor": "4"}}, "cannot be opened as an encoder: TypeError"),
    "zero": ({"config": {"reduction_factor": 0}}, "cannot be opened as an encoder: ZeroDivisionError"),
    "another size": ({"config": {"reduction_factor": 8}}, "size mismatch"),
}


@pytest.mark.parametrize("name", HOSTILE_ADAPTERS)
def test_an_adapter_of_another_shape_is_refused(name, layered, tmp_path):
    settings, message = HOSTILE_ADAPTERS[name]
    opened = open_encoder(fetched(layered, tmp_path / "first"))
    switch_on(opened, new_adapter(opened, "search", 4))
    save_adapters(opened, tmp_path / "first", tmp_path / "saved")
    place = tmp_path / "saved/adapters/search"
    edit(place / "adapter_config.json", **settings)
    with pytest.raises(InputError, match=message):
        fetched(layered, tmp_path / "model", adapters={"search": {"model": str(place)}})
    edit(place / "adapter_config.json", config={"reduction_factor": 4})
    weights = load_file(place / "adapter.safetensors")
    save_file({key: weight / 0 for key, weight in weights.items()}, place / "adapter.safetensors")
    with pytest.raises(InputError, match="numbers that are not finite in float32"):
        fetched(layered, tmp_path / "model", adapters={"search": {"model": str(place)}})
