"""What is given by hand with --settings: refused where the configuration's schema refuses it, by one sentence."""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import pytest

from cocite.config.configuration import load_schema
from cocite.config.settings import parse_settings
from cocite.corpus.queries.candidates import QuerySettings
from cocite.embeddings.engines.biggraph.configuration import GraphEmbeddingSettings
from cocite.embeddings.engines.biggraph.weights import EdgeSettings
from cocite.encoder.settings import ArchitectureSettings, EncoderSettings, TrainingSettings, training_settings
from cocite.evaluation.preparation.holdout import HoldoutSettings
from cocite.graph.edges import CombinationSettings
from cocite.graph.pairs import PairSettings
from cocite.ground.errors import InputError
from cocite.neighbours.choices import IndexSettings, SearchSettings

SCHEMA = load_schema()
DEFINED = SCHEMA["$defs"]
SAMPLERS = {
    name: import_module(f"cocite.triplets.samplers.{name}").Settings
    for name in ("neighbours", "citations", "cocited", "random", "file", "subset")
}


def _chosen(definition: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What an entry may hold that chooses the sampler, or the kind of benchmark, of a name."""
    while definition.get("title") != name:
        definition = definition["then"] if definition.get("then", {}).get("title") == name else definition["else"]
    properties: Mapping[str, Any] = definition["properties"]
    return properties


SECTIONS = [
    (QuerySettings, DEFINED["queries"]["properties"]),
    (PairSettings, DEFINED["pair_graph"]["properties"]),
    (CombinationSettings, DEFINED["combination_graph"]["properties"]),
    (GraphEmbeddingSettings, DEFINED["embedding"]["properties"]),
    (EdgeSettings, DEFINED["embedding"]["properties"]),
    (IndexSettings, DEFINED["embedding"]["properties"]["neighbours"]["properties"]),
    (SearchSettings, DEFINED["embedding"]["properties"]["neighbours"]["properties"]),
    *((settings, _chosen(DEFINED["triplets"], name)) for name, settings in SAMPLERS.items()),
    (EncoderSettings, DEFINED["encoder"]["properties"]),
    (ArchitectureSettings, DEFINED["encoder"]["properties"]["build"]["properties"]),
    (TrainingSettings, DEFINED["model"]["properties"]),
    (HoldoutSettings, _chosen(DEFINED["benchmark"], "holdout")),
]


def _refused(key: Mapping[str, Any] | bool) -> Iterator[Any]:
    """Values that the schema of a key refuses; none of a key that it leaves to others."""
    if isinstance(key, bool):
        return
    if "$ref" in key:
        key = {**DEFINED[key["$ref"].rsplit("/", 1)[1]], **key}
    types = key.get("type", "string" if "enum" in key else "object")
    types = {types} if isinstance(types, str) else set(types)
    samples = {"string": "nonsense", "integer": 3, "number": 2.5, "boolean": True, "object": {"nonsense": []}}
    samples.update(array=["nonsense"], null=None)
    accepted = types | ({"integer"} if "number" in types else set())
    yield from (sample for name, sample in samples.items() if name not in accepted)
    if "enum" in key:
        yield "nonsense"
    bounds = {"minimum": -1, "exclusiveMinimum": 0, "maximum": 1, "exclusiveMaximum": 0}
    yield from (key[bound] + beyond for bound, beyond in bounds.items() if bound in key)


def _accepted(key: Mapping[str, Any] | bool) -> Iterator[Any]:
    """Values at the edges of what the schema of a key accepts."""
    if isinstance(key, bool):
        return
    if "$ref" in key:
        key = {**DEFINED[key["$ref"].rsplit("/", 1)[1]], **key}
    yield from (key[name] for name in ("minimum", "maximum", "default") if name in key)
    yield from key.get("enum", [])


CASES = [
    pytest.param(kind, field.name.rstrip("_"), value, id=f"{kind.__name__}-{field.name}-{json.dumps(value)}")
    for kind, properties in SECTIONS
    for field in dataclasses.fields(kind)
    for value in _refused(properties.get(field.name.rstrip("_"), True))
    if value is not None or field.default is not None
]


@pytest.mark.parametrize(("kind", "key", "value"), CASES)
def test_what_the_schema_refuses_is_refused_with_its_key(kind: Any, key: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^--settings: {key}( is|:) "):
        parse_settings(kind, json.dumps({key: value}))


ACCEPTED = [
    pytest.param(kind, field.name.rstrip("_"), value, id=f"{kind.__name__}-{field.name}-{json.dumps(value)}")
    for kind, properties in SECTIONS
    for field in dataclasses.fields(kind)
    for value in _accepted(properties.get(field.name.rstrip("_"), True))
    if (kind, value) != (IndexSettings, "flat")  # which needs no index
]


def complaint(kind: Any, given: dict[str, Any]) -> str:
    """What is said of settings; nothing where they will do."""
    try:
        parse_settings(kind, json.dumps(given))
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("kind", "key", "value"), ACCEPTED)
def test_what_the_schema_accepts_is_accepted(kind: Any, key: str, value: Any) -> None:
    told = complaint(kind, {key: value})
    assert not told.startswith((f"--settings: {key} is ", f"--settings: {key}:"))


def test_a_key_of_a_loss_is_held_to_what_the_loss_says() -> None:
    with pytest.raises(InputError, match="A setting of the loss infonce: temperature is 0"):
        training_settings('{"loss": "infonce", "temperature": 0}')


def test_whole_numbers_stand_for_fractions_and_lists_for_pairs() -> None:
    assert parse_settings(CombinationSettings, '{"of": {"one": 2}}').of == {"one": 2.0}
    ranks = parse_settings(SAMPLERS["neighbours"], '{"per_query": 5, "easy": 0, "k_positive": [3, 9]}').k_positive
    assert ranks == (3, 9)
