"""The section `probes`: sets of grids become sets of triplets, and what cannot be probed is refused."""

import copy

import pytest
from tests.configurations import recorded
from tests.workflow.conftest import SMALL

from cocite.config.configuration import configure, resolve
from cocite.config.probes import described_loss, named_sets
from cocite.core.errors import InputError

PROBE = {"encoder": "small", "benchmark": "holdout", "triplets": ["specter"], "losses": ["triplet"]}
BANDS = {"of": "cocite", "grid": {"k_positive": [10, 20], "k_negative": [60, 80]}}


def configured(choosing=0.5, **changed):
    config = copy.deepcopy(SMALL)
    config["benchmarks"]["holdout"] |= {} if choosing is None else {"choosing": choosing}
    return config | {"probes": {"which": {**PROBE, **changed}}}


def refusal(**changed):
    with pytest.raises(InputError) as refused:
        resolve(configured(**changed))
    return str(refused.value)


def test_a_grid_is_a_set_for_each_combination_in_a_group_of_its_own():
    config = resolve(configured(grids={"bands": BANDS}))
    made = {name: config["triplets"][name] for name in ("bands-1", "bands-2", "bands-3", "bands-4")}
    bands = [(entry["k_positive"], entry["k_negative"]) for entry in made.values()]
    assert bands == [(10, 60), (10, 80), (20, 60), (20, 80)]
    assert {entry["group"] for entry in made.values()} == {"bands"}
    assert all(entry["embedding"] == "cocitation-dot" for entry in made.values())
    assert recorded(config).probes["which"].sets == ["specter", *made]
    assert list(named_sets(recorded(config))) == ["cocite", "specter"]


def test_a_resolved_configuration_resolves_to_itself():
    config = resolve(configured(grids={"bands": BANDS}))
    assert resolve(config) == config


def test_a_loss_is_described_with_its_settings_whatever_their_order():
    [loss] = configure(configured(losses=[{"temperature": 10, "kind": "mnrl"}])).probes["which"].losses
    assert described_loss(loss) == "mnrl temperature=10.0 sampled_negatives=true"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"triplets": []}, "probes.which has no sets; name some under triplets, or make some under grids."),
        ({"triplets": ["nothing"]}, "probes.which.triplets names 'nothing', which triplets does not declare"),
        ({"losses": ["mlm"]}, "probes.which.losses[0] (mlm) compares no examples, which a probe does."),
        ({"benchmark": "scirepeval"}, "probes.which.benchmark names 'scirepeval', which is not of the kind holdout."),
        ({"choosing": None}, "probes.which.benchmark names 'holdout', in which no papers choose; give it choosing"),
        (
            {"grids": {"bands": {"of": "cocite", "grid": {"k": [1, 2]}}}},
            "probes.which.grids.bands.grid names 'k'; of cocite it can name per_query,",
        ),
        (
            {"grids": {"bands": {"of": "cocite", "grid": {"k_positive": [90]}}}},
            "probes.which.grids.bands.grid: k_positive: 90 makes no set",
        ),
        ({"grids": {"bands": {"of": "nothing", "grid": {"k_positive": [9]}}}}, "names 'nothing'"),
    ],
)
def test_what_cannot_be_probed_is_refused(changed, sentence):
    assert sentence in refusal(**changed)


def test_a_grid_of_ten_thousand_sets_is_counted_and_not_made():
    grid = {"k_positive": list(range(1, 101)), "k_negative": list(range(110, 210))}
    assert (
        "probes.which has 10,001 pairs of a set and a training, and most is 500; name fewer values, or raise most."
        in refusal(grids={"bands": {"of": "cocite", "grid": grid}})
    )


def test_a_grid_must_not_take_the_name_of_a_set():
    config = configured(grids={"bands": BANDS})
    config["triplets"]["bands-1"] = {"sampler": "random", "group": "other"}
    with pytest.raises(InputError, match="the set bands-1 exists already; give the grid another name"):
        resolve(config)


def test_texts_that_are_no_papers_have_no_vectors_to_map():
    config = configured(triplets=["sentences"], losses=["mnrl"])
    config["triplets"]["sentences"] = {"sampler": "contexts", "group": "sentences"}
    config["corpus"]["contexts"] = {}
    with pytest.raises(InputError, match=r"triplets.sentences has texts that are no papers, of which there are no vec"):
        resolve(config)


READY = {"model": "someone/encoder", "revision": "0" * 40, "max_length": 64}
LEARNED = {"probe": "which", "triplets": "specter", "loss": "triplet"}


def with_map(encoder=READY, **learned):
    config = configured(encoder="ready", grids={"bands": BANDS})
    config["encoders"] = config["encoders"] | {"ready": READY, "mapped": encoder | {"map": LEARNED | learned}}
    return config


def test_a_map_that_a_probe_has_learned_stands_behind_the_encoder_that_it_was_learned_of():
    known = resolve(with_map(triplets="bands-2"))["encoders"]["mapped"]["map"]
    assert known["triplets"] == "bands-2"
    assert (known["loss"]["kind"], known["batch_size"], known["seed"]) == ("triplet", 128, 1)


@pytest.mark.parametrize(
    ("learned", "sentence"),
    [
        ({"triplets": "cocite"}, "encoders.mapped.map.triplets is none of probes.which."),
        ({"loss": "mnrl"}, "encoders.mapped.map.loss is none of probes.which."),
        ({"loss": {"kind": "triplet", "margin": 0.1}}, "encoders.mapped.map.loss is none of probes.which."),
        ({"seed": 9}, "encoders.mapped.map.seed is none of probes.which."),
        ({"probe": "other"}, "encoders.mapped.map.probe names 'other', which probes does not declare"),
        ({"encoder": READY | {"max_length": 32}}, "maps vectors of the encoder ready, which has other settings"),
        ({"encoder": {"build": {"layers": 1}}}, "map does not go with build"),
    ],
)
def test_a_map_that_is_not_learned_or_of_another_encoder_is_refused(learned, sentence):
    with pytest.raises(InputError) as refused:
        resolve(with_map(**learned))
    assert sentence in str(refused.value)


def test_the_set_of_a_map_is_not_mined_by_what_has_the_map():
    config = with_map(triplets="mined")
    mined = {"sampler": "mined", "of": "specter", "by": {"kind": "encoder", "name": "mapped"}, "group": "mined"}
    config["triplets"] = config["triplets"] | {"mined": mined}
    config["probes"]["which"]["triplets"] = ["specter", "mined"]
    with pytest.raises(InputError, match="mined by the encoder mapped, which has a map as well"):
        resolve(config)
