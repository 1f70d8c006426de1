"""Models that differ in one thing stand side by side; the others do not."""

import polars as pl

from cocite.report.scores import difficulties, losses

MODEL = {"triplets": "near", "encoder": "e", "lr": 0.1}
BAND = {"sampler": "neighbours", "embedding": "g", "per_query": 7, "k_positive": 25}
CONFIGURATION = {
    "triplets": {
        "near": {**BAND, "k_negative": 1000},
        "far": {**BAND, "k_negative": [4000, 5000]},
        "fewer": {**BAND, "k_negative": 1000, "per_query": 5},
    },
    "models": {
        "infonce": {**MODEL, "loss": {"kind": "infonce", "temperature": 0.1}},
        "triplet": {**MODEL, "loss": {"kind": "triplet", "margin": 1.0}},
    },
    "encoders": {"e": {}},
    "benchmarks": {"sre": {"kind": "scirepeval"}},
}


def score(model, value):
    names = {"benchmark": "sre", "task": "fos", "metric": "f1_macro", "format": "classification", "mode": "both"}
    return {"model": model, "seed": 1, "evaluation_seed": 1, "value": value, **names}


def curve(*measured, seed=1):
    return pl.DataFrame(
        [
            {"seed": seed, "step": step, "metric": f"validation_{name}", "value": value}
            for step, loss, accuracy in measured
            for name, value in (("loss", loss), ("accuracy", accuracy))
        ]
    )


def test_losses_are_compared_by_the_accuracy_of_the_state_that_was_kept():
    scores = pl.DataFrame([score("triplet", 1.0), score("infonce", 2.0)])
    curves = {"triplet": curve((1, 0.5, 0.7), (2, 0.4, 0.8), (3, 0.6, 0.9)), "infonce": curve((1, 2.0, 0.75))}
    table = losses(scores, curves, CONFIGURATION)
    assert dict(zip(table["loss"], table["validation accuracy"], strict=True)) == {"infonce": "75.0", "triplet": "80.0"}


def test_the_accuracy_deviates_over_the_training_seeds():
    scores = pl.DataFrame([score("triplet", 1.0), score("infonce", 2.0)])
    seeds = pl.concat([curve((1, 0.4, 0.8), (2, 0.5, 0.9), seed=1), curve((1, 0.6, 0.5), (2, 0.4, 0.84), seed=2)])
    table = losses(scores, {"triplet": seeds, "infonce": curve((1, 2.0, 0.75))}, CONFIGURATION)
    accuracies = dict(zip(table["loss"], table["validation accuracy"], strict=True))
    assert accuracies == {"infonce": "75.0", "triplet": "82.0 ± 2.8"}  # 80 and 84


def test_a_model_that_differs_in_more_than_its_loss_is_not_compared():
    configuration = {
        **CONFIGURATION,
        "models": {
            **CONFIGURATION["models"],
            "long": {**MODEL, "loss": {"kind": "angle", "temperature": 20.0}, "lr": 9},
        },
    }
    scores = pl.DataFrame([score("triplet", 1.0), score("infonce", 2.0), score("long", 2.0)])
    curves = dict.fromkeys(("triplet", "infonce", "long"), curve((1, 0.5, 0.7)))
    assert "long" not in losses(scores, curves, configuration)["model"].to_list()


def test_without_two_losses_there_is_nothing_to_compare():
    configuration = {**CONFIGURATION, "models": {"triplet": CONFIGURATION["models"]["triplet"]}}
    assert losses(pl.DataFrame([score("triplet", 1.0)]), {}, configuration).is_empty()


def compared_difficulties(**models):
    configuration = {
        **CONFIGURATION,
        "models": {name: {**MODEL, "loss": {"kind": "triplet"}, **entry} for name, entry in models.items()},
    }
    scores = pl.DataFrame([score(name, 1.0) for name in models])
    return difficulties(scores, dict.fromkeys(models, curve((1, 0.5, 0.7))), configuration)


def test_models_with_other_bands_are_compared_by_them():
    table = compared_difficulties(first={}, second={"triplets": "far"})
    assert table.select("model", "k⁺", "k⁻", "validation accuracy").rows() == [
        ("first", "25", "1000", "70.0"),
        ("second", "25", "4000–5000", "70.0"),
    ]


def test_a_model_whose_triplets_differ_in_more_than_their_bands_is_not_compared():
    assert compared_difficulties(first={}, second={"triplets": "fewer"}).is_empty()


def test_a_model_that_differs_in_more_than_its_triplets_is_not_compared():
    assert compared_difficulties(first={}, second={"triplets": "far", "lr": 9}).is_empty()
