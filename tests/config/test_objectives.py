"""Objectives in the configuration: what stands for one loss, and what is refused."""

import pytest
from tests.configurations import recorded, refused

from cocite.config.configuration import configure, resolve
from cocite.config.models import TrainingSettings
from cocite.config.runs import first_seed, model_of, runs_of
from cocite.config.settings import parse_settings
from cocite.config.stale import is_configured
from cocite.core.errors import InputError
from cocite.plan.plan import Plan

SUPCON = {"kind": "supcon", "temperature": 0.05}


def test_a_model_without_a_loss_has_the_usual_one_and_no_objectives(written):
    del written["models"]["cocite"]["loss"]
    model = resolve(written)["models"]["cocite"]
    assert model["loss"] == {"kind": "triplet", "margin": 1.0}
    assert "objectives" not in model


def test_objectives_stand_in_place_of_a_loss(with_aspects):
    model = resolve(with_aspects)["models"]["aspects"]
    assert model["objectives"] == [{"loss": SUPCON, "one_per_query": False, "space": "aspects"}]
    assert "loss" not in model


def test_a_resolved_configuration_resolves_to_itself(with_aspects):
    config = resolve(with_aspects)
    assert resolve(config) == config


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
    with_parts["triplets"]["one"] = {"sampler": "subset", "of": "cocite", "share": 0.5}
    assert set(Plan(configure(with_parts)).triplets.sets_in("sampled_examples")) == {
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


def test_a_model_is_scored_in_its_spaces_as_well(with_aspects):
    with_aspects["models"]["aspects"] |= {"spaces": ["result", "concatenated"], "seeds": [1, 2]}
    runs = runs_of(configure(with_aspects))
    named = [f"aspects{space}-{seed}" for space in ("", "_in_result", "_in_concatenated") for seed in (1, 2)]
    assert [run for run in runs if run.startswith("aspects")] == named
    assert model_of("aspects_in_result") == model_of("aspects") == "aspects"


def test_a_model_is_scored_with_further_poolings_as_well(with_aspects):
    with_aspects["models"]["cocite"] |= {"poolings": ["cls"], "seeds": [1]}
    named = [run for run in runs_of(configure(with_aspects)) if run.startswith("cocite")]
    assert named[:2] == ["cocite-1", "cocite_in_cls-1"]


def test_the_mean_of_the_weights_over_all_seeds_is_scored_once(with_aspects):
    with_aspects["models"]["aspects"] |= {"spaces": ["result"], "seeds": [1, 2], "averaged": True}
    config = configure(with_aspects)
    named = ["aspects-1", "aspects-2", "aspects_in_result-1", "aspects_in_result-2", "aspects_averaged-0"]
    assert [run for run in runs_of(config) if run.startswith("aspects")] == named
    assert model_of("aspects_averaged") == "aspects"
    assert first_seed(config, "aspects_averaged") == 0


def test_a_benchmark_can_do_without_the_spaces_of_models(with_aspects):
    with_aspects["models"]["aspects"]["spaces"] = ["result"]
    with_aspects["benchmarks"]["holdout"]["spaces"] = False
    config = configure(with_aspects)
    assert "aspects_in_result-1" not in runs_of(config, "holdout")
    assert {"aspects-1", "random-0"} <= set(runs_of(config, "holdout")) < set(runs_of(config))
    of_space = {"benchmark": "holdout", "model": "aspects_in_result", "seed": "1"}
    assert is_configured({**of_space, "model": "aspects"}, config)
    assert not is_configured(of_space, config)


def test_the_spaces_of_models_are_told_apart_where_they_are_scored_on_one_aspect_at_a_time():
    kinds = {"a": {"kind": "aspects"}, "b": {"kind": "aspects", "spaces": False}, "c": {"kind": "holdout"}}
    entries = recorded({"benchmarks": kinds}).benchmarks
    assert [name for name, entry in entries.items() if entry.tells_spaces_apart] == ["a"]


def test_vectors_that_are_cut_have_no_other_spaces(with_aspects):
    with_aspects["models"]["aspects"]["spaces"] = ["result"]
    assert "cuts vectors, which have no other spaces" in refused(with_aspects, "models.aspects.dimension", 8)


def test_a_weight_of_nought_leaves_an_objective_out():
    terms = '{"objectives": [{"loss": "supcon", "weight": 0.0}, {"loss": "triplet"}]}'
    [term] = parse_settings(TrainingSettings, terms).comparisons
    assert term.loss.kind == "triplet"
    with pytest.raises(InputError, match="loss has no effect beside objectives"):
        parse_settings(TrainingSettings, '{"loss": "triplet", "objectives": [{"loss": "supcon"}]}')


def test_a_model_learns_from_the_sets_of_its_objectives_and_starts_from_the_encoder_under_it(with_sets):
    config = configure(with_sets)
    assert config.models["both"].learns_from == ("cocite", "crops")
    assert config.base_encoder("then") == "small"
    assert config.models["both"].triplets is None
    assert config.models["then"].encoder is None


def test_a_model_that_goes_on_from_a_circle_of_others_ends_in_a_message(with_sets):
    with_sets["models"]["third"] = with_sets["models"]["then"] | {"from": "both"}
    with_sets["models"]["both"].pop("encoder")
    assert "a model must not go on from itself" in refused(with_sets, "models.both.from", "then")


TAUGHT = [{"loss": "triplet"}, {"loss": {"kind": "distillation", "embedding": "cocitation-dot"}, "weight": 0.5}]
MASKED = [{"loss": "triplet"}, {"loss": "mlm"}]


def test_a_teacher_is_an_embedding_and_the_usual_share_of_tokens_is_masked(written):
    del written["models"]["cocite"]["loss"]
    written["models"]["cocite"]["objectives"] = [*TAUGHT, MASKED[1]]
    model = resolve(written)["models"]["cocite"]
    assert [term["loss"] for term in model["objectives"][1:]] == [TAUGHT[1]["loss"], {"kind": "mlm", "share": 0.15}]
    settings = TrainingSettings(objectives=model["objectives"])
    assert (settings.teachers, settings.masked_share) == (("cocitation-dot",), 0.15)


def test_a_projection_has_no_effect_on_masked_tokens_alone(written):
    written["models"]["cocite"]["loss"] = "mlm"
    assert "projection has no effect" in refused(written, "models.cocite.projection", 8)
