"""Adapters in the configuration: which an encoder and a model have, and what is refused."""

import pytest
from tests.configurations import refused

from cocite.config.configuration import configure, resolve
from cocite.config.runs import adapters_of


@pytest.mark.parametrize(
    ("trainable", "has"),
    [
        ("all", set()),
        ("lora", set()),
        ("adapter", {"proximity", "search"}),
        ({"kind": "adapter", "name": "regression"}, {"proximity", "search", "regression"}),
    ],
)
def test_a_model_has_the_adapters_of_its_encoder_where_it_trains_one(adapted, trainable, has):
    adapted["models"]["cocite"]["trainable"] = trainable
    config = configure(adapted)
    assert adapters_of(config, "cocite") == has
    assert adapters_of(config, "untrained_small") == {"proximity", "search"}


def test_an_adapter_that_exists_has_no_other_width(adapted):
    trainable = {"kind": "adapter", "name": "search", "reduction": 8}
    assert "models.cocite.trainable.reduction (8) has no effect" in refused(
        adapted, "models.cocite.trainable", trainable
    )
    adapted["models"]["cocite"]["trainable"] = trainable | {"name": "regression"}
    assert resolve(adapted)["models"]["cocite"]["trainable"]["reduction"] == 8
