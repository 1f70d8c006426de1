"""Dropout on a CPU drops as often as it is asked to, keeps the expected sum, and reaches attention."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AutoConfig, AutoModel

from cocite.encoder import dropout
from cocite.encoder.documents import documents_of
from cocite.encoder.dropout import Dropout, let_drop_fast
from cocite.encoder.model import Encoder, open_encoder
from cocite.encoder.tokens import features_of

NUMBERS = torch.ones(400, 501)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.013])
def test_it_drops_as_often_as_asked_and_keeps_the_expected_sum(p):
    torch.manual_seed(1)
    kept = Dropout(p)(NUMBERS)
    deviation = np.sqrt(p * (1 - p) / NUMBERS.numel())
    assert (kept == 0).double().mean().item() == pytest.approx(p, abs=5 * deviation)
    assert kept.double().mean().item() == pytest.approx(1, abs=5 * deviation / (1 - p))
    assert len(kept.unique()) == 2


def test_what_is_dropped_does_not_hang_on_its_place():
    torch.manual_seed(1)
    dropped = (Dropout(0.5)(NUMBERS) == 0).double() - 0.5
    for lag in (1, 2, 3, 4, 8):
        assert abs(float((dropped[:, lag:] * dropped[:, :-lag]).mean())) < 0.005


def test_it_follows_from_the_seed_and_its_gradients_pass_where_numbers_do():
    numbers = NUMBERS.clone().requires_grad_()
    torch.manual_seed(5)
    first = Dropout(0.3)(numbers)
    first.sum().backward()
    torch.manual_seed(5)
    assert torch.equal(Dropout(0.3)(NUMBERS), first)
    assert torch.equal(numbers.grad, first.detach())
    assert not torch.equal(Dropout(0.3)(NUMBERS), first)


def test_outside_of_a_training_and_without_probability_nothing_changes():
    assert Dropout(0.3).eval()(NUMBERS) is NUMBERS
    assert Dropout(0.0)(NUMBERS) is NUMBERS


def test_attention_drops_pairs_of_tokens_and_is_that_of_torch_on_average():
    generator = torch.Generator().manual_seed(1)
    query, key, value = torch.randn(3, 2, 2, 6, 4, generator=generator)
    mask = torch.ones(2, 1, 6, 6, dtype=torch.bool)
    mask[1, :, :, 4:] = False
    exact = scaled_dot_product_attention(query, key, value, mask).transpose(1, 2)
    torch.manual_seed(2)
    drawn = torch.stack([dropout._attention(nn.Module(), query, key, value, mask, dropout=0.2)[0] for _ in range(4000)])
    assert drawn.std(dim=0).min() > 0.01
    torch.testing.assert_close(drawn.mean(dim=0), exact, rtol=0, atol=0.08)


@pytest.mark.parametrize("kind", ["causal", "a mask that adds", "shared keys"])
def test_attention_that_is_not_of_all_tokens_to_all_is_that_of_torch(kind):
    query, key, value = torch.randn(3, 2, 2, 6, 4, generator=torch.Generator().manual_seed(1))
    mask = torch.randn(2, 1, 6, 6) if kind == "a mask that adds" else None
    module = nn.Module()
    module.is_causal = kind == "causal"
    if kind == "shared keys":
        key, value, module.num_key_value_groups = key[:, :1], value[:, :1], 2
    exact = scaled_dot_product_attention(query, key, value, mask, is_causal=module.is_causal, enable_gqa=True)
    drawn, _ = dropout._attention(module, query, key, value, mask, dropout=1e-9)
    torch.testing.assert_close(drawn, exact.transpose(1, 2))


@pytest.fixture
def models(encoder):
    """An encoder with torch's dropout, and the same with ours."""
    opened = open_encoder(encoder)
    torch.manual_seed(1)
    config = AutoConfig.for_model(
        "bert", vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    with_torch = Encoder(AutoModel.from_config(config), "mean", opened.tokenizer)
    fast = copy.deepcopy(with_torch)
    let_drop_fast(fast)
    return with_torch, fast


@pytest.fixture(scope="module")
def features():
    documents = documents_of([np.array(ids, dtype=np.int32) for ids in ([7, 8, 9, 10, 11], [12], [13, 14, 15])])
    return features_of(documents, np.arange(3), 0)


def test_an_encoder_drops_by_ours_in_training_and_embeds_as_before(models, features):
    with_torch, fast = models
    assert not any(type(module) is nn.Dropout for module in fast.transformer.modules())
    assert {module.p for module in fast.transformer.modules() if isinstance(module, Dropout)} == {0.1}
    assert not torch.equal(fast(features), fast(features))
    assert torch.equal(fast.eval()(features), with_torch.eval()(features))
    assert fast.state_dict().keys() == with_torch.state_dict().keys()


def test_without_dropout_in_layers_that_of_attention_alone_is_at_work(models, features):
    _, fast = models
    for name, module in fast.transformer.named_modules():
        if isinstance(module, Dropout) and not name.endswith("attention.self.dropout"):
            module.p = 0.0
    assert not torch.equal(fast(features), fast(features))
