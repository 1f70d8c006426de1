"""What a configuration stands for, as a whole and section by section, up to grids, maps of probes and objectives."""

import json
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import TypeAdapter
from tests.config.conftest import PAIRS
from tests.configurations import recorded, refused, with_changes
from tests.hub import COMMIT

from cocite.config.configuration import TripletSet, configure, resolve, resolve_or_explain
from cocite.config.embeddings import AnyEngine, Embedding, edge_settings
from cocite.config.engine import EdgeSettings
from cocite.config.entries import MEANINGS
from cocite.config.models import TrainingSettings
from cocite.config.origins import graph_of, sampling_of, settings_of_origin
from cocite.config.probes import described_loss, named_sets
from cocite.config.runs import adapters_of, first_seed, mapped_runs, model_of, runs_of
from cocite.config.settings import entry_of, parse_settings, settings_of
from cocite.core.errors import InputError
from cocite.plan.plan import Plan
from cocite.plan.recorded import is_configured


def test_a_date_without_quotes_is_the_text_that_it_stands_for_as_a_value_and_as_a_key(written):
    written["release"] = date(2026, 1, 6)
    written["graphs"][date(2026, 1, 6)] = {"signal": "cocitation"}
    config = resolve(written)
    assert config["release"] == "2026-01-06"
    assert "2026-01-06" in config["graphs"]


def test_a_benchmark_on_the_hub_is_pinned_without_being_told(written):
    written["benchmarks"] = {"sre": {"kind": "scirepeval", "hub": {}}}
    hub = resolve(written)["benchmarks"]["sre"]["hub"]
    assert [hub[half]["dataset"] for half in ("texts", "labels")] == ["allenai/scirepeval", "allenai/scirepeval_test"]
    assert all(len(hub[half]["revision"]) == 40 for half in hub)


def test_the_default_configuration_is_complete_with_defaults(written):
    del written["models"]["cocite"]["loss"]
    config = resolve(written)
    assert config["models"]["cocite"]["epochs"] == 1
    assert config["models"]["cocite"]["loss"] == {"kind": "triplet", "margin": 1.0}
    assert "objectives" not in config["models"]["cocite"]
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


def test_combinations_may_be_parts_of_others(written):
    parts = {"first": {"cocitation": 1.0}, "second": {"first": 0.5, "cocitation": 2.0}}
    written["graphs"] |= {name: {"signal": "combination", "of": of} for name, of in parts.items()}
    assert resolve(written)["graphs"]["second"]["rescale"] == "none"


def test_a_name_stands_for_an_entry_that_holds_nothing_else(written):
    written["models"]["cocite"]["trainable"] = "lora"
    config = resolve(written)
    assert config["models"]["cocite"]["trainable"] == {"kind": "lora", "rank": 8, "alpha": 16}
    assert resolve(written | {"models": config["models"]}) == config


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


def test_a_map_that_a_probe_has_learned_stands_behind_the_encoder_that_it_was_learned_of(with_probe):
    with_probe["encoders"]["mapped"]["linear_map"]["triplets"] = "bands-2"
    known = resolve(with_probe)["encoders"]["mapped"]["linear_map"]
    assert (known["triplets"], known["loss"]["kind"], known["batch_size"], known["training_seed"]) == (
        "bands-2",
        "triplet",
        128,
        1,
    )


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


def test_a_loss_that_needs_negatives_goes_with_a_union_in_which_one_set_has_some(with_pairs):
    with_pairs["triplets"]["searches"] = {**PAIRS, "layout": "inpars"}
    for changed in ({}, {"triplets": "joined", "loss": "triplet"}):
        with_pairs["models"]["searches"] |= changed
        resolve(with_pairs)


OF_WALKS = {"graph": "citation", "weighted": False, "restart": 0.15, "score": "symmetric", "tolerance": 1e-6}


def test_walks_have_defaults_and_what_ranks_neighbours_is_found_by_its_name(with_walks):
    assert resolve(with_walks)["walks"]["near"] == OF_WALKS | {"k": 400, "among": "edges", "query_jobs": 1}
    plan = Plan(configure(with_walks)).neighbours
    assert list(plan.rankings) == [*with_walks["embeddings"], "near"]
    assert plan.rankings["near"] == configure(with_walks).walks["near"]
    assert plan.rankings["citation-dot"].metric == "cosine"


COUNTS = [{"stage": "graph", "step": f"cocitation-{table}-1"} for table in ("citations", "cocitations", "edges")]
ONE_MAP = {"one": {"benchmark": "holdout", "models": ["specter"]}}


