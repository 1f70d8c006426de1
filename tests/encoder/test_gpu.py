"""What holds on a GPU: skipped without one."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.benchmarks.made_triplets import write_encoder, write_triplets
from tests.encoder.building import WEIGHTS, assert_goes_on, trained
from tests.encoder.published import edit
from tests.examples import files_in

from cocite.core.atomic import read_json
from cocite.encoder.attention import enable_sequence_packing
from cocite.encoder.documents import documents_of
from cocite.encoder.model import open_encoder
from cocite.encoder.trainer import Inputs

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
FREE_MB = 6000


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """An encoder of MiniLM's size, and triplets of texts of up to 512 tokens."""
    folder = tmp_path_factory.mktemp("large")
    write_encoder(folder / "encoder")
    for seed, (name, queries) in enumerate({"training": 60, "validation": 3}.items()):
        write_triplets(folder / name, queries, seed, folder / "encoder")
    training, validation = (files_in(folder / name) for name in ("training", "validation"))
    return Inputs(encoder=folder / "encoder", training=[training], validation=[validation])


def test_documents_are_packed_and_keep_their_vectors(large):
    packing, padding = (open_encoder(large.encoder, precision) for precision in ("bfloat16", "float32"))
    random = np.random.default_rng(1)
    documents = documents_of([random.integers(5, 9000, size, dtype=np.int32) for size in (500, 3, 40, 77)])
    rows = np.arange(4)
    assert enable_sequence_packing(packing)
    vectors = []
    for encoder, features in ((packing.eval(), documents.packed(rows)), (padding.eval(), documents.padded(rows, 0))):
        on_gpu = {name: some.cuda() if torch.is_tensor(some) else some for name, some in features.items()}
        with torch.inference_mode(), torch.autocast("cuda", torch.bfloat16, enabled=encoder is packing):
            vectors.append(encoder(on_gpu).float())
    assert torch.cosine_similarity(*vectors).min() > 0.999


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
def test_a_stopped_training_ends_with_the_bits_of_a_whole_one(precision, with_dropout, inputs, tmp_path):
    assert_goes_on(tmp_path, replace(inputs, encoder=with_dropout), 3, 2, precision=precision)


@pytest.mark.parametrize("settings", [{"loss": "mnrl"}, {"loss": "mnrl", "trainable": {"kind": "lora"}}])
def test_auto_keeps_to_the_free_memory(settings, large, monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda *_: (FREE_MB * 10**6, 80 * 10**9))
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.empty_cache()
    folder = trained(tmp_path, large, batch_size=256, max_steps=1, precision="bfloat16", **settings)
    assert isinstance(read_json(folder / "settings.json")["settings"]["mini_batch_tokens"], int)
    assert FREE_MB / 3 < torch.cuda.max_memory_allocated() / 1e6 < FREE_MB


def test_mini_batches_change_nothing_beyond_rounding(encoder, inputs, tmp_path):
    without = shutil.copytree(encoder, tmp_path / "encoder")
    edit(without / "config.json", hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    given = replace(inputs, encoder=without)
    whole, parts = (
        load_file(trained(tmp_path / str(tokens), given, loss="mnrl", mini_batch_tokens=tokens) / WEIGHTS)
        for tokens in ("all", 20)
    )
    start = load_file(encoder / "model.safetensors")
    assert max((weight - start[name]).abs().max() for name, weight in whole.items()) > 1e-3
    assert max((weight - parts[name]).abs().max() for name, weight in whole.items()) < 1e-4
