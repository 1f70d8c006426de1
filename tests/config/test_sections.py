"""What the sections of the configuration stand for: adapters, oracles, pairs, walks, maps, edges and objectives."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import TypeAdapter
from tests.config.conftest import PAIRS
from tests.configurations import recorded, refused
from tests.hub import COMMIT

from cocite.config.configuration import TripletSet, configure, resolve
from cocite.config.embeddings import AnyEngine, Embedding, edge_settings
from cocite.config.engine import EdgeSettings
from cocite.config.models import TrainingSettings
from cocite.config.origins import graph_of, sampling_of, settings_of_origin
from cocite.config.runs import adapters_of, first_seed, mapped_runs, model_of, runs_of
from cocite.config.settings import entry_of, parse_settings, settings_of
from cocite.core.errors import InputError
from cocite.plan.plan import Plan
from cocite.plan.recorded import is_configured


@pytest.mark.parametrize(
    ("trainable", "has"),
    [
        ("all", set()),
        ("lora", set()),
        ("adapter", {"proximity", "search"}),
        ({"kind": "adapter", "name": "regression", "reduction": 8}, {"proximity", "search", "regression"}),
    ],
)
def test_a_model_has_the_adapters_of_its_encoder_where_it_trains_one(adapted, trainable, has):
    adapted["models"]["cocite"]["trainable"] = trainable
    config = configure(adapted)
    assert adapters_of(config, "cocite") == has
    assert adapters_of(config, "untrained_small") == {"proximity", "search"}


def test_a_benchmark_without_answers_has_no_oracle(with_oracle, tmp_path):
    with_oracle["benchmarks"]["authors"] = {"kind": "s2and", "folder": str(tmp_path)}
    message = "triplets.oracle.benchmark: authors has no task with classes or judgements, and so no answers"
    assert message in refused(with_oracle, "triplets.oracle.benchmark", "authors")


def test_a_layout_may_be_named_alone_and_has_its_defaults(with_pairs):
    entry = resolve(with_pairs)["triplets"]["searches"]
    assert entry["layout"] == {"kind": "rows", "files": []}
    assert (entry["validation"], entry["paired"], entry["longest_query"]) == (0.1, False, 1000)


def test_sets_that_are_made_of_pairs_have_their_texts(with_pairs):
    plan = Plan(configure(with_pairs)).triplets
    assert plan.sets_with_texts("joined") == plan.sets_with_texts("searches") == ["searches"]
    assert plan.sets_with_texts("cocite") == []
    assert plan.table("joined") == "sampled_examples"


def test_linked_papers_share_an_edge_and_all_links_are_those_of_the_pairs(with_pairs):
    sets = {
        "near": {"sampler": "linked", "graph": "cocitation"},
        "every": {"sampler": "links", "graph": "cocitation", "group": "every"},
    }
    plan = Plan(configure({**with_pairs, "triplets": {**with_pairs["triplets"], **sets}}))
    near, every = (plan.config.triplets[name].sources(name, plan) for name in sets)
    assert {Path(file).parent.name for file in near} == {"edges"}
    assert {Path(file).parent.name for file in every} == {"cocitations"}


def test_a_sampler_that_holds_its_sources_asks_for_their_memory_up_to_those_of_a_block(with_pairs, tmp_path):
    sets = {
        "near": {"sampler": "linked", "graph": "citation"},
        "every": {"sampler": "links", "graph": "citation", "group": "every"},
        "part": {"sampler": "subset", "of": "near", "share": 0.5, "group": "part"},
    }
    sizes = {"sources": 100, "papers": 1000}  # MB; 2.5 million papers, of which a block has a tenth
    for name, size in sizes.items():
        with (tmp_path / name).open("wb") as file:
            file.truncate(size * 10**6)
    given = SimpleNamespace(**{name: [tmp_path / name] for name in sizes})
    plan = Plan(configure({**with_pairs, "triplets": {**with_pairs["triplets"], **sets}})).triplets
    near, every, part = (plan.sampling_memory(SimpleNamespace(triplets=name), given, 1) for name in sets)
    assert (every - near, part - near) == (50 + 10 * 50, 100 * 30)


def test_only_what_comes_from_the_hub_is_fetched_and_a_card_names_no_folder_of_this_machine(with_pairs, tmp_path):
    scores = {"dataset": "lab/scores", "revision": COMMIT}
    layout = {"kind": "msmarco", "collection": {"dataset": str(tmp_path)}, "scores": scores, "margin": 3.0}
    with_pairs["triplets"]["searches"] = {**PAIRS, "layout": layout}
    config = resolve(with_pairs)
    fetched = entry_of(config["triplets"]["searches"], TripletSet).fetched
    wanted = {"pairs": ("lab/searches", COMMIT), "scores": ("lab/scores", COMMIT)}
    assert {part: origin[:2] for part, origin in fetched.items()} == wanted
    said = sampling_of("searches", {"configuration": config})
    assert (said["layout"], said["collection"]) == ("msmarco", tmp_path.name)
    assert said["dataset"] == f"lab/searches of the Hugging Face hub, commit {COMMIT}"
    assert said["scores"] == f"lab/scores of the Hugging Face hub, commit {COMMIT}"
    assert str(tmp_path) not in str(said)


def test_a_loss_that_needs_negatives_is_refused_for_a_set_that_has_none(with_pairs):
    with_pairs["triplets"]["searches"] = {**PAIRS, "layout": "inpars"}
    resolve(with_pairs)
    message = "models.searches: the loss triplet needs negatives, and triplets.searches has none."
    assert message in refused(with_pairs, "models.searches.loss", "triplet")
    with_pairs["models"]["searches"]["triplets"] = "joined"
    with_pairs["models"]["searches"]["loss"] = "triplet"
    resolve(with_pairs)


def test_walks_have_defaults(with_walks):
    assert resolve(with_walks)["walks"]["near"] == {
        "graph": "citation",
        "weighted": False,
        "restart": 0.15,
        "score": "symmetric",
        "tolerance": 1e-6,
        "k": 400,
        "among": "edges",
        "query_jobs": 1,
    }


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
    assert "walks" not in settings_of_origin("cocite", resolve(with_walks))
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


def test_without_maps_there_is_one_of_the_first_benchmark_about_held_out_papers_if_there_is_any(written):
    written.pop("maps", None)
    config = resolve(written)
    assert {name: entry["benchmark"] for name, entry in config["maps"].items()} == {"holdout": "holdout"}
    assert resolve(config) == config
    assert resolve(written | {"maps": {}})["maps"] == {}
    scirepeval = written["benchmarks"]["scirepeval"]
    assert resolve(written | {"benchmarks": {"scirepeval": scirepeval}})["maps"] == {}


def test_a_map_has_encoders_and_models_by_their_first_seed_or_those_that_it_names(with_aspects):
    with_aspects["models"]["aspects"]["spaces"] = ["result"]
    named = ["aspects_in_result", "untrained_small", "specter"]
    config = configure(with_aspects | {"maps": {"one": {"benchmark": "holdout", "models": named}}})
    assert mapped_runs(config, config.maps["one"].models) == list(zip(named, (1, 0, 1), strict=True))
    assert mapped_runs(config) == [("untrained_small", 0), *((name, 1) for name in config.models)]


def test_a_map_of_held_out_papers_leaves_out_their_candidates_unless_it_is_asked_for_all(written):
    written["maps"] = {
        "own": {"benchmark": "holdout"},
        "all": {"benchmark": "holdout", "documents": "all"},
        "others": {"benchmark": "scirepeval"},
        "asking": {"benchmark": "scirepeval", "documents": "queries"},
    }
    config = configure(written)
    asked = {name: entry.shows_queries(config) for name, entry in config.maps.items()}
    assert asked == {"own": True, "all": False, "others": False, "asking": True}


def test_files_of_a_map_that_is_gone_are_told_from_those_of_one_that_is_there(written):
    config = configure(written | {"maps": {"one": {"benchmark": "holdout", "models": ["specter"]}}})
    assert is_configured({"map": "one"}, config)
    assert is_configured({"map": "one", "model": "specter", "seed": "1"}, config)
    assert not is_configured({"map": "one", "model": "specter", "seed": "2"}, config)
    assert not is_configured({"map": "one", "model": "cocite", "seed": "1"}, config)
    assert not is_configured({"map": "other"}, config)


def test_an_import_and_a_training_are_given_the_keys_of_their_own_that_go_with_the_engine():
    entry = TypeAdapter(Embedding).validate_python({"graph": "g", "holdout": 0.1})
    of_import = {"holdout": 0.1, "holdout_of": "pairs", "import": "arrow", "partitions": 1}
    of_import |= {"max_repetitions": 10, "weights": False}
    of_training = settings_of(entry, AnyEngine)
    assert edge_settings(entry) == of_import
    assert parse_settings(EdgeSettings, json.dumps(of_import)).weighted is False
    loss = {"kind": "ranking", "margin": 0.15}
    usual = {"engine": "biggraph", "dimension": 768, "epochs": 20, "lr": 0.1, "batch_size": 1000, "loss": loss}
    negatives = {"batch_negatives": 50, "uniform_negatives": 50}
    assert of_training == usual | negatives | {"comparator": "dot", "max_norm": 1.0, "chunks": 1, "workers": 1}
    other = entry.model_copy(update={"holdout": 0.2, "partitions": 4, "weights": True})
    assert settings_of(other, AnyEngine) == of_training
    assert edge_settings(other) == {**of_import, "holdout": 0.2, "partitions": 4, "weights": True}


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
    with pytest.raises(InputError, match="loss has no effect with objectives"):
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
    assert "a model cannot continue from itself" in refused(with_sets, "models.both.from", "then")


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
