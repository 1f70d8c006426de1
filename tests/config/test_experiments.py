"""The experiments are valid, and are what their names say."""

from pathlib import Path

import pytest
import yaml
from tests.published_sizes import experiments as experiments

from cocite.config.configuration import configure, resolve

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "name",
    [
        *(
            "synergy",
            "hci",
            "hci-graphs",
            "hci-triplets",
            "hci-losses",
            "hci-objectives",
            "hci-ablations",
            "hci-engines",
        ),
        *("synergy-objectives", "hci-signals", "hci-recipe", "synergy-engines", "synergy-recipe"),
    ],
)
def test_the_experiments_on_real_corpora_are_valid(name, shared, monkeypatch):
    monkeypatch.setenv("COCITE_SHARED", str(shared))
    resolve(yaml.safe_load((ROOT / f"experiments/{name}.yaml").read_text()))


def test_the_experiment_at_paper_scale_is_valid(experiments):
    config = experiments("cocite")
    assert config["models"]["cocite-500-3000"]["seeds"] == [1, 2, 3]


def test_the_recipe_is_the_same_on_small_corpora_and_at_paper_scale(tmp_path, shared, monkeypatch):
    monkeypatch.setenv("COCITE_SCIBERT", str(tmp_path))
    monkeypatch.setenv("COCITE_SHARED", str(shared))
    chosen = []
    for name in ("recipe", "hci-recipe", "synergy-recipe"):
        config = resolve(yaml.safe_load((ROOT / f"experiments/{name}.yaml").read_text()))
        recipe = config["models"]["recipe"]
        learned = config["triplets"][recipe["triplets"]]
        sampled = {key: learned[key] for key in ("sampler", "directed", "per_query", "easy", "oversample")}
        chosen.append((recipe["loss"], recipe["block"], sampled, config["encoders"][recipe["encoder"]]["normalise"]))
    assert chosen[1:] == chosen[:1] * 2


def test_the_comparison_of_losses_is_four_losses_by_three_encoders_by_three_seeds(experiments):
    models = experiments("losses")["models"].values()
    assert len({(model["loss"]["kind"], model["encoder"]) for model in models}) == len(models) == 12
    assert {tuple(model["seeds"]) for model in models} == {(1, 2, 3)}


def test_the_comparison_of_encoders_that_exist_trains_nothing_and_pins_what_comes_from_the_hub(tmp_path, monkeypatch):
    for variable in ("COCITE_BENCHMARKS", "COCITE_SPECTER", "COCITE_VECTORS"):
        monkeypatch.setenv(variable, str(tmp_path))
    for name in ("scidocs", "mdcr", "csfcube", "s2and", "doris_mae", "beir/scifact/qrels"):
        (tmp_path / name).mkdir(parents=True)
    for file in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        (tmp_path / "beir/scifact" / file).touch()
    for file in ("abstracts-csfcube-preds.jsonl", "test-pid2anns-csfcube-method.json"):
        (tmp_path / "csfcube" / file).touch()
    config = configure(yaml.safe_load((ROOT / "experiments/competitors.yaml").read_text()))
    assert not any(getattr(config, section) for section in ("graphs", "embeddings", "triplets", "models", "maps"))
    assert not any(entry.build for entry in config.encoders.values())
    assert len(config.benchmarks) == 8
    fetched = [tuple(each) for entry in config.benchmarks.values() for each in entry.from_hub.values()]
    assert {len(revision) for _, revision, _ in fetched} == {40}


def test_the_published_graph_embeddings_are_valid(experiments):
    config = experiments("graph-embeddings")
    settings = {(entry["comparator"], entry["dimension"]) for entry in config["embeddings"].values()}
    assert settings == {("dot", 128), ("dot", 512), ("dot", 768), ("cos", 768)}


def test_the_published_models_of_aspects_are_valid(experiments):
    config = experiments("aspects")
    weights = {name: model["objectives"][0]["weight"] for name, model in config["models"].items() if "hybrid" in name}
    assert weights == {f"hybrid-{tenths}": tenths / 10 for tenths in (7, 5, 6, 8, 9)}
    temperatures = [model["loss"].get("temperature") for model in config["models"].values() if "loss" in model]
    assert sorted({temperature for temperature in temperatures if temperature}) == [0.01, 0.05, 0.1, 0.5]
    assert config["corpus"]["titles_alone"]  # A quarter of the published queries have no abstract.


def test_the_generated_models_of_aspects_are_scored_in_all_of_their_spaces(experiments):
    models = experiments("planted-aspects")["models"]
    assert models.pop("specter-cl")["spaces"] == []
    spaces = ["background", "methodology", "result", "concatenated"]
    assert {name: model["spaces"] for name, model in models.items()} == {"by-aspect": spaces, "hybrid": spaces}


def test_the_published_ablations_are_valid(experiments):
    config = experiments("ablations")
    models, encoders = config["models"], config["encoders"]
    assert models["scincl"]["seeds"] == [*range(1, 11)]
    assert (models["scincl-bitfit"]["trainable"], models["scincl-bitfit"]["lr"]) == ({"kind": "bias"}, 1e-4)
    assert encoders[models["specter-authors"]["encoder"]]["text"] == ["title", "abstract", "authors"]
    assert round(config["queries"]["count"] * (1 - config["queries"]["validation"])) == 136_820
