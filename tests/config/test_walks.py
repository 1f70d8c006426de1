"""Walks are configured beside embeddings, and a sampler may name either."""

from cocite.config.configuration import configure, resolve
from cocite.config.origins import graph_of, settings_of_origin
from cocite.config.stale import is_configured
from cocite.plan.plan import Plan


def test_walks_have_defaults(with_walks):
    assert resolve(with_walks)["walks"]["near"] == {
        "graph": "citation",
        "weighted": False,
        "restart": 0.15,
        "score": "symmetric",
        "tolerance": 1e-6,
        "k": 400,
        "among": "edges",
        "shards": 1,
    }


def test_a_configuration_without_walks_has_none(written):
    assert resolve(written)["walks"] == {}


def test_what_ranks_neighbours_is_found_by_its_name(with_walks):
    plan = Plan(configure(with_walks)).neighbours
    assert list(plan.rankings) == [*with_walks["embeddings"], "near"]
    assert plan.rankings["near"] == configure(with_walks).walks["near"]
    assert plan.rankings["citation-dot"].metric == "cosine"


def test_files_of_walks_are_stale_once_no_walks_have_their_name(with_walks):
    config = configure(with_walks)
    of_walks = {"stage": "neighbours", "step": "near_0"}
    assert is_configured({"embedding": "near"}, config)
    assert is_configured(of_walks, config)
    config = config.model_copy(update={"walks": {}})
    assert not is_configured({"embedding": "near"}, config)
    assert not is_configured(of_walks, config)


def test_a_model_says_what_walks_its_triplets_come_from(with_walks):
    with_walks["models"]["cocite"]["triplets"] = "walked"
    config = resolve(with_walks)
    part = settings_of_origin("cocite", config)
    assert part["walks"] == {
        "near": {"graph": "citation", "restart": 0.15, "score": "symmetric", "tolerance": 1e-6, "weighted": False}
    }
    for whole in (part, config):
        told = graph_of("walked", {"configuration": whole})
        assert told["walks"] == "near"
        assert (told["graph"], told["signal"], told["restart"]) == ("citation", "citation", 0.15)


def test_a_model_of_triplets_from_an_embedding_says_nothing_of_walks(with_walks):
    assert "walks" not in settings_of_origin("cocite", resolve(with_walks))
