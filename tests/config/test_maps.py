"""The section `maps`: what it may name, and what there is where it is left out."""

import copy
from pathlib import Path

import yaml
from tests.configurations import recorded

from cocite.config.configuration import resolve
from cocite.config.runs import mapped_runs
from cocite.config.stale import is_configured

DEFAULT = yaml.safe_load((Path(__file__).parents[2] / "config.yaml").read_text(encoding="utf-8"))


def resolved(**maps):
    return resolve({**copy.deepcopy(DEFAULT), "maps": maps})


def test_without_the_section_there_is_a_map_of_the_first_benchmark_about_held_out_papers():
    written = {key: entry for key, entry in copy.deepcopy(DEFAULT).items() if key != "maps"}
    config = resolve(written)
    assert list(config["maps"]) == ["holdout"]
    assert config["maps"]["holdout"]["benchmark"] == "holdout"
    assert resolve(config) == config


def test_an_empty_section_asks_for_no_map():
    assert resolved()["maps"] == {}


def test_without_held_out_papers_there_is_no_map_unless_it_is_asked_for():
    written = copy.deepcopy(DEFAULT)
    written.pop("maps", None)
    written["benchmarks"] = {"scirepeval": written["benchmarks"]["scirepeval"]}
    assert resolve(written)["maps"] == {}


def test_a_map_has_encoders_and_models_by_their_first_seed_or_those_that_it_names():
    config = resolved(one={"benchmark": "holdout", "models": ["hybrid_in_result", "untrained_small", "specter"]})
    assert mapped_runs(recorded(config), config["maps"]["one"]["models"]) == [
        ("hybrid_in_result", 1),
        ("untrained_small", 0),
        ("specter", 1),
    ]
    assert mapped_runs(recorded(config)) == [("untrained_small", 0), *((name, 1) for name in config["models"])]


def test_a_map_of_held_out_papers_leaves_out_their_candidates_unless_it_is_asked_for_all():
    config = resolved(
        own={"benchmark": "holdout"},
        all={"benchmark": "holdout", "documents": "all"},
        others={"benchmark": "scirepeval"},
        asking={"benchmark": "scirepeval", "documents": "queries"},
    )
    asked = {name: entry.shows_queries(recorded(config)) for name, entry in recorded(config).maps.items()}
    assert asked == {"own": True, "all": False, "others": False, "asking": True}


def test_files_of_a_map_that_is_gone_are_told_from_those_of_one_that_is_there():
    config = recorded(resolved(one={"benchmark": "holdout", "models": ["specter"]}))
    assert is_configured({"map": "one"}, config)
    assert is_configured({"map": "one", "model": "specter", "seed": "1"}, config)
    assert not is_configured({"map": "one", "model": "specter", "seed": "2"}, config)
    assert not is_configured({"map": "one", "model": "cocite", "seed": "1"}, config)
    assert not is_configured({"map": "other"}, config)
