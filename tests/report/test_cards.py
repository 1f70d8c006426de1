"""A run's copies of the models' cards have their scores, and all that the training wrote."""

import polars as pl
import pytest

from cocite.encoder.card import card_of
from cocite.report.cards import with_scores, write_cards

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


def test_a_card_has_the_scores_of_its_seed_and_the_mean_of_all():
    scores = [score("m", 60.0, seed=1), score("m", 63.0, seed=2, evaluation=1), score("m", 65.0, seed=2, evaluation=2)]
    card = with_scores(CARD, pl.DataFrame(scores), 2, provenance())
    assert "| benchmark | measure | score | mean of 2 seeds |" in card
    assert "| holdout | cite MAP | 64.0 | 62.0 ± 2.8 |" in card
    assert card.startswith(CARD.partition("## Scores on benchmarks")[0].rstrip())
    assert card.count("## Scores on benchmarks") == 1
    assert "before the model was scored" not in card


def test_with_one_seed_there_is_no_mean():
    card = with_scores(
        CARD, pl.DataFrame([score("m", -0.04, task="fos", metric="f1_macro", mode="compat")]), 1, provenance()
    )
    assert "| holdout | fos macro F1 (compat) | 0.0 |" in card
    assert "mean of" not in card


@pytest.mark.parametrize(("source", "warned"), [("demo", True), ("s2", False)])
def test_scores_on_generated_documents_are_said_to_be_that(source, warned):
    card = with_scores(CARD, pl.DataFrame([score("m", 60.0)]), 1, provenance(source))
    assert ("The documents of holdout are generated" in card) is warned


def test_the_card_of_an_oracle_says_that_its_scores_are_no_results():
    sets = {"answers": {"sampler": "oracle", "benchmark": "holdout"}, "others": {"sampler": "citations"}}
    known = provenance(best={"triplets": "answers"}, m={"triplets": "others"})
    known["configuration"]["triplets"] = sets
    cards = {name: with_scores(CARD, pl.DataFrame([score(name, 60.0)]), 1, known) for name in ("best", "m")}
    said = "This model is an oracle: it has learned from the answers of holdout."
    assert {name: said in card for name, card in cards.items()} == {"best": True, "m": False}


def test_every_training_has_a_card_and_the_models_own_stay_as_they_are(tmp_path):
    for seed in (1, 2):
        (tmp_path / f"encoder/m/seed-{seed}/model").mkdir(parents=True)
        (tmp_path / f"encoder/m/seed-{seed}/model/README.md").write_text(CARD)
    scores = pl.DataFrame([score("m", 60.0, seed=1), score("m", 70.0, seed=2), score("other", 1.0)])
    write_cards(tmp_path, scores, provenance(m={"seeds": [1, 2]}), tmp_path / "report/cards")
    written = sorted(str(path.relative_to(tmp_path / "report/cards")) for path in tmp_path.rglob("cards/**/README.md"))
    assert written == ["m/seed-1/README.md", "m/seed-2/README.md"]


def test_the_mean_of_several_trainings_has_a_card_of_its_own(tmp_path):
    for name in ("m/seed-1", "m/seed-2", "m_averaged/seed-0"):
        (tmp_path / f"encoder/{name}/model").mkdir(parents=True)
        (tmp_path / f"encoder/{name}/model/README.md").write_text(CARD)
    scores = pl.DataFrame([score("m", 60.0, seed=1), score("m", 70.0, seed=2), score("m_averaged", 71.0, seed=0)])
    write_cards(tmp_path, scores, provenance(m={"seeds": [1, 2], "averaged": True}), tmp_path / "report/cards")
    card = (tmp_path / "report/cards/m_averaged/seed-0/README.md").read_text()
    assert "| benchmark | measure | score |\n" in card
    assert "| holdout | cite MAP | 71.0 |" in card
    assert "| cite MAP | 70.0 |" in (tmp_path / "report/cards/m/seed-2/README.md").read_text()
    assert (tmp_path / "encoder/m/seed-2/model/README.md").read_text() == CARD


def test_a_run_without_benchmarks_says_so(tmp_path):
    assert "The run had no benchmark." in with_scores(CARD, pl.DataFrame(schema=["model"]), 1, provenance())


def test_a_run_of_baselines_alone_has_a_folder_without_cards(tmp_path):
    write_cards(tmp_path, pl.DataFrame([score("random", 1.0)]), provenance(), tmp_path / "cards")
    assert list((tmp_path / "cards").iterdir()) == []
