"""What the steps of a graph embedding are given of its entry."""

import json

from pydantic import TypeAdapter

from cocite.config.embeddings import AnyEngine, Embedding, edge_settings
from cocite.config.engine import EdgeSettings
from cocite.config.settings import parse_settings, settings_of

ENTRY = TypeAdapter(Embedding).validate_python({"graph": "g", "holdout": 0.1})
OF_IMPORT = {
    "holdout": 0.1,
    "holdout_of": "pairs",
    "import": "arrow",
    "max_repetitions": 10,
    "partitions": 1,
    "weights": False,
}
OF_TRAINING = {
    "batch_negatives": 50,
    "batch_size": 1000,
    "chunks": 1,
    "comparator": "dot",
    "dimension": 768,
    "engine": "biggraph",
    "epochs": 20,
    "loss": {"kind": "ranking", "margin": 0.15},
    "lr": 0.1,
    "max_norm": 1.0,
    "uniform_negatives": 50,
    "workers": 1,
}


def test_an_import_is_given_the_keys_that_go_with_the_engine_and_no_others():
    assert edge_settings(ENTRY) == OF_IMPORT
    assert parse_settings(EdgeSettings, json.dumps(OF_IMPORT)).weighted is False


def test_a_training_is_given_the_keys_of_its_engine_and_none_of_the_import():
    assert settings_of(ENTRY, AnyEngine) == OF_TRAINING
    other = ENTRY.model_copy(update={"holdout": 0.2, "partitions": 4, "weights": True})
    assert settings_of(other, AnyEngine) == OF_TRAINING
    assert edge_settings(other) == {**OF_IMPORT, "holdout": 0.2, "partitions": 4, "weights": True}
