"""Walks are configured beside embeddings, and a sampler may name either."""

import pytest
from tests.configurations import refusals, refused

from cocite.config.configuration import configure, resolve
from cocite.config.origins import graph_of, settings_of_origin
from cocite.config.stale import is_configured
from cocite.plan.plan import Plan


@pytest.fixture
def with_walks(written):
    """The default configuration with walks, and a set of triplets from their neighbours."""
    written["walks"] = {"near": {"graph": "citation", "k": 400}}
    bands = {"sampler": "neighbours", "embedding": "near", "k_positive": 10, "k_negative": 300, "per_query": 4}
    written["triplets"]["walked"] = bands
    return written


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


@pytest.mark.parametrize(
    ("path", "value", "said"),
    refusals(
        """
        walks.near.graph: citations | key walks.near.graph names 'citations', which graphs does not declare (decl
        walks.near.restart: 0 | key walks.near.restart is 0; it must be more than 0
        walks.near.restart: 1.0 | key walks.near.restart is 1.0; it must be less than 1
        walks.near.tolerance: 0.0 | key walks.near.tolerance is 0.0; it must be at least 1e-12
        walks.near.k: 3000 | key walks.near.k (3000) must be smaller than 2999: the release has at most 3000 papers
        walks.near.k: 299 | key triplets.walked.k_negative (300) must not exceed walks.near.k (299)
        walks.near.dimension: 64 | key walks.near.dimension is not known
        triplets.walked.embedding: far | key triplets.walked.embedding names 'far', which neither embeddings nor walks
            declares (declared:
        triplets.walked.easy_negatives: k-means | key triplets.walked.easy_negatives (k-means) needs the vectors of a
            graph embedding, and walks.near
        """
    ),
)
def test_walks_that_cannot_be_made_are_refused(with_walks, path, value, said):
    assert said in refused(with_walks, path, value)


def test_walks_and_an_embedding_of_one_name_are_refused(with_walks):
    said = refused(with_walks, "walks.citation-dot", {"graph": "citation"})
    assert "key walks.citation-dot: embeddings has an entry of that name" in said


def test_a_loss_that_learns_from_vectors_takes_no_walks(with_walks):
    distilled = [{"triplets": "walked", "loss": {"kind": "distillation", "embedding": "near"}}]
    said = refused(with_walks, "models.cocite", {"objectives": distilled, "encoder": "small-bert"})
    assert "loss.embedding names 'near', which embeddings does not declare" in said


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
