"""Objectives in the configuration: what stands for one loss, and what is refused."""

import pytest
from tests.configurations import refused

from cocite.config.benchmarks import tells_spaces_apart
from cocite.config.configuration import resolve
from cocite.config.models import TrainingSettings
from cocite.config.runs import model_of, runs_of
from cocite.config.settings import parse_settings
from cocite.config.stale import is_configured
from cocite.config.triplets import table_of
from cocite.ground.errors import InputError

SUPCON = {"kind": "supcon", "temperature": 0.05}


@pytest.fixture
def with_aspects(written):
    """A configuration with a set of examples of aspects, and a model that learns from it."""
    for of_demo in ("sciaspect", "hybrid"):
        del written["models"][of_demo]
    written["graphs"]["cites"] = {"signal": "citation"}
    written["triplets"]["aspects"] = {"sampler": "aspects", "graph": "cites", "group": "aspects"}
    objectives = [{"loss": "supcon", "space": "aspects"}]
    written["models"]["aspects"] = {"triplets": "aspects", "encoder": "small", "objectives": objectives}
    return written


def test_a_model_without_a_loss_has_the_usual_one_and_no_objectives(written):
    del written["models"]["cocite"]["loss"]
    model = resolve(written)["models"]["cocite"]
    assert model["loss"] == {"kind": "triplet", "margin": 1.0}
    assert "objectives" not in model


def test_objectives_stand_in_place_of_a_loss(with_aspects):
    model = resolve(with_aspects)["models"]["aspects"]
    assert model["objectives"] == [{"loss": SUPCON, "space": "aspects", "weight": 1.0}]
    assert "loss" not in model


def test_a_resolved_configuration_resolves_to_itself(with_aspects):
    config = resolve(with_aspects)
    assert resolve(config) == config


@pytest.mark.parametrize(
    ("objectives", "message"),
    [
        ([{"loss": "supcon", "weight": 1.5}], "weight is 1.5; it must be at most 1"),
        ([{"loss": "supcon", "weight": -0.1}], "weight is -0.1; it must be at least 0"),
        ([{"loss": "supcon", "weight": 0}], "objectives all have weight 0"),
        ([], "should be non-empty"),
        ([{"loss": "supcon", "negatives": []}], "should be non-empty"),
        ([{"loss": "supcon", "negatives": ["far"]}], "it must be one of linked, two-away, easy"),
        ([{"loss": "supco"}], "did you mean supcon"),
        ([{"loss": "supcon", "negatives": ["two-away"]}], "names 'two-away', and triplets.aspects has linked, easy."),
    ],
)
def test_objectives_that_cannot_be_are_refused(with_aspects, objectives, message):
    assert message in refused(with_aspects, "models.aspects.objectives", objectives)


@pytest.mark.parametrize("more", [{"loss": "supcon"}, {"projection": 8}, {"matryoshka": [8]}])
def test_keys_without_effect_beside_objectives_are_refused(with_aspects, more):
    [(key, value)] = more.items()
    assert "has no effect" in refused(with_aspects, f"models.aspects.{key}", value)


def test_the_space_of_aspects_needs_examples_that_have_some(with_aspects):
    message = "models.aspects.objectives[0].space is aspects, and triplets.cocite has none"
    assert message in refused(with_aspects, "models.aspects.triplets", "cocite")


@pytest.fixture
def with_parts(with_aspects):
    """The same, with a part of a set that joins those examples with triplets and with linked papers."""
    with_aspects["triplets"] |= {
        "linked": {"sampler": "undirected", "graph": "cites", "group": "aspects"},
        "joined": {"sampler": "union", "of": ["cocite", "linked", "aspects"], "group": "aspects"},
        "part": {"sampler": "subset", "of": "joined", "share": 0.5, "group": "aspects"},
    }
    with_aspects["models"]["aspects"]["triplets"] = "part"
    return with_aspects


