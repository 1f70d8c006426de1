"""An encoder computes in bfloat16 where that is asked for, or pays, and learns in float32 in any case."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.encoder.building import embedded, write_documents
from tests.examples import curve_in

from cocite.core.atomic import read_json
from cocite.core.options import computes_in
from cocite.encoder.model import cast_for_inference, computing, open_encoder

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("units", "dtype"),
    [({"amx_bf16": False, "avx512_bf16": True}, torch.bfloat16), ({"amx_bf16": False}, torch.float32)],
)
def test_auto_is_bfloat16_where_a_cpu_has_instructions_for_it(monkeypatch, units, dtype):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: units)
    assert computes_in("auto", CPU) == dtype


def test_a_precision_that_is_named_is_kept_to(monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: pytest.fail("it is asked for"))
    assert [computes_in(name, CPU) for name in ("float32", "bfloat16")] == [torch.float32, torch.bfloat16]


def test_vectors_of_bfloat16_point_where_those_of_float32_do(encoder, tmp_path):
    texts = {f"d{number}": (f"bees collect nectar {number}", "from flowers in the meadow") for number in range(9)}
    documents = write_documents(tmp_path / "documents.parquet", texts)
    exact, fast = (embedded(encoder, documents, tmp_path / name, precision=name) for name in ("float32", "bfloat16"))
    cosines = (exact * fast).sum(axis=1) / np.linalg.norm(exact, axis=1) / np.linalg.norm(fast, axis=1)
    assert fast.dtype == np.float32
    assert 0.9999 < cosines.min() < 1 - 1e-9


def test_weights_are_held_in_bfloat16_to_embed_and_in_float32_to_learn(encoder):
    opened = open_encoder(encoder, "bfloat16")
    assert {weight.dtype for weight in opened.parameters()} == {torch.float32}
    with computing(opened):
        assert torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype == torch.bfloat16
    assert {weight.dtype for weight in cast_for_inference(opened).parameters()} == {torch.bfloat16}


LEARNING = {"loss": "mnrl", "epochs": 4}


@pytest.fixture(scope="module")
def fast(train):
    return train(precision="bfloat16", **LEARNING)


def test_a_training_in_bfloat16_learns_as_one_in_float32(fast, train):
    rounded_off, exact = (list(curve_in(folder, "validation_loss").values()) for folder in (fast, train(**LEARNING)))
    assert rounded_off != exact
    assert rounded_off == pytest.approx(exact, rel=0.02)


def test_its_weights_are_float32_and_its_settings_and_card_name_its_numbers(fast):
    assert {weight.dtype for weight in load_file(fast / "model/model.safetensors").values()} == {torch.float32}
    assert read_json(fast / "settings.json")["settings"]["precision"] == "bfloat16"
    assert "| precision | bfloat16 |" in (fast / "model/README.md").read_text()
