"""What a card says of where a model comes from: what had an effect, and no folder with more than its name."""

import json

import pytest

from cocite.config.origins import encoder_in_words, graph_of, origin_of, read_origin, sampling_of, settings_of_origin

MIXED = {"per_query": 5, "easy": 3, "easy_negatives": {"kind": "k-means", "clusters": 100}, "fill": False}
CONFIGURATION = {
    "corpus": {"source": "directory", "path": "/home/someone/papers"},
    "graphs": {"cocited": {"signal": "cocitation", "min_count": 2}},
    "embeddings": {
        "dot": {
            **{"graph": "cocited", "comparator": "dot", "dimension": 64, "epochs": 3, "loss": {"kind": "softmax"}},
            "neighbours": {"metric": "cosine", "index": {"kind": "flat"}},
        }
    },
    "triplets": {
        "near": {"sampler": "neighbours", "embedding": "dot", "k_positive": 10, **MIXED},
        "hard": {"sampler": "neighbours", "embedding": "dot", **MIXED, "easy": 0},
        "mined": {
            "sampler": "mined",
            "of": "near",
            "by": {"kind": "model", "metric": "cosine", "name": "m", "training_seed": 2},
        },
        "brought": {"sampler": "file", "path": "/home/someone/triplets.parquet"},
    },
    "encoders": {"e": {"package": "tiny_bert"}},
    "models": {"m": {"triplets": "near", "encoder": "e"}},
}
RUN = {
    "configuration": CONFIGURATION,
    "release": "2026-01-06",
    "packages": {"tiny_bert": {"version": "1.2", "license": "MIT"}},
}


def test_a_model_has_its_encoder_its_triplets_their_graph_and_its_corpus_with_their_terms():
    origin = origin_of("m", RUN)
    assert list(origin) == ["Run", "Base encoder", "Triplets", "Graph", "Corpus"]
    assert origin["Base encoder"]["what it is"] == "the encoder in the Python package tiny_bert 1.2"
    assert "MIT" in origin["Base encoder"]["terms"]
    assert origin["Corpus"]["release"] == "2026-01-06"
    assert "owner of the release" in origin["Corpus"]["terms"]
    assert "/home/someone" not in str(origin)


def test_a_sampler_is_told_with_what_it_does_and_its_settings_that_had_an_effect_without_folders():
    told = sampling_of("near", RUN)
    assert told["sampler"].startswith("neighbours: The sampler of CoCite and SciNCL")
    assert told["k_positive"] == 10
    assert (told["easy_negatives"], told["clusters"]) == ("k-means", 100)
    assert "drawn" not in told
    assert sampling_of("mined", RUN)["by"] == "model m, seed 2, cosine"
    assert "easy_negatives" not in sampling_of("hard", RUN)
    assert sampling_of("brought", RUN)["path"] == "triplets.parquet"
    assert graph_of("brought", RUN) == {}


def test_the_graph_stands_with_the_embedding_that_was_trained_on_it():
    assert graph_of("near", RUN) == {
        "embedding": "dot",
        **{"comparator": "dot", "dimension": 64, "epochs": 3, "loss": "softmax"},
        "metric of the neighbours": "cosine",
        "graph": "cocited",
        **{"signal": "cocitation", "min_count": 2},
    }


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            {"build": {"layers": 2, "hidden": 64, "heads": 2}},
            "a BERT with random weights (2 layers of width 64, 2 heads)",
        ),
        ({"model": "a/b", "revision": 40 * "a"}, f"a/b of the Hugging Face hub, commit {40 * 'a'}"),
        ({"model": "/models/mine"}, "the encoder in the folder mine"),
        (
            {"kind": "static", "dimension": 512, "vocabulary": 9000},
            "a table of at most 9000 word pieces of the corpus with random vectors (512 dimensions)",
        ),
        (
            {"kind": "static", "dimension": 256, "vocabulary": 30000, "distilled_from": "mine"},
            "a table of the word pieces of mine (the encoder in the folder own), with vectors distilled from it (256 "
            "dimensions)",
        ),
    ],
)
def test_an_encoder_is_told_by_where_it_is_from(entry, said):
    run = {"configuration": {"encoders": {"e": entry, "mine": {"model": "/models/own"}}}}
    assert encoder_in_words("e", run).startswith(said)


def test_a_part_of_the_configuration_says_as_much_as_all_of_it_and_has_nothing_that_needs_no_other_training():
    part = settings_of_origin("m", CONFIGURATION)
    assert origin_of("m", {**RUN, "configuration": part}) == origin_of("m", RUN)
    others = {
        "embeddings": {"dot": {**CONFIGURATION["embeddings"]["dot"], "workers": 8}, "other": {}},
        "models": {"m": {**CONFIGURATION["models"]["m"], "seeds": [1, 2], "threads": 4}, "n": {}},
        "benchmarks": {"b": {}},
        "corpus": {**CONFIGURATION["corpus"], "path": "/elsewhere/papers", "keep_raw": True},
    }
    assert settings_of_origin("m", {**CONFIGURATION, **others}) == part


def test_a_model_that_goes_on_from_another_is_read_with_its_own_sets_and_the_encoder_under_it(tmp_path, monkeypatch):
    monkeypatch.setattr("cocite.config.origins.packages_of", lambda _: RUN["packages"])
    # The other one comes first in the alphabet, and so in JSON with sorted keys.
    models = {"m": {"triplets": "near", "encoder": "e"}, "then": {"from": "m", "triplets": "brought"}}
    given = json.dumps(settings_of_origin("then", CONFIGURATION | {"models": models}), sort_keys=True)
    (tmp_path / "manifest.json").write_text(json.dumps({"release": "2026-01-06", "datasets": {}}))
    origin = read_origin(given, tmp_path / "manifest.json")
    assert origin["Run"] == {"model": "then", "goes on from": "m"}
    assert origin["Triplets"]["name"] == "brought"
    assert origin["Base encoder"]["name"] == "e"
