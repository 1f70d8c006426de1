"""What is given by hand with --settings is refused as the configuration refuses it, by one sentence."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter
from tests.configurations import refusals

from cocite.config.configuration import SAMPLERS, Configuration, TripletSet
from cocite.config.described import json_schema
from cocite.config.embeddings import ENGINES, Embedding, IndexSettings, Neighbours, SearchSettings
from cocite.config.encoders import LOSSES, EncoderSettings
from cocite.config.engine import EdgeSettings
from cocite.config.entries import Entry, as_json, fields_of, plugins, variants
from cocite.config.graphs import Combination, Counting
from cocite.config.models import Model, TrainingSettings
from cocite.config.runs import METHODS
from cocite.config.settings import parse_settings, settings_of
from cocite.config.table_files import AnyTable
from cocite.core.errors import InputError
from cocite.embeddings.engines import BigGraph

KINDS = {kind.__name__: kind for kind in (EdgeSettings, IndexSettings, SearchSettings, Combination, EncoderSettings)}
KINDS |= {"Counting": Counting, "AnyTable": AnyTable, "TripletSet": TripletSet}


@pytest.mark.parametrize(
    ("kind", "given", "sentence"),
    refusals("""
        EdgeSettings: {max_weight: 9.0} | max_weight has no effect without weighted: true.
        EdgeSettings: {weighted: true, max_weight: 0.0} | key max_weight is 0.0; it must be more than 0.
        EdgeSettings: {weighted: true, weights: true} | weighted does not go with weights: true, which
        EdgeSettings: {weighted: true, import: tsv} | weighted does not go with import: tsv, whose
        IndexSettings: {metric: cosine, index: {kind: flat}} | key index.kind is 'flat'; it must be one of ivf, hn
        IndexSettings: {metric: cosine} | key index is missing.
        SearchSettings: {k: 5, index: {kind: flat, nprobe: 2}} | key index.nprobe does not go with kind: flat.
        Counting: {signal: citation} | key signal is 'citation'; it must be one of cocitation, sentence-cocitation,
            coupling; did you
        Counting: {signal: coupling, max_references: 3} | key max_references does not go with signal: coupling.
        Combination: {of: {}} | key of is {}, which should be non-empty.
        EncoderSettings: {pooling: cls} | needs exactly one of model, package and build.
        AnyTable: {files: a.csv, columns: {title: t}} | key columns.id is missing.
        TripletSet: {sampler: random, per_query: null} | key per_query must be of type integer, not None
    """),
)
def test_wrong_settings_are_refused_with_their_key(kind: str, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        parse_settings(KINDS[kind], json.dumps(given))
    assert str(error.value).startswith("--settings: ")
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[]", "--settings: must be a JSON object."),
        ("{", "--settings: not JSON"),
        ("@.", r"\. cannot be read \(Is a directory\)"),
        ("@none.json", "none.json does not exist."),
    ],
)
def test_what_is_no_object_of_json_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        parse_settings(EdgeSettings, text)


def test_settings_can_stand_in_a_file(tmp_path) -> None:
    (tmp_path / "settings.json").write_text('{"partitions": 4}')
    assert parse_settings(EdgeSettings, f"@{tmp_path}/settings.json").partitions == 4


def test_whole_numbers_stand_for_fractions_and_lists_for_pairs() -> None:
    assert parse_settings(Combination, '{"of": {"one": 2}}').of == {"one": 2.0}
    bands = {"sampler": "neighbours", "embedding": "e", "k_positive": [3, 9], "k_negative": [20, 30]}
    assert parse_settings(TripletSet, json.dumps(bands)).k_positive == (3, 9)


@pytest.mark.parametrize(
    ("settings", "section", "written"),
    [
        (BigGraph, Embedding, {"graph": "g", "dimension": 32}),
        (TrainingSettings, Model, {"triplets": "t", "encoder": "e", "epochs": 2, "seeds": [1, 2]}),
    ],
)
def test_a_step_is_given_the_keys_that_it_uses_and_no_others(
    settings: type[Entry], section: Any, written: dict[str, Any]
) -> None:
    entry = TypeAdapter(section).validate_python(written)
    given = settings_of(entry, settings)
    assert as_json(parse_settings(settings, json.dumps(given))) == given
    used = set(fields_of(settings))
    assert set(given) <= used


def test_building_an_index_is_not_given_how_it_is_searched() -> None:
    index = {"kind": "ivf", "nlist": 8, "nprobe": 2, "recall_queries": 5}
    neighbours = Neighbours.model_validate({"metric": "l2", "k": 9, "among": "texts", "index": index})
    assert settings_of(neighbours, IndexSettings) == {"metric": "l2", "index": {"kind": "ivf", "nlist": 8}}
    assert settings_of(neighbours, SearchSettings) == {"metric": "l2", "k": 9, "index": {"kind": "ivf", "nprobe": 2}}


@pytest.mark.parametrize(
    "package",
    [
        *((SAMPLERS, "sampler"), (ENGINES, "engine")),
        *((package, "kind") for package in (LOSSES, METHODS, "cocite.config.benchmarks")),
    ],
)
def test_a_plugin_is_known_by_the_value_of_its_key(package: tuple[str, str]) -> None:
    found = plugins(*package)
    assert len(found) >= 3
    for name, kind in found.items():
        assert kind.model_fields[package[1]].annotation.__args__ == (name,)


def test_all_keys_are_described() -> None:
    schema = json_schema()
    for name, node in [("Configuration", schema), *schema["$defs"].items()]:
        for key, entry in node.get("properties", {}).items():
            assert entry.get("description", "").strip(), (name, key)
    assert set(schema["properties"]) == set(Configuration.model_fields)
    assert len(list(variants(TripletSet))) == len(plugins(SAMPLERS, "sampler"))
