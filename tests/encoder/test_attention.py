"""Packed documents have the vectors and gradients of padded ones; dropout on a CPU drops as often as it is asked to."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.encoder.building import assert_goes_on
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AutoConfig, AutoModel

from cocite.core.atomic import read_json
from cocite.encoder import attention, trainer
from cocite.encoder.attention import Dropout, _attention, attention_of_each, enable_sequence_packing, use_fast_dropout
from cocite.encoder.documents import documents_of
from cocite.encoder.model import Encoder, open_encoder


def documents_with(*texts):
    return documents_of([np.array(text, dtype=np.int32) for text in texts])


FIVE, ONE, THREE = [7, 8, 9, 10, 11], [12], [13, 14, 15]


@pytest.fixture
def model(encoder):
    opened = open_encoder(encoder)
    opened.eval()
    return opened


def vectors_of(model, features):
    with torch.inference_mode():
        return model(features)


def assert_packs(model, documents):
    """Assert that packed documents, and then padded ones, have the vectors of padded ones without packing."""
    rows = np.arange(len(documents))
    padded = vectors_of(model, documents.padded(rows, model.tokenizer.padding))
    assert enable_sequence_packing(model)
    packed = vectors_of(model, documents.packed(rows, first_position=model.first_position))
    torch.testing.assert_close(packed, padded, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(vectors_of(model, documents.padded(rows, model.tokenizer.padding)), padded)


def test_documents_lie_one_after_the_other_and_each_counts_its_positions_from_the_first():
    row = documents_with(FIVE, ONE, THREE).packed(np.array([2, 0]), first_position=2)
    assert row["input_ids"].tolist() == [THREE + FIVE + 120 * [0]]
    assert row["position_ids"].tolist() == [[2, 3, 4, 2, 3, 4, 5, 6] + 120 * [2]]
    assert row["cu_seq_lens_q"].tolist() == [0, 3, 8, 128]
    assert row["max_length_q"] == 120
    full = documents_with(128 * [7]).packed(np.array([0]))  # gets another row of filling
    assert full["cu_seq_lens_q"].tolist() == [0, 128, 256]


@pytest.mark.parametrize("left_out", [None, [2, 1, 2]])
@pytest.mark.parametrize("pooling", ["cls", "last", "mean", "max"])
def test_packed_documents_have_the_vectors_of_padded_ones(model, pooling, left_out):
    model.pooling = pooling
    documents = documents_with(FIVE, ONE, THREE)
    assert_packs(model, replace(documents, left_out=None if left_out is None else np.array(left_out)))


def test_dropout_reaches_the_attention_of_packed_documents(model):
    enable_sequence_packing(model)
    for layer in model.transformer.encoder.layer:
        layer.attention.self.dropout.p = 0.5
    row = documents_with(FIVE, THREE).packed(np.arange(2))
    whole = vectors_of(model, row)
    model.train()
    assert not torch.allclose(vectors_of(model, row), whole)


OF_THEIR_OWN = {
    "roberta": {"pad_token_id": 1, "max_position_embeddings": 40},
    "modernbert": {"local_attention": 8, "global_attn_every_n_layers": 2, "pad_token_id": 0},
    "qwen3": {"num_key_value_heads": 1, "head_dim": 8, "pad_token_id": 0},
    "llama": {"num_key_value_heads": 2, "pad_token_id": 0},
}
"""What some architectures need beside the sizes; ModernBERT's first layer sees everything, its second a window."""


def small_transformer(architecture, **settings):
    sizes = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    torch.manual_seed(1)
    return AutoModel.from_config(AutoConfig.for_model(architecture, intermediate_size=32, **sizes, **settings))


@pytest.mark.parametrize("architecture", OF_THEIR_OWN)
def test_each_architecture_that_packs_gives_the_vectors_of_padded_documents(model, architecture):
    transformer = small_transformer(architecture, **OF_THEIR_OWN[architecture])
    tokenizer = replace(model.tokenizer, padding=transformer.config.pad_token_id)
    other = Encoder(transformer, "mean", tokenizer).eval()
    assert_packs(other, documents_with(list(range(5, 35)), ONE, THREE))


def test_a_roberta_whose_tokenizer_pads_with_another_token_stays_padded(model):
    model.transformer.config.model_type, model.transformer.config.pad_token_id = "roberta", 1
    assert not enable_sequence_packing(model)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [attention.ALL, 2])
def test_attention_of_each_is_that_of_the_definition(window, causal):
    query, key, value = torch.randn(3, 8, 2, 4, generator=torch.Generator().manual_seed(1))
    starts = torch.tensor([0, 5, 8], dtype=torch.int32)
    attended = attention_of_each((query, key, value), starts, 5, scale=0.5, window=window, causal=causal)
    document = np.repeat([0, 1], [5, 3])

    def sees(one, other):
        is_near = window == attention.ALL or abs(other - one) <= window
        return document[other] == document[one] and is_near and (other <= one or not causal)

    for head in range(2):
        for one in range(8):
            seen = [other for other in range(8) if sees(one, other)]
            weights = torch.softmax(0.5 * key[seen, head] @ query[one, head], dim=0)
            torch.testing.assert_close(attended[one, head], weights @ value[seen, head])


def no_kernel(*_, **__):
    raise RuntimeError("FlashAttention only supports float16 and bfloat16.")


def heedless_kernel(tokens, starts, longest, **keywords):
    """Attention that sees the neighbours of packed documents."""
    [length] = {len(some) for some in tokens}
    return attention_of_each(tokens, torch.tensor([0, length]), length, **keywords)


