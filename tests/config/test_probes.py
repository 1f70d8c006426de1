"""The section `probes`: sets of grids become sets of triplets, and an encoder may have a map that a probe learned."""

import pytest
from tests.configurations import recorded, refused

from cocite.config.configuration import configure, resolve
from cocite.config.probes import described_loss, named_sets
from cocite.core.errors import InputError


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
    with_probe["probes"]["which"]["losses"] = ["triplet", {"temperature": 10, "kind": "mnrl"}]
    [_, loss] = configure(with_probe).probes["which"].losses
    assert described_loss(loss) == "mnrl temperature=10.0 sampled_negatives=true"


def test_a_grid_of_ten_thousand_sets_is_counted_and_not_made(with_probe):
    grid = {"k_positive": list(range(1, 101)), "k_negative": list(range(110, 210))}
    assert (
        "probes.which has 10,001 pairs of a set and a training, and most is 500; name fewer values, or raise most."
        in refused(with_probe, "probes.which.grids", {"bands": {"of": "cocite", "grid": grid}})
    )


def test_texts_that_are_no_papers_have_no_vectors_to_map(with_probe):
    with_probe["triplets"]["sentences"] = {"sampler": "contexts", "group": "sentences"}
    with_probe["corpus"]["contexts"] = {}
    with_probe["probes"]["which"] |= {"triplets": ["specter", "sentences"]}
    del with_probe["encoders"]["mapped"]
    with pytest.raises(InputError, match=r"triplets.sentences has texts that are no papers, of which there are no vec"):
        resolve(with_probe | {"probes": {"which": with_probe["probes"]["which"] | {"losses": ["mnrl"]}}})


def test_a_map_that_a_probe_has_learned_stands_behind_the_encoder_that_it_was_learned_of(with_probe):
    with_probe["encoders"]["mapped"]["map"]["triplets"] = "bands-2"
    known = resolve(with_probe)["encoders"]["mapped"]["map"]
    assert (known["triplets"], known["loss"]["kind"], known["batch_size"], known["seed"]) == (
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
    assert message in refused(with_probe, "encoders.mapped.map.triplets", "mined")
