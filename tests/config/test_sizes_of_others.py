"""The experiments of SPECTER, SciNCL, SciAspect and the combined objectives have the published sizes and settings."""

import pytest
from tests.published_sizes import (
    BEIR,
    INPARS,
    Row,
    begins,
    combined,
    each,
    effective_batch,
    models,
    one,
    pairs,
    shares_of,
    training_queries,
    triplets,
    validation_queries,
)
from tests.published_sizes import experiments as experiments

from cocite.config.models import Model
from cocite.config.settings import entry_of

THESIS = "CoCite 2024"
EMBEDDING = ("comparator", "dimension", "epochs", "lr", "chunks", "batch_size")
SCINCL = ("k_positive", "k_negative", "per_query", "easy", "text")
TRAINING = ("epochs", "lr", "warmup", "schedule")

PUBLISHED = [
    Row("ablations", "SPECTER, 3 and SciNCL, Appendix: training triplets", 684_100, triplets("scincl")),
    Row("ablations", "SciNCL, Appendix: training queries", 136_820, training_queries),
    Row(
        "ablations",
        "Parisot & Zavrel 2022, 4.1: SPECTER has 145,375 validation triplets",
        145_375,
        lambda config: validation_queries(config) * 5,
    ),
    Row(
        "ablations",
        "SPECTER, 3: two hard and three easy negatives",
        (5, 3),
        one("triplets", "specter", "per_query", "easy"),
    ),
    Row("ablations", "SciNCL, Table 9", (25, 4000, 5, 3, "required"), one("triplets", "scincl", *SCINCL)),
    Row(
        "ablations",
        "SciNCL, 7: k⁻",
        {2000, 3000, 4000},
        each("triplets", "k_negative", of=lambda name: name in ("scincl", "scincl-k-2000", "scincl-k-3000")),
    ),
    Row(
        "ablations",
        "SciNCL, 7.1: 1% and 10% of the triplets",
        {0.01, 0.1},
        each("triplets", "share", of=lambda name: name.endswith("percent")),
    ),
    Row("ablations", "SciNCL, 4: BitFit", ("bias", 1e-4), one("models", "scincl-bitfit", "trainable", "lr")),
    Row(
        "ablations",
        "SciNCL, Appendix C",
        ("dot", 768, 20, 0.1, 10, 10_000),
        one("embeddings", "citation-dot-768", *EMBEDDING),
    ),
    Row(
        "ablations",
        "SPECTER, 3 and SciNCL, 4: 2 epochs, batch 32, 10%",
        {(2, 32, 0.1)},
        each("models", "epochs", "batch_size", "warmup"),
    ),
    Row("ablations", "SciNCL, Table 2: ten seeds", 10, lambda config: len(config["models"]["scincl"]["seeds"])),
    Row("aspects", "SciAspect, 4.3: 132k training queries", 132, lambda config: round(training_queries(config) / 1000)),
    Row(
        "aspects", "SciAspect, 4.3: 19k validation queries", 19, lambda config: round(validation_queries(config) / 1000)
    ),
    Row(
        "aspects",
        "SciAspect, 4.3: no paper of the benchmarks",
        {"scidocs", "mdcr"},
        lambda config: set(config["exclude"]),
    ),
    Row(
        "aspects",
        "SciAspect, 4.5: benchmarks",
        {"scidocs", "mdcr", "scirepeval"},
        lambda config: {b["kind"] for b in config["benchmarks"].values()} - {"holdout", "aspects"},
    ),
    Row(
        "aspects",
        "SciAspect, 4.4: 2 epochs, 2e-5, ε, cosine after 100 steps",
        {(2, 2e-5, 1e-8, "cosine", 100)},
        each("models", "epochs", "lr", "epsilon", "schedule", "warmup"),
    ),
    Row("aspects", "SciAspect, 4.4: batch of experiment 1", {32}, effective_batch("specter")),
    Row(
        "aspects",
        "SciAspect, 4.4: batch of the others",
        {8},
        lambda config: effective_batch(*(set(config["models"]) - {"specter"}))(config),
    ),
    Row(
        "aspects",
        "SciAspect, Table 6.3: positives × negatives",
        {(1, 1, 0), (1, 2, 3), (1, 0, 3), (2, 2, 3), (4, 2, 3), (5, 2, 3)},
        each("triplets", "positives", "hard", "easy", of=lambda name: "to-" in name),
    ),
    Row(
        "aspects",
        "SciAspect, Table 6.3: τ",
        {0.01, 0.05, 0.1, 0.5},
        lambda config: {m["loss"]["temperature"] for n, m in config["models"].items() if n.startswith("specter-cl")},
    ),
    Row(
        "aspects",
        "SciAspect, Table 6.6: α",
        {0.5, 0.6, 0.7, 0.8, 0.9},
        lambda config: {m["objectives"][0]["weight"] for n, m in config["models"].items() if n.startswith("hybrid")},
    ),
    Row(
        "aspects",
        "SciAspect, 5: an instance of an aspect",
        (1, 10, 3),
        one("triplets", "aspects", "positives", "linked", "easy"),
    ),
    Row(
        "aspects",
        "SciAspect, 5.4: local and global negatives",
        (1, 5, 5, 0),
        one("triplets", "hybrid", "positives", "linked", "two_away", "easy"),
    ),
    Row(
        "aspects",
        "SciAspect, Table 6.7: negatives two links away",
        {(3, 3), (5, 0), (0, 3)},
        each("triplets", "two_away", "easy", of=begins("away")),
    ),
    Row("objectives", "Parisot & Zavrel 2022, 4.1: SPECTER's triplets", 684_100, triplets("citations")),
    Row(
        "objectives",
        "Parisot & Zavrel 2022, 4.1: validation triplets",
        145_375,
        lambda config: validation_queries(config) * 5,
    ),
    Row(
        "objectives",
        "Parisot & Zavrel 2022, 4.1: five negatives of each system, 3.0 below",
        {(5, 3.0)},
        lambda config: {
            (s["layout"]["per_system"], s["layout"]["margin"]) for n, s in config["triplets"].items() if n == "msmarco"
        },
    ),
    Row(
        "objectives",
        "Parisot & Zavrel 2022, 4.1: a triplet of each query",
        {True},
        lambda config: (
            {m["one_per_query"] for m in config["models"].values() if m.get("triplets") == "msmarco"}
            | {
                t["one_per_query"]
                for m in config["models"].values()
                for t in m.get("objectives") or ()
                if t["triplets"] == "msmarco"
            }
        ),
    ),
    Row(
        "objectives", "Parisot & Zavrel 2022, 3.2: spans of ten tokens", (10,), one("triplets", "cropping", "shortest")
    ),
    Row(
        "objectives",
        "Parisot & Zavrel 2022, 4.1: sentences with two papers",
        (2, 1, 0, 1),
        one("triplets", "context2doc", "min_cited", "positives", "elsewhere", "easy"),
    ),
    Row(
        "objectives",
        "Parisot & Zavrel 2022, 4.1: InPars of all datasets of BEIR",
        INPARS,
        lambda config: {n.removeprefix("inpars-") for n in config["triplets"]["inpars"]["of"]},
    ),
    Row(
        "objectives",
        "Parisot & Zavrel 2022, 4.2: BEIR's subset",
        {f"beir_{n.replace('-', '_')}" for n in BEIR},
        lambda config: set(config["benchmarks"]["beir"]["tasks"]),
    ),
    Row(
        "objectives",
        "Parisot & Zavrel 2022, 4.3: 200,000 steps, patience, 16 × 2, 2e-5, no warm-up",
        {(200_000, 2, 16, 2, 2e-5, 0.0, 1e-8, 0.0)},
        models(
            "max_steps",
            "patience",
            "batch_size",
            "accumulation",
            "lr",
            "warmup",
            "epsilon",
            "weight_decay",
            go_on=False,
        ),
    ),
    Row(
        "objectives",
        "Parisot & Zavrel 2022, 4.3: fine-tuning for an epoch",
        {(1, 1e-5, 0.0)},
        models(
            "epochs",
            "lr",
            "warmup",
            go_on=True,
        ),
    ),
    Row(
        "objectives",
        "Parisot & Zavrel 2022, Table 2",
        pairs("msmarco", "cropping")
        | pairs("citations", "msmarco")
        | pairs("citations", "cropping")
        | {(frozenset({"msmarco", "citations", "cropping"}), mixing) for mixing in ("in-batch", "alternating")},
        lambda config: {each for each in combined(config) if not {"inpars", "doc2doc", "context2doc"} & set(each)},
    ),
    Row(
        "objectives",
        "Parisot & Zavrel 2022, Tables 3 and 4",
        {
            ("cropping", "doc2doc"),
            ("cropping", "context2doc"),
            *((first, "inpars") for first in ("msmarco", "citations", "cropping")),
        },
        lambda config: {each for each in combined(config) if {"inpars", "doc2doc", "context2doc"} & set(each)},
    ),
    Row(
        "objectives",
        "Parisot & Zavrel 2022, Figure 3: shares of MS MARCO beside 0 and 1",
        {0.25, 0.5, 0.75},
        shares_of("msmarco"),
    ),
    Row(
        "objectives",
        "Parisot & Zavrel 2022, 3.1: MNRL",
        {"mnrl"},
        lambda config: {c.loss.kind for m in config["models"].values() for c in entry_of(m, Model).comparisons},
    ),
]


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row.experiment}: {row.source}")
def test_an_experiment_has_the_published_sizes_and_settings(row, experiments):
    assert row.has(experiments(row.experiment)) == row.published
