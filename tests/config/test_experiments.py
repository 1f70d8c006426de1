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
        *("synergy", "synergy-objectives", "synergy-engines", "synergy-recipe", "hci", "hci-graphs", "hci-triplets"),
        *("hci-losses", "hci-objectives", "hci-ablations", "hci-engines", "hci-signals", "hci-recipe"),
    ],
)
def test_the_experiments_on_real_corpora_are_valid(name, shared, monkeypatch):
    monkeypatch.setenv("COCITE_SHARED", str(shared))
    resolve(yaml.safe_load((ROOT / f"experiments/{name}.yaml").read_text()))


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


def test_the_generated_models_of_aspects_are_scored_in_all_of_their_spaces(experiments):
    models = experiments("planted-aspects")["models"]
    assert models.pop("specter-cl")["spaces"] == []
    spaces = ["background", "methodology", "result", "concatenated"]
    assert {name: model["spaces"] for name, model in models.items()} == {"by-aspect": spaces, "hybrid": spaces}
