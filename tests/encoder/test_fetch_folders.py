"""Folders that are no encoders of texts, or become another model, are refused; what changes no vector is left out."""

import pickle
import shutil
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from tests.encoder.building import paper_texts, trained
from tests.encoder.published import as_sentence_transformer, edit, fetched, published
from tests.examples import written_examples

from cocite.core.atomic import read_json
from cocite.core.errors import InputError
from cocite.encoder.adapters import new_adapter, save_adapters, switch_on
from cocite.encoder.model import open_encoder
from cocite.encoder.trainer import Inputs

WEIGHTS, INDEX, TOKENIZER = "model.safetensors", "model.safetensors.index.json", "tokenizer.json"
DENSE, POOLING, TEXTS = "2_Dense/config.json", "1_Pooling/config.json", "sentence_bert_config.json"
MAP = "2_Dense/" + WEIGHTS
WORD = "embeddings.word_embeddings.weight"
NORM = "encoder.layer.1.output.LayerNorm."
LAYER = "encoder.layer.1.output.dense.weight"


class Marks:
    """Marks a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


# Changes of a folder: functions that give a function of the folder.


def written(name, **settings):
    return lambda folder: edit(folder / name, **settings)


config = partial(written, "config.json")
of_tokenizer = partial(written, "tokenizer_config.json")


def changed(name, change):
    return lambda folder: edit(folder / name, change)


def tokenizer(**parts):
    return changed(TOKENIZER, lambda content: content | parts)


def replaced(name, text):
    return lambda folder: (folder / name).write_text(text)


def without(*names):
    return lambda folder: [(folder / name).unlink() for name in names]


def reweighed(change, name=WEIGHTS):
    def change_file(folder):
        weights = load_file(folder / name)
        change(weights)
        save_file(weights, folder / name)

    return change_file


def more(name=WEIGHTS, **weights):
    return reweighed(lambda before: before.update(weights), name)


def retyped(dtype, at=WORD):
    return reweighed(lambda weights: weights.update({at: (weights[at] * 9).to(dtype)}))


def spoilt(value, at=WORD, name=WEIGHTS):
    def change(weights):
        weights[at].view(-1)[5] = value

    return reweighed(change, name)


def indexed(*names, copies=("decoy.safetensors",)):
    """The weights in other files, beside an index that names some files."""

    def change(folder):
        for copy in copies:
            shutil.copy(folder / WEIGHTS, folder / copy)
        (folder / WEIGHTS).rename(folder.parent / "elsewhere.safetensors")
        for name in ("w.bin", "../elsewhere.bin"):
            (folder / name).write_bytes(pickle.dumps(Marks(folder.parent / "unpickled")))
        edit(folder / INDEX, metadata={}, weight_map={f"w{at}": name for at, name in enumerate(names)})

    return change


def first_module(**settings):
    return changed("modules.json", lambda modules: [modules[0] | settings, *modules[1:]])


def without_unknown(content):
    content["added_tokens"] = [each for each in content["added_tokens"] if each["content"] != "[UNK]"]
    content["model"]["unk_token"] = "[NONE]"  # noqa: S105
    return content


def with_new_token(content):
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return content | {"added_tokens": [*content["added_tokens"], {"id": 900, "content": "[NEW]", **flags}]}


def starting_with(id, type=0):
    start, text = {"SpecialToken": {"id": "[CLS]", "type_id": type}}, {"Sequence": {"id": "A", "type_id": 0}}
    tokens = {"[CLS]": {"id": "[CLS]", "ids": [id], "tokens": ["[CLS]"]}}
    kind = {"type": "TemplateProcessing", "single": [start, text], "pair": [text, text], "special_tokens": tokens}
    return tokenizer(post_processor=kind)


def nearly_constant(weights):
    """Make the vectors differ only by rounding."""
    weights[NORM + "weight"].mul_(5e-7)
    weights[NORM + "bias"].fill_(1)


def deep(_):
    nested = []
    for _ in range(500):
        nested = [nested]
    return nested


REFUSED = [
    # An encoder that becomes another model.
    (replaced("adapter_config.json", "{"), "an adapter lies beside the weights"),
    (config(quantization_config={"load_in_8bit": True}), r"quantised \(quantization_config\)"),
    (config(per_layer_config={"0": {"hidden_act": "relu"}}), "per_layer_config"),
    (config(transformers_weights="other.safetensors"), "a file of another name"),
    (config(configuration_files=["a.json"]), r"another file \(configuration_files\)"),
    (
        config(model_type="gpt_neox", classifier_dropout=0.1, rotary_pct=0.5),
        "config.json: rope_parameters follows from settings that are not read here",
    ),
    (config(model_type="own", auto_map={"AutoModel": "own.Own"}), "code of its own"),
    (first_module(type="own.Transformer"), "own.Transformer is code of its own, which is not run"),
    (written(DENSE, activation_function="own.Identity"), "its activation is own.Identity"),
    (written(DENSE, activation_function="torch.nope.Tanh"), "its activation is torch.nope.Tanh"),
    (
        more(**{"encoder.layer.1.output.lora_A": torch.ones(2, 2)}),
        "have 1 weights that the transformer of config.json does not use, as encoder.layer.1.output.lora_A",
    ),
    (more(**{"base_model.encoder.layer.0": torch.ones(2)}), "not use, as base_model."),
    (config(is_decoder=True), r"bert is a decoder \(is_decoder\)"),
    (config(model_type="bart"), "bart is an encoder with a decoder"),
    (lambda folder: published(folder, "bart", d_model=16), "its architecture bart is an encoder with a decoder"),
    (config(num_hidden_layers=1), "have 16 weights that the transformer of config.json"),
    (config(num_hidden_layers=3), r"lack 16 weights of the transformer, as encoder\.layer\.2\."),
    (
        written(POOLING, pooling_mode="weightedmean"),
        r"its pooling \(pooling_mode: weightedmean\) is not taken by itself; name one as encoders.<name>.pooling: cls,",
    ),
    (
        written("config_sentence_transformers.json", prompts={"query": 3}),
        "cannot be opened as an encoder: .*valid string",
    ),
    (written(TEXTS, module_output_name="logits"), "module_output_name is 'logits', and only"),
    (written(TEXTS, model_args={"variant": "fp16"}), "model_args has variant, which is not read here"),
    (written(DENSE, module_input_name="token_embeddings"), "module_input_name is 'token_embeddings'"),
    (written(DENSE, use_residual=True), "use_residual is True, and only False is known"),
    (of_tokenizer(truncation_side="left"), "cuts texts at the start"),
    (
        of_tokenizer(fast_tokenizer_files=["tokenizer.4.0.0.json"]),
        r"releases of transformers read another tokenizer \(fast_tokenizer_files\)",
    ),
    (starting_with(2, type=1), r"gives the tokens of a text a type \(token_type_ids\)"),
    (of_tokenizer(split_special_tokens=True), r"its special tokens are split in texts \(split_special_tokens\)"),
    # Parts that are missing, or would be lost.
    (without(TOKENIZER, "tokenizer_config.json"), "layered: holds no vocabulary"),
    (without("config.json"), r"layered/config\.json does not exist"),
    (
        lambda folder: (folder / WEIGHTS).rename(folder / "pytorch_model.bin"),
        "holds no safetensors; pickled weights are not loaded",
    ),
    (
        changed("modules.json", lambda modules: [*modules, {**modules[1], "type": modules[1]["type"] + "2"}]),
        "has a module Pooling2 behind its transformer, which would be lost",
    ),
    # Weights that are read from elsewhere, or not as safetensors.
    (indexed("decoy.safetensors", "w.bin"), "names 'w.bin'; weights must be safetensors in"),
    (indexed("../elsewhere.safetensors"), "names '../elsewhere.safetensors'; weights must be"),
    (indexed("none.safetensors"), "names 'none.safetensors'; weights must be"),
    (
        lambda folder: (folder / WEIGHTS).write_bytes(pickle.dumps(Marks(folder.parent / "unpickled"))),
        "model.safetensors: cannot be read as safetensors",
    ),
    # Modules and settings of other shapes.
    (replaced("modules.json", "[]"), "lists no module; it must be Transformer"),
    (replaced("modules.json", "["), "modules.json, line 1: not JSON"),
    (first_module(path="../plain"), r"Transformer is at \.\./plain, outside of the folder"),
    (changed("modules.json", lambda modules: modules[::-1]), "lists Dense Pooling Transformer; it"),
    (replaced("config.json", "[]"), "config.json: contains list; it must be a JSON object"),
    (changed("config.json", deep), "config.json: contains list|recursion"),
    (replaced("config.json", '{"a": ' + "9" * 5000 + "}"), "layered: cannot be opened as an encoder"),
    (changed("config.json", lambda settings: {"hidden_size": 16}), "its architecture None is not known"),
    (config(model_type=["bert"]), r"its architecture \['bert'\] is not known"),
    (config(model_type="vit"), "layered: "),
    (config(model_type="clip"), "its architecture clip is several models"),
    (config(hidden_size="16"), "cannot be opened as an encoder"),
    (config(layer_norm_eps=float("nan")), "its vectors are not finite"),
    # Weights.
    (spoilt(float("nan")), f"{WORD} has numbers that are not finite"),
    (spoilt(float("-inf"), LAYER), f"{LAYER} has numbers that are not finite"),
    (retyped(torch.int8), f"{WORD} is int8; weights must be"),
    (retyped(torch.float8_e4m3fn), f"{WORD} is float8_e4m3fn; weights must be"),
    (
        reweighed(lambda weights: weights.update({WORD: weights[WORD][:, :8].clone()})),
        r"embeddings\.weight is \(72, 8\); by config.json it must be \(72, 16\)",
    ),
    (reweighed(nearly_constant), "the same vector"),
    (reweighed(lambda weights: weights[LAYER].fill_(3e38)), "its vectors are not finite"),
    (more(**{LAYER + "_scale": torch.ones(1)}), f"does not use, as {LAYER}_scale"),
    # The linear map.
    (more(MAP, **{"linear.weight": torch.ones(8, 16, 1)}), "size mismatch"),
    (written(DENSE, in_features=12), "size mismatch"),
    (reweighed(lambda weights: weights.pop("linear.bias"), MAP), "Missing key"),
    (spoilt(float("inf"), "linear.bias", MAP), "linear.bias has numbers"),
    (without(DENSE), r"2_Dense/config\.json does not exist"),
    (without(MAP), r"2_Dense: holds no model\.safetensors; pickled weights are not loaded"),
    # The vocabulary.
    (
        changed(TOKENIZER, with_new_token),
        r"its tokenizer gives '\[NEW\]' the id \d+, and it has embeddings of \d+ tokens; resize them",
    ),
    (replaced("added_tokens.json", '{"[NEW]": 9000}'), r"gives '\[NEW\]' the id"),
    (of_tokenizer(additional_special_tokens=["[A]"]), r"gives '\[A\]'"),
    (starting_with(9999), "cannot embed a text: IndexError: index out of range"),
    (
        tokenizer(normalizer={"type": "Replace", "pattern": {"Regex": "."}, "content": ""}),
        "cannot embed a text: it gives 'Bees' and 'Bees gather nectar' the same vector",
    ),
    (changed(TOKENIZER, without_unknown), "cannot embed a text: .*Missing .UNK. token"),
    (of_tokenizer(pad_token=None), r"has no token for padding; name one"),
    (replaced(TOKENIZER, "{}"), "layered: cannot be opened as an encoder"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_a_folder_that_is_no_encoder_of_texts_is_refused(change, message, layered, tmp_path):
    folder = shutil.copytree(layered, tmp_path / "layered")
    change(folder)
    with pytest.raises(InputError, match=message) as error:
        fetched(folder, tmp_path / "model")
    assert "layered" in str(error.value)
    assert not (tmp_path / "model").exists()
    assert not (tmp_path / "unpickled").exists()


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


def test_the_card_has_the_separator_of_a_tokenizer_that_has_none(tmp_path):
    source = published(tmp_path / "plain")
    edit(source / "tokenizer_config.json", sep_token=None)
    model = fetched(source, tmp_path / "model", pooling="mean")
    rows = [(query, query + 2, query + 1) for query in range(4)]
    files = written_examples(tmp_path / "examples", rows, paper_texts(), model)
    folder = trained(tmp_path / "trained", Inputs(encoder=model, training=[files], validation=[files]))
    assert SentenceTransformer(str(folder / "model"), device="cpu").tokenizer.sep_token is None
    assert "model.encode([title + ' ' + abstract])" in (folder / "model/README.md").read_text()


LEFT_PADDING = {"strategy": "BatchLongest", "direction": "Left", "pad_to_multiple_of": 8, "pad_id": 0, "pad_type_id": 0}
ELSEWHERE = "some-org/elsewhere"
LEFT_OUT = {
    "another attention": config(_attn_implementation=ELSEWHERE),
    "no tuples": config(return_dict=False, output_attentions=True, torchscript=True),
    "no quantisation": config(quantization_config=None),
    "prompts counted where none are": written(POOLING, include_prompt=False),
    "other numbers": reweighed(lambda weights: weights.update({WORD: weights[WORD].double()})),
    "positions among the weights": more(**{"embeddings.position_ids": torch.arange(32)[None]}),
    "no pooler": reweighed(lambda weights: [weights.pop(f"pooler.dense.{name}") for name in ("weight", "bias")]),
    "a prefix": reweighed(lambda weights: [weights.update({f"bert.{name}": weights.pop(name)}) for name in [*weights]]),
    "weights in a part": indexed("decoy.safetensors"),
    "a pickle that nothing names": lambda folder: (folder / "w.bin").write_bytes(pickle.dumps(Marks(folder / "run"))),
    "padding in front": tokenizer(padding=LEFT_PADDING | {"pad_token": "[PAD]"}),
    "another tokenizer": of_tokenizer(name_or_path=ELSEWHERE, auto_map=["own.T", None]),
    "an adapter elsewhere": written("1_Pooling/adapter_config.json", base_model_name_or_path=ELSEWHERE),
}
"""Changes of a folder that leave its vectors as they are."""


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_changes_no_vector_is_left_out(name, layered, tmp_path):
    folder = shutil.copytree(layered, tmp_path / "layered")
    LEFT_OUT[name](folder)
    model = fetched(folder, tmp_path / "model")
    kept, before = load_file(model / WEIGHTS), load_file(layered / WEIGHTS)
    assert all(torch.equal(kept[name], weight) for name, weight in before.items() if "pooler" not in name)
    assert read_json(model / TOKENIZER)["padding"] is None
    assert not any(ELSEWHERE in path.read_text() for path in model.rglob("*.json"))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"truncate_dim": 4}, "The encoder's own vectors are cut to 4 dimensions; here only the setting dimension"),
        (
            {"prompts": {"query": "q: ", "passage": "p: "}},
            'from the folder of the encoder: Dense true, include_prompt true, normalise false, pooling "mean", prompts '
            '{"query": "q: ", "document": "p: "}',
        ),
    ],
)
def test_what_is_taken_or_left_out_is_told(settings, told, layered, tmp_path, capsys):
    folder = shutil.copytree(layered, tmp_path / "layered")
    edit(folder / "config_sentence_transformers.json", **settings)
    fetched(folder, tmp_path / "model")
    assert told in capsys.readouterr().err


HOSTILE_ADAPTERS = [
    ([], "has no config of bottlenecks"),
    ({}, "cannot be opened as an encoder: KeyError: 'reduction_factor'"),
    ({"reduction_factor": "4"}, "cannot be opened as an encoder: TypeError"),
    ({"reduction_factor": 0}, "cannot be opened as an encoder: ZeroDivisionError"),
    ({"reduction_factor": 8}, "size mismatch"),
    (None, "numbers that are not finite in float32"),
]


@pytest.mark.parametrize(("settings", "message"), HOSTILE_ADAPTERS)
def test_an_adapter_of_another_shape_is_refused(settings, message, layered, tmp_path):
    opened = open_encoder(fetched(layered, tmp_path / "first"))
    switch_on(opened, new_adapter(opened, "search", 4))
    save_adapters(opened, tmp_path / "first", tmp_path / "saved")
    place = tmp_path / "saved/adapters/search"
    if settings is None:
        reweighed(lambda weights: [weight.div_(0) for weight in weights.values()], "adapter.safetensors")(place)
    else:
        edit(place / "adapter_config.json", config=settings)
    with pytest.raises(InputError, match=message):
        fetched(layered, tmp_path / "model", adapters={"search": {"model": str(place)}})
