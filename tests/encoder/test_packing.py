"""Packed documents have the vectors and gradients of padded ones, and know nothing of their neighbours."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModel

from cocite.config.models import TrainingSettings
from cocite.core.tables.files import read_json
from cocite.encoder import packing, tokens, training
from cocite.encoder.batches import Collator
from cocite.encoder.documents import Documents
from cocite.encoder.examples import open_examples
from cocite.encoder.learner import Learner
from cocite.encoder.model import Encoder, open_encoder
from cocite.encoder.objective import Objective
from cocite.encoder.packing import attention_of_each, let_pack
from cocite.encoder.schedule import Stopping, Unfinished
from cocite.encoder.tokens import features_of, packed
from cocite.encoder.training import train_encoder

TERMS = TrainingSettings(loss={"kind": "cosent", "temperature": 5.0}).comparisons


def documents_of(*texts: list[int]) -> Documents:
    return tokens.documents_of([np.array(text, dtype=np.int32) for text in texts])


FIVE, ONE, THREE = [7, 8, 9, 10, 11], [12], [13, 14, 15]


@pytest.fixture
def model(encoder):
    opened = open_encoder(encoder)
    opened.eval()
    return opened


def vectors_of(model, features):
    with torch.inference_mode():
        return model(features)


def test_documents_lie_one_after_the_other_and_each_counts_its_positions_from_the_first():
    row = packed(documents_of(FIVE, ONE, THREE), np.array([2, 0]), first_position=2)
    assert row["input_ids"].tolist() == [THREE + FIVE + 120 * [0]]
    assert row["position_ids"].tolist() == [[2, 3, 4, 2, 3, 4, 5, 6] + 120 * [2]]
    assert row["cu_seq_lens_q"].tolist() == [0, 3, 8, 128]
    assert row["max_length_q"] == 120


def test_a_row_that_is_full_gets_another_of_filling():
    row = packed(documents_of(128 * [7]), np.array([0]))
    assert row["input_ids"].shape == (1, 256)
    assert row["cu_seq_lens_q"].tolist() == [0, 128, 256]


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_packed_documents_have_the_vectors_of_padded_ones(model, pooling):
    model.pooling = pooling
    documents, rows = documents_of(FIVE, ONE, THREE), np.arange(3)
    padded = vectors_of(model, features_of(documents, rows, 0))
    assert let_pack(model)
    torch.testing.assert_close(vectors_of(model, packed(documents, rows)), padded, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(vectors_of(model, features_of(documents, rows, 0)), padded)


def test_a_packed_document_knows_nothing_of_its_neighbours(model):
    let_pack(model)
    some, others = (
        vectors_of(model, packed(documents_of(neighbour, THREE), np.arange(2)))[1] for neighbour in (FIVE, ONE)
    )
    torch.testing.assert_close(some, others, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [None, 40])
def test_packing_leaves_the_gradients_as_they_are(model, inputs, size):
    examples = open_examples(inputs.training[0])
    objective = Objective(learner=Learner(model), comparisons=TERMS, recompute=bool(size))
    gradients = []
    for packs in (False, True):
        assert not packs or let_pack(model)
        batch = Collator(
            examples=examples, padding=0, start=10**6, mini_batch_tokens=size, packs=packs, comparisons=TERMS
        )(np.arange(8))
        model.zero_grad()
        loss, _ = objective(batch)
        loss.backward()
        learned = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
        gradients.append({"loss": loss.detach(), **{name: gradient.clone() for name, gradient in learned.items()}})
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, rtol=1e-4, atol=1e-6)


def test_dropout_reaches_the_attention_of_packed_documents(model):
    let_pack(model)
    for layer in model.transformer.encoder.layer:
        layer.attention.self.dropout.p = 0.5
    row = packed(documents_of(FIVE, THREE), np.arange(2))
    whole = vectors_of(model, row)
    model.train()
    assert not torch.allclose(vectors_of(model, row), whole)


OF_THEIR_OWN = {
    "bert": {},
    "roberta": {"pad_token_id": 1, "max_position_embeddings": 40},
    "modernbert": {"local_attention": 8, "global_attn_every_n_layers": 2, "pad_token_id": 0},
}
"""What some architectures need beside the sizes; ModernBERT's first layer sees everything, its second a window."""