@pytest.mark.parametrize(
    ("fixture", "changes", "steps", "is_there"),
    [
        ("with_walks", {}, [{"embedding": "near"}, {"stage": "neighbours", "step": "near_0"}], [True, True]),
        ("written", {}, [{"embedding": "near"}, {"stage": "neighbours", "step": "near_0"}], [False, False]),
        ("written", {"maps": ONE_MAP}, [{"map": "one"}, {"map": "other"}], [True, False]),
        (
            "written",
            {"maps": ONE_MAP},
            [{"map": "one", "model": run[:-1], "seed": run[-1]} for run in ("specter1", "specter2", "cocite1")],
            [True, False, False],
        ),
        ("written", {}, COUNTS, [False, True, True]),
        ("written", {"graphs__cocitation__citations": {"max_references": 100}}, COUNTS, [True, True, True]),
        (
            "with_aspects",
            {"models__aspects__spaces": ["result"], "benchmarks__holdout__spaces": False},
            [{"benchmark": "holdout", "model": model, "seed": "1"} for model in ("aspects", "aspects_in_result")],
            [True, False],
        ),
    ],
)
def test_files_of_entries_that_are_gone_are_told_from_those_of_entries_that_are_there(
    fixture, changes, steps, is_there, request
):
    config = configure(with_changes(request.getfixturevalue(fixture), **changes))
    assert [is_configured(step, config) for step in steps] == is_there


def test_a_model_says_what_walks_its_triplets_come_from(with_walks):
    assert "walks" not in settings_of_origin("cocite", resolve(with_walks))
    with_walks["models"]["cocite"]["triplets"] = "walked"
    config = resolve(with_walks)
    part = settings_of_origin("cocite", config)
    assert part["walks"] == {"near": OF_WALKS}
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


def test_objectives_stand_in_place_of_a_loss_also_once_they_are_resolved(with_aspects):
    config = resolve(with_aspects)
    model = config["models"]["aspects"]
    assert model["objectives"] == [{"loss": SUPCON, "one_per_query": False, "space": "aspects"}]
    assert "loss" not in model
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
    found = Plan(configure(with_parts)).triplets.sets_in("sampled_examples")
    assert set(found) == {"linked", "aspects", "joined", "part"}


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


@pytest.mark.parametrize(
    ("model", "keys", "runs"),
    [
        (
            "aspects",
            {"spaces": ["result", "concatenated"], "seeds": [1, 2]},
            [f"aspects{space}-{seed}" for space in ("", "_in_result", "_in_concatenated") for seed in (1, 2)],
        ),
        (
            "aspects",
            {"spaces": ["result"], "seeds": [1, 2], "averaged": True},
            ["aspects-1", "aspects-2", "aspects_in_result-1", "aspects_in_result-2", "aspects_averaged-0"],
        ),
        ("cocite", {"poolings": ["cls"], "seeds": [1]}, ["cocite-1", "cocite_in_cls-1"]),
    ],
)
def test_a_model_is_scored_in_its_spaces_with_its_poolings_and_as_the_mean_over_its_seeds(
    with_aspects, model, keys, runs
):
    with_aspects["models"][model] |= keys
    config = configure(with_aspects)
    assert [run for run in runs_of(config) if run.startswith(model)] == runs
    assert {model_of(run.rpartition("-")[0]) for run in runs} == {model}
    assert first_seed(config, runs[-1].rpartition("-")[0]) == (0 if keys.get("averaged") else 1)


def test_a_benchmark_can_do_without_the_spaces_of_models(with_aspects):
    with_aspects["models"]["aspects"]["spaces"] = ["result"]
    with_aspects["benchmarks"]["holdout"]["spaces"] = False
    config = configure(with_aspects)
    assert "aspects_in_result-1" not in runs_of(config, "holdout")
    assert {"aspects-1", "random-0"} <= set(runs_of(config, "holdout")) < set(runs_of(config))


def test_the_spaces_of_models_are_told_apart_where_they_are_scored_on_one_aspect_at_a_time():
    kinds = {"a": {"kind": "aspects"}, "b": {"kind": "aspects", "spaces": False}, "c": {"kind": "holdout"}}
    entries = recorded({"benchmarks": kinds}).benchmarks
    assert [name for name, entry in entries.items() if entry.tells_spaces_apart] == ["a"]


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


TAUGHT = [{"loss": "triplet"}, {"loss": {"kind": "distillation", "embedding": "cocitation-dot"}, "weight": 0.5}]
MASKED = [{"loss": "triplet"}, {"loss": "mlm"}]


def test_a_teacher_is_an_embedding_and_the_usual_share_of_tokens_is_masked(written):
    del written["models"]["cocite"]["loss"]
    written["models"]["cocite"]["objectives"] = [*TAUGHT, MASKED[1]]
    model = resolve(written)["models"]["cocite"]
    assert [term["loss"] for term in model["objectives"][1:]] == [TAUGHT[1]["loss"], {"kind": "mlm", "share": 0.15}]
    settings = TrainingSettings(objectives=model["objectives"])
    assert (settings.teachers, settings.masked_share) == (("cocitation-dot",), 0.15)


def test_a_choice_of_citations_is_complete_and_a_graph_without_one_has_none(written):
    assert not [entry for entry in resolve(written)["graphs"].values() if "citations" in entry]
    written["corpus"]["authors"] = True
    written["graphs"]["citation"]["citations"] = {"self": False}
    chosen = resolve(written)["graphs"]["citation"]["citations"]
    assert chosen == {"influential": False, "intents": [], "self": False}
