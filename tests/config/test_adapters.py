"""Adapters in the configuration: which an encoder and a model have, and what is refused."""

import pytest
from tests.configurations import refused

from cocite.config.configuration import configure, resolve
from cocite.config.runs import adapters_of


@pytest.fixture
def adapted(written, tmp_path):
    """A configuration whose encoder is a folder with adapters proximity and search."""
    adapters = {name: {"model": str(tmp_path)} for name in ("proximity", "search")}
    written["encoders"]["small"] = {"model": str(tmp_path), "adapters": adapters}
    return written


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


def test_an_adapter_of_the_hub_must_be_pinned(adapted):
    message = refused(adapted, "encoders.small.adapters", {"search": {"model": "some/adapter"}})
    assert "encoders.small.adapters.search.revision is missing" in message


def test_a_folder_that_is_not_there_is_named(adapted):
    message = refused(adapted, "encoders.small.adapters", {"search": {"model": "./nowhere"}})
    assert "encoders.small.adapters.search.model: the folder ./nowhere does not exist" in message


def test_an_encoder_that_is_built_has_no_adapters(written, tmp_path):
    message = refused(written, "encoders.small.adapters", {"search": {"model": str(tmp_path)}})
    assert "encoders.small.adapters do not go with build" in message


def test_an_adapter_has_the_name_of_a_format(adapted, tmp_path):
    assert "encoders.small.adapters" in refused(adapted, "encoders.small.adapters", {"other": {"model": str(tmp_path)}})
