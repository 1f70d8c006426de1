"""Folders that are no encoders of texts, or become another model: each is refused with a sentence that names it."""

import pickle
import shutil

import pytest
import torch
from tests.encoder.changes import (
    DENSE,
    INDEX,
    LAYER,
    POOLING,
    TEXTS,
    TOKENIZER,
    WEIGHTS,
    WORD,
    Marks,
    added,
    changed,
    deep,
    emptying,
    first_module,
    indexed,
    nearly_constant,
    of_bytes,
    replaced,
    retyped,
    reweighed,
    sharing_an_id,
    spoilt,
    starting_with,
    without,
    without_unknown,
    written,
)
from tests.encoder.published import fetched, published

from cocite.core.errors import InputError

REFUSED = {
    # An encoder that becomes another model.
    "an adapter": (written("adapter_config.json", base_model_name_or_path="some-org/base"), "an adapter lies beside"),
    "an adapter that is no JSON": (replaced("adapter_config.json", "{"), "an adapter lies beside the weights"),
    "8 bits": (
        written("config.json", quantization_config={"load_in_8bit": True}),
        r"quantised \(quantization_config\)",
    ),
    "packed": (written("config.json", compression_config={"format": "int-quantized"}), "its weights are quantised"),
    "layers of their own": (written("config.json", per_layer_config={"0": {"hidden_act": "relu"}}), "per_layer_config"),
    "other weights": (written("config.json", transformers_weights="other.safetensors"), "a file of another name"),
    "settings in another file": (
        written("config.json", configuration_files=["config.4.0.0.json"]),
        r"read its settings from another file \(configuration_files\)",
    ),
    "settings of an older release": (
        written("config.json", model_type="gpt_neox", classifier_dropout=0.1, rotary_pct=0.5),
        "config.json: rope_parameters follows from settings that are not read here",
    ),
    "own kind": (written("config.json", model_type="own", auto_map={"AutoModel": "own.Own"}), "code of its own"),
    "own module": (first_module(type="own.Transformer"), "own.Transformer is code of its own, which is not run"),
    "own activation": (written(DENSE, activation_function="own.Identity"), "its activation is own.Identity"),
    "an activation that torch does not have": (
        written(DENSE, activation_function="torch.nope.Identity"),
        "its activation is torch.nope.Identity",
    ),
    "added layer weights": (
        reweighed(lambda weights: weights.update({"encoder.layer.1.output.lora_A": torch.ones(2, 2)})),
        "have 1 weights that the transformer of config.json does not use, as encoder.layer.1.output.lora_A",
    ),
    "additions by another name": (
        reweighed(lambda weights: weights.update({"base_model.model.encoder.layer.0.lora_A.weight": torch.ones(2)})),
        "does not use, as base_model.model.encoder.layer.0.lora_A.weight",
    ),
    "a decoder": (written("config.json", is_decoder=True), r"bert is a decoder \(is_decoder\)"),
    "fewer layers": (
        written("config.json", num_hidden_layers=1),
        "have 16 weights that the transformer of config.json",
    ),
    "more layers": (
        written("config.json", num_hidden_layers=3),
        r"lack 16 weights of the transformer, as encoder\.layer\.2\.",
    ),
    "prompts left out": (written(POOLING, include_prompt=False), "leaves out the tokens of prompts"),
    "task": (written(TEXTS, transformer_task="fill-mask"), "transformer_task is 'fill-mask', and only"),
    "another output": (written(TEXTS, module_output_name="logits"), "module_output_name is 'logits', and only"),
    "another tokenizer": (
        written(TEXTS, tokenizer_name_or_path="some-org/t"),
        "tokenizer_name_or_path is 'some-org/t'",
    ),
    "arguments": (written(TEXTS, model_args={"variant": "fp16"}), "model_args has variant, which is not read here"),
    "map of tokens": (written(DENSE, module_input_name="token_embeddings"), "module_input_name is 'token_embeddings'"),
    "map with its input": (written(DENSE, use_residual=True), "use_residual is True, and only False is known"),
    "cut at the start": (written("tokenizer_config.json", truncation_side="left"), "cuts texts at the start"),
    "a tokenizer in another file": (
        written("tokenizer_config.json", fast_tokenizer_files=["tokenizer.4.0.0.json"]),
        r"releases of transformers read another tokenizer \(fast_tokenizer_files\)",
    ),
    "types of tokens": (
        changed(TOKENIZER, lambda content: content | {"post_processor": starting_with(2, type=1)}),
        r"gives the tokens of a text a type \(token_type_ids\)",
    ),
    "split special tokens": (
        written("tokenizer_config.json", split_special_tokens=True),
        r"its special tokens are split in texts \(split_special_tokens\)",
    ),
    # Parts that are missing, or would be lost.
    "no vocabulary": (without(TOKENIZER, "tokenizer_config.json"), "layered: holds no vocabulary"),
    "no settings": (without("config.json"), r"layered/config\.json does not exist"),
    "a pickle alone": (
        lambda folder: (folder / WEIGHTS).rename(folder / "pytorch_model.bin"),
        "holds no safetensors; pickled weights are not loaded",
    ),
    "a further module": (
        changed("modules.json", lambda modules: [*modules, {**modules[1], "type": modules[1]["type"] + "2"}]),
        "has a module Pooling2 behind its transformer, which would be lost",
    ),
    # Weights that are read from elsewhere, or not as safetensors.
    "a pickle in the index": (indexed("w.bin"), "names 'w.bin'; weights must be safetensors in the same folder"),
    "a pickle elsewhere": (indexed("../elsewhere.bin"), "names '../elsewhere.bin'; weights must be safetensors"),
    "weights elsewhere": (indexed("../elsewhere.safetensors"), "names '../elsewhere.safetensors'; weights must be"),
    "one of two": (indexed("decoy.safetensors", "w.bin"), "names 'w.bin'"),
    "an absolute name": (indexed("/etc/hosts.safetensors"), "names '/etc/hosts.safetensors'"),
    "a folder": (indexed("1_Pooling/a.safetensors"), "names '1_Pooling/a.safetensors'"),
    "no name": (indexed(""), "names ''; weights must be"),
    "a number": (indexed(3), "names 3; weights must be"),
    "a missing file": (indexed("none.safetensors"), "names none.safetensors, which is not there"),
    "a pickle by another name": (
        lambda folder: (folder / WEIGHTS).write_bytes(pickle.dumps(Marks(folder.parent / "unpickled"))),
        "model.safetensors: cannot be read as safetensors",
    ),
    "weights twice": (
        lambda folder: (
            indexed("decoy.safetensors", "again.safetensors")(folder),
            shutil.copy(folder / "decoy.safetensors", folder / "again.safetensors"),
        ),
        "decoy.safetensors: has .*, as another file of .* does",
    ),
    "an empty index": (indexed(), "index.json: has no weight_map"),
    "an index that is a list": (
        lambda folder: (indexed()(folder), (folder / INDEX).write_text("[]")),
        "holds list; it must be a JSON object",
    ),
    # Modules and settings of other shapes.
    "modules as an object": (replaced("modules.json", "{}"), "holds dict; it must be a list of modules"),
    "no modules": (replaced("modules.json", "[]"), "lists no module; it must be Transformer"),
    "modules as text": (replaced("modules.json", '["Transformer"]'), "a module is 'Transformer'; it must have"),
    "no JSON": (replaced("modules.json", "["), "modules.json, line 1: not JSON"),
    "a module elsewhere": (
        first_module(path="../plain"),
        r"Transformer is at \.\./plain; it must be inside the folder",
    ),
    "a path that is null": (first_module(path=None), "it must have a type and a path, both text"),
    "another order": (
        changed("modules.json", lambda modules: modules[::-1]),
        "lists Dense Pooling Transformer; it must",
    ),
    "settings as a list": (replaced("config.json", "[]"), "config.json: holds list; it must be a JSON object"),
    "deep settings": (changed("config.json", deep), "config.json: holds list|recursion"),
    "a long number": (replaced("config.json", '{"a": ' + "9" * 5000 + "}"), "layered: cannot be opened as an encoder"),
    "no kind": (changed("config.json", lambda settings: {"hidden_size": 16}), "its architecture None is not known"),
    "a kind that is a list": (written("config.json", model_type=["bert"]), r"its architecture \['bert'\] is not known"),
    "an image": (written("config.json", model_type="vit"), "layered: "),
    "two models": (written("config.json", model_type="clip"), "its architecture clip is several models"),
    "a decoder behind": (written("config.json", model_type="bart"), "bart is an encoder with a decoder"),
    "text for a size": (written("config.json", hidden_size="16"), "cannot be opened as an encoder"),
    "a billion layers": (written("config.json", num_hidden_layers=10**9), "num_hidden_layers is 1000000000, which"),
    "many layers in a group": (
        written("config.json", model_type="albert", inner_group_num=100_000),
        "inner_group_num is 100000, which does not fit 39 weights",
    ),
    "many groups": (
        written("config.json", model_type="albert", num_hidden_groups=100_000),
        "num_hidden_groups is 100000, which does not fit 39 weights",
    ),
    "many networks in a layer": (
        written("config.json", model_type="mobilebert", num_feedforward_networks=100_000),
        "num_feedforward_networks is 100000, which does not fit 39 weights",
    ),
    "wide layers": (
        written("config.json", intermediate_size=2**24),
        r"config\.json: describes 1107\d+ numbers, and the weights have \d+\.",
    ),
    "a billion positions": (written("config.json", max_position_embeddings=10**10), "does not fit 39 weights"),
    "another activation": (written("config.json", hidden_act="none"), "cannot be opened as an encoder"),
    "norms of nothing": (written("config.json", layer_norm_eps=float("nan")), "its vectors are not finite"),
    # Weights.
    "not finite": (spoilt(float("nan")), f"{WORD} has numbers that are not finite"),
    "infinite": (spoilt(float("-inf"), LAYER), f"{LAYER} has numbers that are not finite"),
    "whole numbers": (retyped(torch.int8), f"{WORD} is int8; weights must be"),
    "truth values": (retyped(torch.bool, LAYER), f"{LAYER} is bool; weights must be"),
    "8-bit floats": (retyped(torch.float8_e4m3fn), f"{WORD} is float8_e4m3fn; weights must be"),
    "another shape": (
        reweighed(lambda weights: weights.update({WORD: weights[WORD][:, :8].clone()})),
        r"embeddings\.weight is \(134, 8\); by config.json it must be \(134, 16\)",
    ),
    "no numbers but zero": (reweighed(lambda weights: [each.zero_() for each in weights.values()]), "the same vector"),
    "numbers that hardly differ": (reweighed(nearly_constant), "the same vector"),
    "too large to compute with": (reweighed(lambda weights: weights[LAYER].fill_(3e38)), "its vectors are not finite"),
    "a factor of quantised weights": (
        reweighed(lambda weights: weights.update({LAYER + "_scale": torch.ones(1)})),
        "does not use, as encoder.layer.1.output.dense.weight_scale",
    ),
    "cut": (
        lambda folder: (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:900]),
        "cannot be read as safetensors",
    ),
    "empty": (replaced(WEIGHTS, ""), "model.safetensors: cannot be read as safetensors"),
    # The linear map.
    "a map of three dimensions": (
        reweighed(lambda weights: weights.update({"linear.weight": torch.ones(8, 16, 1)}), "2_Dense/" + WEIGHTS),
        "no linear.weight of two dimensions",
    ),
    "a map of another shape": (written(DENSE, in_features=12), r"its weights are .*; by config.json they must be"),
    "a bias that is missing": (
        reweighed(lambda weights: weights.pop("linear.bias"), "2_Dense/" + WEIGHTS),
        "by config.json they must be",
    ),
    "a map that is not finite": (spoilt(float("inf"), "linear.bias", "2_Dense/" + WEIGHTS), "linear.bias has numbers"),
    "a map with a weight twice": (
        reweighed(lambda weights: weights.update({"weight": weights["linear.weight"] * 2}), "2_Dense/" + WEIGHTS),
        r"2_Dense/model.safetensors: holds a weight twice, with and without linear\. before its name",
    ),
    "a map without settings": (without(DENSE), r"2_Dense/config\.json does not exist"),
    # The vocabulary.
    "a token too many": (
        changed(TOKENIZER, lambda content: content | {"added_tokens": [*content["added_tokens"], added("[NEW]", 900)]}),
        r"its tokenizer gives '\[NEW\]' the id \d+, and it has embeddings of \d+ tokens; resize them",
    ),
    "tokens of an old release": (replaced("added_tokens.json", '{"[NEW]": 9000}'), r"gives '\[NEW\]' the id"),
    "tokens of the settings": (
        written("tokenizer_config.json", additional_special_tokens=["[A]", "[B]"]),
        r"gives '\[B\]'",
    ),
    "an id of a piece": (
        changed(TOKENIZER, lambda content: content | {"post_processor": starting_with(9999)}),
        "cannot embed a text: IndexError: index out of range",
    ),
    "no text": (
        changed(TOKENIZER, lambda content: content | {"normalizer": emptying}),
        "cannot embed a text: it gives 'Bees' and 'Bees gather nectar' the same vector",
    ),
    "no unknown token": (changed(TOKENIZER, without_unknown), "cannot embed a text: .*Missing .UNK. token"),
    "no padding": (written("tokenizer_config.json", pad_token=None), r"has no token for padding; name one"),
    "two words of an id": (changed(TOKENIZER, sharing_an_id), "its vocabulary loses '(bees|nectar)' when it is saved"),
    "pieces that are drawn": (
        changed(TOKENIZER, lambda content: of_bytes(content, dropout=0.9)),
        r"its tokenizer draws the tokens of a text \(dropout is 0\.[89]",
    ),
    "no tokenizer": (replaced(TOKENIZER, "{}"), "layered: cannot be opened as an encoder"),
    "a vocabulary of numbers": (
        changed(TOKENIZER, lambda content: content | {"model": content["model"] | {"vocab": [1, 2]}}),
        "layered: cannot be opened as an encoder",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_folder_that_is_no_encoder_of_texts_is_refused(name, layered, tmp_path):
    change, message = REFUSED[name]
    folder = shutil.copytree(layered, tmp_path / "layered")
    change(folder)
    with pytest.raises(InputError, match=message) as error:
        fetched(folder, tmp_path / "model", prompts={"query": "query: "})
    assert "layered" in str(error.value)
    assert not (tmp_path / "model").exists()
    assert not (tmp_path / "unpickled").exists()


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_an_encoder_with_a_decoder_is_refused(kind, tmp_path):
    with pytest.raises(InputError, match=f"its architecture {kind} is an encoder with a decoder"):
        fetched(published(tmp_path / "source", kind), tmp_path / "model")