def kernel_without_window(*arguments, window, **keywords):
    """Attention that sees all of a document, whatever is asked for."""
    return attention_of_each(*arguments, window=attention.ALL, **keywords)


@pytest.mark.parametrize("kernel", [no_kernel, heedless_kernel, kernel_without_window, None])
def test_without_a_kernel_that_does_it_right_or_of_other_architectures_documents_stay_padded(
    model, monkeypatch, kernel
):
    if kernel:
        monkeypatch.setitem(attention.KERNELS, "cpu", kernel)
    else:
        monkeypatch.setattr(attention, "ARCHITECTURES", ("another",))
    assert not enable_sequence_packing(model)
    assert model.transformer.config._attn_implementation == "sdpa"


def test_a_training_as_on_a_gpu_that_was_stopped_ends_as_one_that_was_not(inputs, tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "ON_GPU", "cpu")
    assert_goes_on(tmp_path, inputs, 4, epochs=2, lr=1e-3)
    assert attention.OURS not in str(read_json(tmp_path / "whole/model/config.json"))


NUMBERS = torch.ones(400, 501)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.013])
def test_it_drops_as_often_as_asked_and_keeps_the_expected_sum(p):
    torch.manual_seed(1)
    kept = Dropout(p)(NUMBERS)
    deviation = np.sqrt(p * (1 - p) / NUMBERS.numel())
    assert (kept == 0).double().mean().item() == pytest.approx(p, abs=5 * deviation)
    assert kept.double().mean().item() == pytest.approx(1, abs=5 * deviation / (1 - p))
    assert len(kept.unique()) == 2


def test_it_follows_from_the_seed_and_its_gradients_pass_where_numbers_do():
    numbers = NUMBERS.clone().requires_grad_()
    torch.manual_seed(5)
    first = Dropout(0.3)(numbers)
    first.sum().backward()
    torch.manual_seed(5)
    assert torch.equal(Dropout(0.3)(NUMBERS), first)
    assert torch.equal(numbers.grad, first.detach())
    assert not torch.equal(Dropout(0.3)(NUMBERS), first)


def test_attention_drops_pairs_of_tokens_and_is_that_of_torch_on_average():
    generator = torch.Generator().manual_seed(1)
    query, key, value = torch.randn(3, 2, 2, 6, 4, generator=generator)
    mask = torch.ones(2, 1, 6, 6, dtype=torch.bool)
    mask[1, :, :, 4:] = False
    exact = scaled_dot_product_attention(query, key, value, mask).transpose(1, 2)
    torch.manual_seed(2)
    drawn = torch.stack([_attention(nn.Module(), query, key, value, mask, dropout=0.2)[0] for _ in range(4000)])
    assert drawn.std(dim=0).min() > 0.01
    torch.testing.assert_close(drawn.mean(dim=0), exact, rtol=0, atol=0.08)


def test_padding_that_attends_to_nothing_has_finite_numbers_and_gradients():
    query, key, value = torch.randn(3, 1, 2, 6, 4).requires_grad_()
    mask = torch.ones(1, 1, 6, 6, dtype=torch.bool)
    mask[..., 5, :] = False
    attended, _ = _attention(nn.Module(), query, key, value, mask, dropout=0.2)
    gradients = torch.autograd.grad(attended[:, :5].sum(), [query, key, value])
    assert all(numbers.isfinite().all() for numbers in (attended, *gradients))


@pytest.mark.parametrize("kind", ["causal", "a mask that adds", "shared keys"])
def test_attention_that_is_not_of_all_tokens_to_all_is_that_of_torch(kind):
    query, key, value = torch.randn(3, 2, 2, 6, 4, generator=torch.Generator().manual_seed(1))
    mask = torch.randn(2, 1, 6, 6) if kind == "a mask that adds" else None
    module = nn.Module()
    module.is_causal = kind == "causal"
    if kind == "shared keys":
        key, value, module.num_key_value_groups = key[:, :1], value[:, :1], 2
    exact = scaled_dot_product_attention(query, key, value, mask, is_causal=module.is_causal, enable_gqa=True)
    drawn, _ = _attention(module, query, key, value, mask, dropout=1e-9)
    torch.testing.assert_close(drawn, exact.transpose(1, 2))


def test_on_another_device_than_a_cpu_it_is_the_attention_of_torch():
    tokens = torch.empty(3, 2, 2, 6, 4, device="meta")
    attended, _ = _attention(nn.Module(), *tokens, torch.ones(2, 1, 6, 6, dtype=torch.bool, device="meta"), dropout=0.2)
    assert (attended.shape, attended.device.type) == ((2, 6, 2, 4), "meta")


def test_an_encoder_drops_by_ours_in_training_also_in_attention_alone_and_embeds_as_before(encoder):
    with_torch = Encoder(small_transformer("bert"), "mean", open_encoder(encoder).tokenizer)
    fast = copy.deepcopy(with_torch)
    use_fast_dropout(fast)
    features = documents_with(FIVE, ONE, THREE).padded(np.arange(3), 0)
    assert not any(type(module) is nn.Dropout for module in fast.transformer.modules())
    assert {module.p for module in fast.transformer.modules() if isinstance(module, Dropout)} == {0.1}
    assert not torch.equal(fast(features), fast(features))
    assert torch.equal(fast.eval()(features), with_torch.eval()(features))
    assert fast.state_dict().keys() == with_torch.state_dict().keys()
    fast.train()
    for name, module in fast.transformer.named_modules():
        if isinstance(module, Dropout) and not name.endswith("attention.self.dropout"):
            module.p = 0.0
    assert not torch.equal(fast(features), fast(features))