def test_a_set_that_is_made_of_others_is_of_examples_where_one_of_them_is(with_parts):
    sets = resolve(with_parts)["triplets"] | {"one": {"sampler": "subset", "of": "cocite"}}
    assert {name for name in sets if table_of(name, sets) == "sampled_examples"} == {
        "linked",
        "aspects",
        "joined",
        "part",
    }


def test_a_model_learns_from_the_aspects_and_kinds_of_all_that_its_set_is_made_of(with_parts):
    with_parts["models"]["aspects"]["spaces"] = ["result"]
    for kinds in (["two-away"], ["linked", "easy"]):
        with_parts["models"]["aspects"]["objectives"][0]["negatives"] = kinds
        assert resolve(with_parts)["models"]["aspects"]["objectives"][0]["negatives"] == kinds
    with_parts["triplets"]["joined"]["of"] = ["cocite", "linked"]
    message = "models.aspects.objectives[0].negatives names 'linked', and triplets.part has two-away, easy."
    objectives = [{"loss": "supcon", "negatives": ["linked"]}]
    del with_parts["models"]["aspects"]["spaces"]
    assert message in refused(with_parts, "models.aspects.objectives", objectives)


def test_examples_come_from_a_directed_graph_of_citations(with_aspects):
    assert "'cocitation' is not a directed citation graph" in refused(
        with_aspects, "triplets.aspects.graph", "cocitation"
    )


def test_a_model_is_scored_in_its_spaces_as_well(with_aspects):
    with_aspects["models"]["aspects"] |= {"spaces": ["result", "concatenated"], "seeds": [1, 2]}
    runs = runs_of(resolve(with_aspects))
    named = [f"aspects{space}-{seed}" for space in ("", "_in_result", "_in_concatenated") for seed in (1, 2)]
    assert [run for run in runs if run.startswith("aspects")] == named
    assert model_of("aspects_in_result") == model_of("aspects") == "aspects"


def test_a_benchmark_can_do_without_the_spaces_of_models(with_aspects):
    with_aspects["models"]["aspects"]["spaces"] = ["result"]
    with_aspects["benchmarks"]["holdout"]["spaces"] = False
    config = resolve(with_aspects)
    assert "aspects_in_result-1" not in runs_of(config, "holdout")
    assert {"aspects-1", "random-0"} <= set(runs_of(config, "holdout")) < set(runs_of(config))
    of_space = {"benchmark": "holdout", "model": "aspects_in_result", "seed": "1"}
    assert is_configured({**of_space, "model": "aspects"}, config)
    assert not is_configured(of_space, config)


def test_the_spaces_of_models_are_told_apart_where_they_are_scored_on_one_aspect_at_a_time():
    assert tells_spaces_apart({"kind": "aspects"})
    assert not tells_spaces_apart({"kind": "aspects", "spaces": False})
    assert not tells_spaces_apart({"kind": "holdout"})


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("models.aspects.spaces", ["miscellaneous"], "the model has background, methodology, result, concatenated"),
        ("models.aspects.spaces", ["result", "result"], "non-unique"),
        ("models.cocite.spaces", ["result"], "models.cocite.spaces names 'result', and the model has none"),
    ],
)
def test_spaces_that_a_model_does_not_have_are_refused(with_aspects, path, value, message):
    assert message in refused(with_aspects, path, value)


def test_vectors_that_are_cut_have_no_other_spaces(with_aspects):
    with_aspects["models"]["aspects"]["spaces"] = ["result"]
    assert "cuts vectors, which have no other spaces" in refused(with_aspects, "models.aspects.dimension", 8)


def test_a_weight_of_nought_leaves_an_objective_out():
    terms = '{"objectives": [{"loss": "supcon", "weight": 0.0}, {"loss": "triplet"}]}'
    [term] = parse_settings(TrainingSettings, terms).terms
    assert term.loss.kind == "triplet"
    with pytest.raises(InputError, match="loss has no effect beside objectives"):
        parse_settings(TrainingSettings, '{"loss": "triplet", "objectives": [{"loss": "supcon"}]}')