@pytest.mark.parametrize("architecture", OF_THEIR_OWN)
def test_each_architecture_that_packs_gives_the_vectors_of_padded_documents(model, architecture):
    sizes = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = AutoConfig.for_model(architecture, intermediate_size=32, **sizes, **OF_THEIR_OWN[architecture])
    torch.manual_seed(1)
    tokenizer = replace(model.tokenizer, padding=config.pad_token_id)
    other = Encoder(AutoModel.from_config(config), "mean", tokenizer).eval()
    documents, rows = documents_of(list(range(5, 35)), ONE, THREE), np.arange(3)
    padded = vectors_of(other, features_of(documents, rows, config.pad_token_id))
    assert let_pack(other)
    row = packed(documents, rows, first_position=other.first_position)
    torch.testing.assert_close(vectors_of(other, row), padded, rtol=1e-5, atol=1e-6)
    again = vectors_of(other, features_of(documents, rows, config.pad_token_id))
    torch.testing.assert_close(again, padded, rtol=1e-5, atol=1e-6)


def test_a_roberta_whose_tokenizer_pads_with_another_token_stays_padded(model):
    model.transformer.config.model_type, model.transformer.config.pad_token_id = "roberta", 1
    assert not let_pack(model)


@pytest.mark.parametrize("window", [packing.ALL, 2])
def test_attention_of_each_is_that_of_the_definition(window):
    query, key, value = torch.randn(3, 8, 2, 4, generator=torch.Generator().manual_seed(1))
    starts = torch.tensor([0, 5, 8], dtype=torch.int32)
    attended = attention_of_each(query, key, value, starts, 5, dropout=0.0, scale=0.5, window=window)
    document = np.repeat([0, 1], [5, 3])
    for head in range(2):
        for one in range(8):
            seen = [other for other in range(8) if document[other] == document[one]]
            seen = [other for other in seen if window == packing.ALL or abs(other - one) <= window]
            weights = torch.softmax(0.5 * key[seen, head] @ query[one, head], dim=0)
            torch.testing.assert_close(attended[one, head], weights @ value[seen, head])


def no_kernel(*_, **__):
    raise RuntimeError("FlashAttention only supports float16 and bfloat16.")


def heedless_kernel(query, key, value, starts, longest, **keywords):
    """Attention that sees the neighbours of packed documents."""
    ends = torch.tensor([0, len(query)])
    return attention_of_each(query, key, value, ends, len(query), **keywords)


def kernel_without_window(*arguments, window, **keywords):
    """Attention that sees all of a document, whatever is asked for."""
    return attention_of_each(*arguments, window=packing.ALL, **keywords)


@pytest.mark.parametrize("kernel", [no_kernel, heedless_kernel, kernel_without_window])
def test_without_a_kernel_that_does_it_right_documents_stay_padded(model, monkeypatch, kernel):
    monkeypatch.setitem(packing.KERNELS, "cpu", kernel)
    assert not let_pack(model)
    assert model.transformer.config._attn_implementation == "sdpa"


def test_other_architectures_stay_padded(model, monkeypatch):
    monkeypatch.setattr(packing, "ARCHITECTURES", ("another",))
    assert not let_pack(model)
    assert model.transformer.config._attn_implementation == "sdpa"


def test_a_training_as_on_a_gpu_that_was_stopped_ends_as_one_that_was_not(inputs, outputs_in, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "ON_GPU", "cpu")
    settings = TrainingSettings(epochs=2, batch_size=4, lr=1e-3)

    class AfterFourSteps(Stopping):
        steps = 0

        def reason(self):
            self.steps += 1
            return "a test" if self.steps == 4 else None

    def train(folder, stopping):
        where = {"threads": 1, "state": folder / "state", "stopping": stopping}
        train_encoder(inputs, outputs_in(folder), settings, seed=1, training_seed=1, **where)

    train(tmp_path / "whole", Stopping())
    with pytest.raises(Unfinished):
        train(tmp_path / "stopped", AfterFourSteps())
    train(tmp_path / "stopped", Stopping())
    for file in ("model/model.safetensors", "curves.parquet"):
        assert (tmp_path / "stopped" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
    assert packing.NAME not in str(read_json(tmp_path / "whole/model/config.json"))
