"""The experiments of the thesis CoCite have its sizes and settings."""

import pytest
from tests.published_sizes import (
    Row,
    bands,
    begins,
    each,
    effective_batch,
    losses_by_encoder,
    one,
    triplets,
)
from tests.published_sizes import experiments as experiments

THESIS = "CoCite 2024"
EMBEDDING = ("comparator", "dimension", "epochs", "lr", "chunks", "batch_size")
SCINCL = ("k_positive", "k_negative", "per_query", "easy", "text")
TRAINING = ("epochs", "lr", "warmup", "schedule")

PUBLISHED = [
    Row("cocite", f"{THESIS}, 6.3.2: 70k training triplets", {70_000}, each("triplets", "count", of=begins("cocite-"))),
    Row(
        "cocite",
        f"{THESIS}, 5.2.3: seven positives and negatives",
        {7},
        each("triplets", "per_query", of=begins("sampled-")),
    ),
    Row(
        "cocite",
        f"{THESIS}, 6.3.2: k⁺ and k⁻",
        {(25, 1000), (25, 3000), (200, 3000), (500, 3000), (25, 5000)},
        bands("cocite-"),
    ),
    Row(
        "cocite",
        f"{THESIS}, 4.2.3: texts are looked up after sampling",
        {"dropped"},
        each("triplets", "text", of=begins("sampled-")),
    ),
    Row(
        "cocite",
        f"{THESIS}, 5.3: 32 × 4, 3 epochs, 2e-5, 5%",
        {(3, 2e-5, 0.05, "linear")},
        each("models", *TRAINING, of=begins("cocite-")),
    ),
    Row("cocite", f"{THESIS}, 4.1.3: effective batch", {128}, effective_batch("cocite-25-1000", "cocite-25-5000")),
    Row(
        "cocite",
        f"{THESIS}, 4.1.3: three seeds",
        {(1, 2, 3)},
        lambda config: {tuple(m["seeds"]) for m in config["models"].values()},
    ),
    Row(
        "cocite",
        f"{THESIS}, 4.1.3: SciBERT reads 512 tokens, CLS",
        ("cls", 512),
        one("encoders", "scibert", "pooling", "max_length"),
    ),
    Row(
        "cocite",
        f"{THESIS}, 4.2.2, as SciNCL's",
        ("dot", 768, 20, 0.1, 10, 10_000),
        one("embeddings", "cocitation-dot-768", *EMBEDDING),
    ),
    Row(
        "cocite",
        f"{THESIS}, 5.2.3: nearest neighbours",
        5000,
        lambda config: config["embeddings"]["cocitation-dot-768"]["neighbours"]["k"],
    ),
    Row(
        "cocite",
        f"{THESIS}, 5.2.2: 250,874,460 edges, so many processes",
        True,
        lambda config: config["embeddings"]["cocitation-dot-768"]["workers"] > 1,
    ),
    Row("cocite", f"{THESIS}, 5.2: release", "2024-07-16", lambda config: config["release"]),
    Row("cocite", "SPECTER, 3: training triplets", 684_100, triplets("specter")),
    Row(
        "cocite",
        "SPECTER, 3: cut fraction 0.1, 2 epochs",
        ("triplet", 2, 2e-5, 0.1),
        one("models", "specter", "loss", "epochs", "lr", "warmup"),
    ),
    Row("cocite", "SPECTER, 3: effective batch", {32}, effective_batch("specter", "scincl")),
    Row("cocite", "SciNCL, Appendix: training triplets", 684_100, triplets("scincl")),
    Row("cocite", "SciNCL, Table 9", (25, 4000, 5, 3, "required"), one("triplets", "scincl", *SCINCL)),
    Row(
        "cocite",
        f"{THESIS}, 5.1: three evaluation seeds",
        {(1, 2, 3)},
        lambda config: {tuple(b["seeds"]) for b in config["benchmarks"].values()},
    ),
    Row(
        "losses",
        f"{THESIS}, 4.1.1: SPECTER2's triplets, 6.2 million and 175 thousand, with their texts",
        {("pairs", "specter", "allenai/scirepeval", True)},
        each("triplets", "sampler", "layout", "dataset", "paired"),
    ),
    Row("losses", f"{THESIS}, 4.1.1: all of the triplets", {None}, each("triplets", "per_query")),
    Row(
        "losses",
        f"{THESIS}, 5.3: InfoNCE in blocks of exactly four",
        {(4, "specter2-blocks")},
        each("models", "block", "triplets", of=lambda name: name.endswith("infonce")),
    ),
    Row("losses", f"{THESIS}, 5.3: blocks of four", (4,), one("triplets", "specter2-blocks", "blocks_of")),
    Row(
        "losses",
        f"{THESIS}, 5.3: the others are shuffled",
        {(1, "specter2")},
        each("models", "block", "triplets", of=lambda name: not name.endswith("infonce")),
    ),
    Row(
        "losses",
        f"{THESIS}, 4.1.2 and Table 6.5",
        {
            (loss, *encoder)
            for loss in ("triplet", "infonce", "cosent", "angle")
            for encoder in (("gte", "mean"), ("scibert-mean", "mean"), ("scibert-cls", "cls"))
        },
        losses_by_encoder,
    ),
    Row("losses", f"{THESIS}, 5.3: one epoch, 2e-5, 5%", {(1, 2e-5, 0.05, "linear")}, each("models", *TRAINING)),
    Row(
        "losses", f"{THESIS}, 4.1.3: effective batch", {128}, lambda config: effective_batch(*config["models"])(config)
    ),
    Row(
        "losses",
        f"{THESIS}, 4.1.3: three seeds",
        {(1, 2, 3)},
        lambda config: {tuple(m["seeds"]) for m in config["models"].values()},
    ),
    Row("losses", f"{THESIS}, 4.1.3: input size", {512}, each("encoders", "max_length")),
    Row(
        "losses",
        f"{THESIS}, Table 6.5: SciRepEval, three evaluation seeds",
        {("scirepeval", (1, 2, 3))},
        lambda config: {(b["kind"], tuple(b["seeds"])) for b in config["benchmarks"].values()},
    ),
    Row(
        "losses",
        "SPECTER, 2.3: margin",
        {1.0},
        lambda config: {m["loss"]["margin"] for m in config["models"].values() if m["loss"]["kind"] == "triplet"},
    ),
    Row(
        "losses",
        f"{THESIS}, 5.3: τ",
        {("infonce", 0.1), ("cosent", 20.0), ("angle", 20.0)},
        lambda config: {
            (m["loss"]["kind"], m["loss"]["temperature"])
            for m in config["models"].values()
            if "temperature" in m["loss"]
        },
    ),
    Row(
        "graph-embeddings",
        f"{THESIS}, 6.3.1",
        {("dot", 128), ("dot", 512), ("dot", 768), ("cos", 768)},
        each("embeddings", "comparator", "dimension"),
    ),
    Row(
        "graph-embeddings",
        f"{THESIS}, 4.2.2, as SciNCL's",
        {(20, 0.1, 10, 10_000)},
        each("embeddings", "epochs", "lr", "chunks", "batch_size"),
    ),
    Row(
        "graph-embeddings",
        f"{THESIS}, 4.2.2: margin",
        {0.15},
        lambda config: {e["loss"]["margin"] for e in config["embeddings"].values()},
    ),
    Row("graph-embeddings", f"{THESIS}, 6.3.1: hold-out of 5%", {0.05}, each("embeddings", "holdout")),
]


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row.experiment}: {row.source}")
def test_an_experiment_has_the_published_sizes_and_settings(row, experiments):
    assert row.has(experiments(row.experiment)) == row.published
