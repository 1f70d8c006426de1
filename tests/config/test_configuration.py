"""What a configuration stands for as a whole, and what is said of one that cannot be run; grids and maps of probes."""

from datetime import date
from pathlib import Path

import pytest
from tests.configurations import recorded, refused

from cocite.config.configuration import configure, resolve, resolve_or_explain
from cocite.config.entries import MEANINGS
from cocite.config.probes import described_loss, named_sets
from cocite.core.errors import InputError

ROOT = Path(__file__).parents[2]


def test_a_release_without_quotes_is_the_date_that_yaml_takes_it_for(written):
    written["release"] = date(2026, 1, 6)
    assert resolve(written)["release"] == "2026-01-06"


def test_a_benchmark_on_the_hub_is_pinned_without_being_told(written):
    written["benchmarks"] = {"sre": {"kind": "scirepeval", "hub": {}}}
    hub = resolve(written)["benchmarks"]["sre"]["hub"]
    assert [hub[half]["dataset"] for half in ("texts", "labels")] == ["allenai/scirepeval", "allenai/scirepeval_test"]
    assert all(len(hub[half]["revision"]) == 40 for half in hub)


def test_the_default_configuration_is_complete_with_defaults(written):
    config = resolve(written)
    assert config["models"]["cocite"]["epochs"] == 1
    assert config["embeddings"]["citation-dot"]["neighbours"]["metric"] == "cosine"
    assert written["models"]["cocite"].get("epochs") is None
    assert "oracle" not in {entry["sampler"] for entry in config["triplets"].values()}


def test_all_that_is_wrong_is_told_at_once(written):
    written["models"]["cocite"] |= {"los": "triplet", "epochs": 0}
    _, faults = resolve_or_explain(written | {"run_seed": -1})
    assert len(faults) == 3
    assert [any(key in fault for fault in faults) for key in ("cocite.los ", "cocite.epochs ", "seed ")] == [True] * 3


def test_what_does_not_fit_together_is_told_for_each_section(written):
    written["models"]["cocite"]["encoder"] = "big"
    written["queries"] = {"from": "file", "path": "none.txt", "holdout": 200}
    _, faults = resolve_or_explain(written | {"release": "mine"})
    assert len(faults) == 3
    for key in ("release is mine", "queries.path: the file none.txt", "models.cocite.encoder names 'big'"):
        assert any(f"Configuration key {key}" in fault for fault in faults)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("encoders.small.package", " ~"),
        ("triplets.specter.group", " ~"),
        ("corpus", {"source": "s2", "api": " ~"}),
        ("queries", {"from": "triplets", "revision": " ~", "count": 5}),
        ("graphs. ~", {"signal": "citation"}),
    ],
)
def test_no_message_shows_a_regular_expression(written, path, value):
    message = refused(written, path, value)
    assert not any(pattern in message for pattern in MEANINGS)
    assert not set("^$[]*+\\") & set(message)
    assert "must be " in message


def test_combinations_may_be_parts_of_others_but_not_of_themselves(written):
    parts = {"first": {"cocitation": 1.0}, "second": {"first": 0.5, "cocitation": 2.0}}
    written["graphs"] |= {name: {"signal": "combination", "of": of} for name, of in parts.items()}
    assert resolve(written)["graphs"]["second"]["rescale"] == "none"
    assert "graphs.first.of: a combination must not be a part of itself" in refused(
        written, "graphs.first.of", {"second": 1.0}
    )


def test_a_name_stands_for_an_entry_that_holds_nothing_else(written):
    written["models"]["cocite"]["trainable"] = "lora"
    config = resolve(written)
    assert config["models"]["cocite"]["trainable"] == {"kind": "lora", "rank": 8, "alpha": 16}
    assert resolve(written | {"models": config["models"]}) == config


def test_a_variable_that_is_not_set_is_named(written, monkeypatch):
    monkeypatch.delenv("COCITE_NOWHERE", raising=False)
    corpus = {"source": "directory", "path": "$COCITE_NOWHERE/release"}
    assert "corpus.path is '$COCITE_NOWHERE/release', but that variable is not set" in refused(
        written, "corpus", corpus
    )


def test_an_encoder_reads_title_and_abstract_unless_it_names_fields_and_authors_of_a_corpus_that_keeps_them(written):
    assert resolve(written)["encoders"]["small"].keys().isdisjoint({"text", "sentence_wise"})
    written["corpus"]["authors"] = True
    for fields in (["title", "authors"], ["title", "abstract", "venue", "year"]):
        written["encoders"]["small"]["text"] = fields
        assert resolve(written)["encoders"]["small"]["text"] == fields


def test_a_grid_is_a_set_for_each_combination_in_a_group_of_its_own(with_probe):
    config = resolve(with_probe)
    made = {name: config["triplets"][name] for name in ("bands-1", "bands-2", "bands-3", "bands-4")}
    bands = [(entry["k_positive"], entry["k_negative"]) for entry in made.values()]
    assert bands == [(10, 60), (10, 80), (20, 60), (20, 80)]
    assert {entry["group"] for entry in made.values()} == {"bands"}
    assert all(entry["embedding"] == "cocitation-dot" for entry in made.values())
    assert recorded(config).probes["which"].sets == ["specter", *made]
    assert list(named_sets(recorded(config))) == ["cocite", "specter"]
    assert resolve(config) == config


def test_a_loss_is_described_with_its_settings_whatever_their_order(with_probe):
    with_probe["probes"]["which"]["losses"] = ["triplet", {"scale": 10, "kind": "mnrl"}]
    [_, loss] = configure(with_probe).probes["which"].losses
    assert described_loss(loss) == "mnrl scale=10.0 sampled_negatives=true"


def test_texts_that_are_no_papers_have_no_vectors_to_map(with_probe):
    with_probe["triplets"]["sentences"] = {"sampler": "contexts", "group": "sentences"}
    with_probe["corpus"]["contexts"] = {}
    with_probe["probes"]["which"] |= {"triplets": ["specter", "sentences"]}
    del with_probe["encoders"]["mapped"]
    with pytest.raises(InputError, match=r"triplets.sentences has texts that are no papers, of which there are no vec"):
        resolve(with_probe | {"probes": {"which": with_probe["probes"]["which"] | {"losses": ["mnrl"]}}})


def test_a_map_that_a_probe_has_learned_stands_behind_the_encoder_that_it_was_learned_of(with_probe):
    with_probe["encoders"]["mapped"]["linear_map"]["triplets"] = "bands-2"
    known = resolve(with_probe)["encoders"]["mapped"]["linear_map"]
    assert (known["triplets"], known["loss"]["kind"], known["batch_size"], known["training_seed"]) == (
        "bands-2",
        "triplet",
        128,
        1,
    )


def test_the_set_of_a_map_is_not_mined_by_what_has_the_map(with_probe):
    mined = {"sampler": "mined", "of": "specter", "by": {"kind": "encoder", "name": "mapped"}, "group": "mined"}
    with_probe["triplets"]["mined"] = mined
    with_probe["probes"]["which"]["triplets"] = ["specter", "mined"]
    message = "mined by the encoder mapped, which has a map as well"
    assert message in refused(with_probe, "encoders.mapped.linear_map.triplets", "mined")
    with_probe["encoders"]["table"] = {"kind": "static", "distilled_from": "mapped"}
    mined["by"]["name"] = "table"
    message = "mined by the encoder table, which has a map as well, or comes from one that has"
    assert message in refused(with_probe, "encoders.mapped.linear_map.triplets", "mined")
