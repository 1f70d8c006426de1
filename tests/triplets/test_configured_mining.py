"""What negatives are mined by is checked before any job: names, ranks, scores, and that no circle leads back."""

from pathlib import Path

import pytest
import yaml

from cocite.config.configuration import resolve
from cocite.core.errors import InputError

ROOT = Path(__file__).parents[2]
MINED = {"sampler": "mined", "of": "cocite", "by": "bm25"}


def by_model(name, **more):
    return {**MINED, "by": {"kind": "model", "name": name, **more}, "group": "mined"}


def resolved(entry, *, models=None, **others):
    """The demo's configuration with a set `new`, and further sets and models."""
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    config["triplets"] |= {"new": entry, **others}
    trained = config["models"]["cocite"]
    config["models"] |= {name: {**trained, "triplets": triplets} for name, triplets in (models or {}).items()}
    return resolve(config)["triplets"]["new"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({**MINED, "by": "bm26"}, "triplets.new.by is 'bm26'; it must be one of bm25, encoder, model"),
        ({**MINED, "by": {"kind": "encoder"}}, "triplets.new.by.name is missing"),
        ({**MINED, "by": {"kind": "bm25", "metric": "l2"}}, "triplets.new.by.metric does not go with kind: bm25"),
        (
            {**MINED, "by": {"kind": "encoder", "name": "large"}},
            "triplets.new.by.name names 'large', which encoders does not declare (declared: small)",
        ),
        (by_model("none"), "triplets.new.by.name names 'none', which models does not declare (declared: cocite,"),
        (by_model("cocite", seed=9), "triplets.new.by.seed is 9, but models.cocite.seeds has 1, 2, 3"),
        (
            {**MINED, "unlinked_in": ["nothing"]},
            "triplets.new.unlinked_in names 'nothing', which graphs does not declare",
        ),
        ({**MINED, "ranks": [7, 9], "negatives": 4}, "triplets.new.ranks ([7, 9]) must hold at least 4 ranks"),
        (
            {**MINED, "min_score": 0.9, "max_score": 0.5},
            "triplets.new.min_score (0.9) must not exceed max_score (0.5)",
        ),
        ({**MINED, "of": "new"}, "triplets.new.of: a set of triplets must not be a part of itself"),
    ],
)
def test_what_cannot_be_mined_is_refused(entry, message):
    with pytest.raises(InputError) as error:
        resolved(entry)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "entry",
    [
        {**MINED, "unlinked_in": ["citation", "cocitation"], "duplicates": None},
        {**MINED, "by": {"kind": "encoder", "name": "small", "metric": "inner_product"}, "relative_margin": 0.05},
        {**by_model("cocite", seed=2), "pick": "random", "ranks": [10, 60], "others": "kept"},
    ],
)
def test_every_way_to_mine_can_be_configured(entry):
    found = resolved(entry)
    assert {key: found[key] for key in entry if key != "by"} == {key: entry[key] for key in entry if key != "by"}


def test_rounds_of_mining_are_named_entries():
    rounds = {"third": {**by_model("second"), "of": "new", "group": "third"}}
    resolved(by_model("cocite"), models={"second": "new", "last": "third"}, **rounds)


def test_a_model_cannot_mine_the_set_that_it_learns_from():
    with pytest.raises(InputError, match=r"triplets\.new\.by: the model second depends on this set"):
        resolved(by_model("second"), models={"second": "new"})
    union = {"both": {"sampler": "union", "of": ["cocite", "new"], "group": "both"}}
    with pytest.raises(InputError, match=r"triplets\.new\.by: the model second depends on this set"):
        resolved(by_model("second"), models={"second": "both"}, **union)


def test_a_circle_may_lead_through_several_models():
    others = {"other": {**by_model("first"), "group": "other"}}
    with pytest.raises(InputError, match=r"triplets\.new\.by: the model second depends on this set"):
        resolved(by_model("second"), models={"first": "new", "second": "other"}, **others)


def test_a_mined_set_shares_no_group_with_the_sets_of_the_model_that_mines_it():
    with pytest.raises(InputError, match=r"triplets\.new\.group \(all\) has a set that the model cocite learns from"):
        resolved({**by_model("cocite"), "group": "all"})
