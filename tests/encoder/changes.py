"""Changes of the folder of a published encoder, each a function of that folder."""

import pickle
import shutil
from pathlib import Path

from safetensors.torch import load_file, save_file
from tests.encoder.published import edit

WEIGHTS, INDEX, TOKENIZER = "model.safetensors", "model.safetensors.index.json", "tokenizer.json"
DENSE, POOLING, TEXTS = "2_Dense/config.json", "1_Pooling/config.json", "sentence_bert_config.json"
WORD = "embeddings.word_embeddings.weight"
NORM = "encoder.layer.1.output.LayerNorm."
LAYER = "encoder.layer.1.output.dense.weight"


class Marks:
    """Marks a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def written(name, **settings):
    """A change of a file of JSON by some keys."""
    return lambda folder: edit(folder / name, **settings)


def changed(name, change):
    """A change of a file of JSON by a function."""
    return lambda folder: edit(folder / name, change)


def replaced(name, text):
    """A change of a file's whole text."""
    return lambda folder: (folder / name).write_text(text)


def without(*names):
    """A folder that lacks some files."""
    return lambda folder: [(folder / name).unlink() for name in names]


def reweighed(change, name=WEIGHTS):
    """A change of weights by a function."""

    def change_file(folder):
        weights = load_file(folder / name)
        change(weights)
        save_file(weights, folder / name)

    return change_file


def indexed(*names, weights=True):
    """Weights in another file, beside an index that names some files."""

    def change(folder):
        if weights:
            shutil.copy(folder / WEIGHTS, folder / "decoy.safetensors")
        (folder / WEIGHTS).rename(folder.parent / "elsewhere.safetensors")
        for name in ("w.bin", "../elsewhere.bin"):
            (folder / name).write_bytes(pickle.dumps(Marks(folder.parent / "unpickled")))
        edit(folder / INDEX, metadata={}, weight_map={f"w{at}": name for at, name in enumerate(names)})

    return change


def spoilt(value, at=WORD, name=WEIGHTS):
    """One number of some weights."""

    def change(weights):
        weights[at].view(-1)[5] = value

    return reweighed(change, name)


def retyped(dtype, at=WORD):
    return reweighed(lambda weights: weights.update({at: (weights[at] * 9).to(dtype)}))


def first_module(**settings):
    return changed("modules.json", lambda modules: [modules[0] | settings, *modules[1:]])


def without_unknown(content):
    content["added_tokens"] = [each for each in content["added_tokens"] if each["content"] != "[UNK]"]
    content["model"]["unk_token"] = "[NONE]"  # noqa: S105
    return content


def added(content, id):
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": id, "content": content, **flags}


def starting_with(id, type=0):
    start, text = {"SpecialToken": {"id": "[CLS]", "type_id": type}}, {"Sequence": {"id": "A", "type_id": 0}}
    tokens = {"[CLS]": {"id": "[CLS]", "ids": [id], "tokens": ["[CLS]"]}}
    return {"type": "TemplateProcessing", "single": [start, text], "pair": [text, text], "special_tokens": tokens}


def of_bytes(content, **settings):
    """A tokenizer whose model is byte-pair encoding with these words."""
    vocabulary = content["model"]["vocab"]
    return content | {"model": {"type": "BPE", "vocab": vocabulary, "merges": [], "unk_token": "[UNK]"} | settings}


def sharing_an_id(content):
    vocabulary = content["model"]["vocab"]
    vocabulary["bees"] = vocabulary["nectar"]
    return content


def with_padding(content):
    padding = {"strategy": "BatchLongest", "direction": "Left", "pad_to_multiple_of": 8}
    return content | {"padding": padding | {"pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}}


def nearly_constant(weights):
    """Make the vectors differ only by rounding."""
    weights[NORM + "weight"].mul_(5e-7)
    weights[NORM + "bias"].fill_(1)


emptying = {"type": "Replace", "pattern": {"Regex": "."}, "content": ""}


def deep(_):
    nested = []
    for _ in range(500):
        nested = [nested]
    return nested
