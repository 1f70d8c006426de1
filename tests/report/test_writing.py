"""A run's copies of the models' cards have their scores, and Snakemake's own report belongs to a finished run."""

import os

import polars as pl
import pytest

from cocite.core.errors import InputError
from cocite.encoder.card import card_of
from cocite.report.writing import with_scores, write_archive, write_cards

CARD = card_of(
    origin={"Corpus": {"source": "papers of ours"}},
    encoder={"pooling": "mean"},
    settings={"loss": "triplet", "trainable": {"kind": "all"}},
    seeds={"run": 1, "training": 2},
    triplets={"training": 22, "validation": 6},
    best={"step": 5, "validation_loss": 0.5, "validation_accuracy": 0.9},
    versions={"torch": "2.13.0"},
)
BENCHMARKS = {"holdout": {"kind": "holdout"}, "real": {"kind": "scirepeval", "folder": "x"}}


def provenance(source="s2", **models):
    return {"configuration": {"corpus": {"source": source}, "benchmarks": BENCHMARKS, "models": models}}


def score(model, value, *, seed=1, evaluation=1, task="cite", metric="map", mode="both"):
    row = {"benchmark": "holdout", "task": task, "metric": metric, "mode": mode, "model": model}
    return row | {"seed": seed, "evaluation_seed": evaluation, "value": value}


def card(*scores, seed=1, known=None):
    return with_scores(CARD, pl.DataFrame(scores, schema=None if scores else ["model"]), seed, known or provenance())


def test_a_card_has_the_scores_of_its_seed_and_the_mean_of_all():
    scores = [score("m", 60.0, seed=1), score("m", 63.0, seed=2, evaluation=1), score("m", 65.0, seed=2, evaluation=2)]
    written = card(*scores, seed=2)
    assert "| benchmark | measure | score | mean of 2 seeds |" in written
    assert "| holdout | papers it cites, MAP | 64.0 | 62.0 ± 2.8 |" in written
    assert written.startswith(CARD.partition("## Scores on benchmarks")[0].rstrip())
    assert written.count("## Scores on benchmarks") == 1
    assert "before the model was scored" not in written


def test_with_one_seed_there_is_no_mean_and_scores_on_generated_documents_are_said_to_be_that():
    row = score("m", -0.04, task="fos", metric="f1_macro", mode="compat")
    assert "The documents of holdout are generated" in card(row, known=provenance("demo"))
    written = card(row)
    assert "| holdout | fields of study, macro F1 (compat) | 0.0 |" in written
    assert "mean of" not in written
    assert "are generated" not in written


def test_the_card_of_an_oracle_says_that_its_scores_are_no_results():
    sets = {"answers": {"sampler": "oracle", "benchmark": "holdout"}, "others": {"sampler": "citations"}}
    known = provenance(best={"triplets": "answers"}, m={"triplets": "others"})
    known["configuration"]["triplets"] = sets
    said = "This model is an oracle: it has learned from the answers of holdout."
    warned = {name: said in card(score(name, 60.0), known=known) for name in ("best", "m")}
    assert warned == {"best": True, "m": False}


def test_every_training_and_the_mean_of_several_has_a_card_and_the_models_own_stay_as_they_are(tmp_path):
    names = ["m/seed-1", "m/seed-2", "m_averaged/seed-0"]
    for name in names:
        (tmp_path / f"encoder/{name}/model").mkdir(parents=True)
        (tmp_path / f"encoder/{name}/model/README.md").write_text(CARD)
    scores = [score("m", 60.0, seed=1), score("m", 70.0, seed=2), score("m_averaged", 71.0, seed=0)]
    known = provenance(m={"seeds": [1, 2], "averaged": True})
    write_cards(tmp_path, pl.DataFrame([*scores, score("other", 1.0)]), known, tmp_path / "cards")
    written = {str(path.parent.relative_to(tmp_path / "cards")): path for path in tmp_path.glob("cards/*/*/README.md")}
    assert sorted(written) == names
    averaged = written["m_averaged/seed-0"].read_text()
    assert "| benchmark | measure | score |\n" in averaged
    assert "| holdout | papers it cites, MAP | 71.0 |" in averaged
    assert "| papers it cites, MAP | 70.0 |" in written["m/seed-2"].read_text()
    assert (tmp_path / "encoder/m/seed-2/model/README.md").read_text() == CARD


def test_runs_without_benchmarks_or_models_have_cards_that_say_so_or_none(tmp_path):
    without = {"configuration": {**provenance()["configuration"], "benchmarks": {}}}
    assert "\n\nThe run had no benchmark.\n" in card(known=without)
    assert "\n\nThis model has no score.\n" in card()
    write_cards(tmp_path, pl.DataFrame([score("random", 1.0)]), provenance(), tmp_path / "cards")
    assert list((tmp_path / "cards").iterdir()) == []


def test_an_archive_needs_a_page_and_one_that_is_newer_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text("pathvars: {results: made}\n")
    report = tmp_path / "made/report"
    report.mkdir(parents=True)
    with pytest.raises(InputError, match="run the workflow first"):
        write_archive(tmp_path / "config.yaml")
    (report / "index.html").touch()
    (report / "report.zip").write_text("kept")
    os.utime(report / "index.html", (1, 1))
    write_archive(tmp_path / "config.yaml")
    assert (report / "report.zip").read_text() == "kept"
