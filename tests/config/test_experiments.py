"""The experiments are valid, are what their names say, and have the published sizes and settings."""

from pathlib import Path

import pytest
import yaml
from tests.published_sizes import (
    BEIR,
    INPARS,
    bands,
    begins,
    combined,
    each,
    effective_batch,
    losses_by_encoder,
    models,
    one,
    pairs,
    shares_of,
    training_queries,
    triplets,
    validation_queries,
)
from tests.published_sizes import experiments as experiments

from cocite.config.configuration import configure, resolve
from cocite.config.models import Model
from cocite.config.settings import entry_of
from cocite.core.errors import InputError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "name",
    [
        *("synergy", "synergy-objectives", "synergy-engines", "synergy-recipe", "hci", "hci-graphs", "hci-triplets"),
        *("hci-objectives", "hci-ablations", "hci-engines", "hci-signals", "hci-recipe"),
        *("hci-static", "hci-index-later", "synergy-index-later"),
        *("synergy-screening", "study", "study-synergy", "study-synergy-later", "study-again"),
    ],
)
def test_the_experiments_on_real_corpora_are_valid(name, shared, monkeypatch):
    monkeypatch.setenv("COCITE_SHARED", str(shared))
    monkeypatch.chdir(ROOT)
    resolve(yaml.safe_load((ROOT / f"experiments/{name}.yaml").read_text()))


def test_the_public_corpus_is_compared_with_the_settings_of_the_documented_figures(shared, monkeypatch, tmp_path):
    monkeypatch.setenv("COCITE_SHARED", str(shared))
    monkeypatch.chdir(tmp_path)
    tables = Path("data/synergy/tables")
    tables.mkdir(parents=True)
    (tables / "Chou_2004.csv").touch()
    Path("experiments").symlink_to(ROOT / "experiments")
    documented, public = (
        resolve(yaml.safe_load((ROOT / f"experiments/{name}.yaml").read_text()))
        for name in ("synergy-index-later", "synergy-public")
    )
    assert {key for key in documented if documented[key] != public[key]} == {"corpus", "release", "pathvars"}


@pytest.mark.parametrize(
    ("name", "encoder", "folder"),
    [
        ("study-wordllama", "wordllama", "data/wordllama/table"),
        ("study-synergy-again", "of-hci", "results/study-again/encoder/static/seed-1/model"),
    ],
)
def test_an_encoder_is_taken_from_the_folder_that_the_experiment_names(
    shared, monkeypatch, tmp_path, name, encoder, folder
):
    written = yaml.safe_load((ROOT / f"experiments/{name}.yaml").read_text())
    monkeypatch.setenv("COCITE_SHARED", str(shared))
    monkeypatch.chdir(tmp_path)
    Path("experiments").symlink_to(ROOT / "experiments")
    with pytest.raises(InputError, match=rf"encoders.{encoder}.model: the folder ./{folder} does not exist"):
        resolve(written)
    Path(folder).mkdir(parents=True)
    assert resolve(written)["encoders"][encoder]["model"] == f"./{folder}"


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


EMBEDDING = ("comparator", "dimension", "epochs", "lr", "chunks", "batch_size")
SCINCL = ("k_positive", "k_negative", "per_query", "easy", "text_filter")
TRAINING = ("epochs", "lr", "warmup", "schedule")
STEPS = ("max_steps", "patience", "batch_size", "accumulation", "lr", "warmup", "epsilon", "weight_decay")
LATER = {"inpars", "doc2doc", "context2doc"}


def of_losses(section, *keys, of=lambda name: True):
    """The values of some keys in the losses of a section, with the kind of each loss."""

    def values(config):
        losses = [entry["loss"] for name, entry in config[section].items() if of(name)]
        return {(loss["kind"], loss[key]) for loss in losses for key in keys if key in loss}

    return values


def one_per_query(config):
    """Whether the models take one triplet of each query of MS MARCO at a time."""
    terms = [term for model in config["models"].values() for term in (model, *(model.get("objectives") or ()))]
    return {term["one_per_query"] for term in terms if term.get("triplets") == "msmarco"}


PUBLISHED = {
    ("cocite", "CoCite 2024"): {
        "6.3.2: 70k training triplets": ({70_000}, each("triplets", "count", of=begins("cocite-"))),
        "5.2.3: seven positives and negatives": ({7}, each("triplets", "per_query", of=begins("sampled-"))),
        "6.3.2: k⁺ and k⁻": ({(25, 1000), (25, 3000), (200, 3000), (500, 3000), (25, 5000)}, bands("cocite-")),
        "4.2.3: texts after sampling": ({"after"}, each("triplets", "text_filter", of=begins("sampled-"))),
        "5.3: 3 epochs, 2e-5, 5%": ({(3, 2e-5, 0.05, "linear")}, each("models", *TRAINING, of=begins("cocite-"))),
        "4.1.3: effective batch": ({128}, effective_batch("cocite-25-1000", "cocite-25-5000")),
        "4.1.3: three seeds": ({(1, 2, 3)}, each("models", "seeds")),
        "4.1.3: SciBERT reads 512 tokens, CLS": (("cls", 512), one("encoders", "scibert", "pooling", "max_length")),
        "4.2.2, as SciNCL's": (("dot", 768, 20, 0.1, 10, 10_000), one("embeddings", "cocitation-dot-768", *EMBEDDING)),
        "5.2.3: nearest neighbours": (
            5000,
            lambda config: config["embeddings"]["cocitation-dot-768"]["neighbours"]["k"],
        ),
        "5.2.2: 250,874,460 edges, so many processes": (
            True,
            lambda config: config["embeddings"]["cocitation-dot-768"]["workers"] > 1,
        ),
        "5.2: release": ("2024-07-16", lambda config: config["release"]),
        "5.1: three evaluation seeds": ({(1, 2, 3)}, each("benchmarks", "seeds")),
    },
    ("cocite", "SPECTER, 3"): {
        "training triplets": (684_100, triplets("specter")),
        "cut fraction 0.1, 2 epochs": (("triplet", 2, 2e-5, 0.1), one("models", "specter", "loss", *TRAINING[:3])),
        "effective batch": ({32}, effective_batch("specter", "scincl")),
    },
    ("cocite", "SciNCL"): {
        "Appendix: training triplets": (684_100, triplets("scincl")),
        "Table 9": ((25, 4000, 5, 3, "before"), one("triplets", "scincl", *SCINCL)),
    },
    ("losses", "CoCite 2024"): {
        "4.1.1: SPECTER2's triplets, 6.2 million and 175 thousand, with their texts": (
            {("pairs", "specter", "allenai/scirepeval", True)},
            each("triplets", "sampler", "layout", "dataset", "paired"),
        ),
        "4.1.1: all of the triplets": ({None}, each("triplets", "per_query")),
        "5.3: InfoNCE in blocks of exactly four": (
            {(4, "specter2-blocks")},
            each("models", "block", "triplets", of=lambda name: name.endswith("infonce")),
        ),
        "5.3: blocks of four": ((4,), one("triplets", "specter2-blocks", "blocks_of")),
        "5.3: the others are shuffled": (
            {(1, "specter2")},
            each("models", "block", "triplets", of=lambda name: not name.endswith("infonce")),
        ),
        "4.1.2 and Table 6.5": (
            {
                (loss, *encoder)
                for loss in ("triplet", "infonce", "cosent", "angle")
                for encoder in (("gte", "mean"), ("scibert-mean", "mean"), ("scibert-cls", "cls"))
            },
            losses_by_encoder,
        ),
        "5.3: one epoch, 2e-5, 5%": ({(1, 2e-5, 0.05, "linear")}, each("models", *TRAINING)),
        "4.1.3: effective batch": ({128}, effective_batch()),
        "4.1.3: three seeds": ({(1, 2, 3)}, each("models", "seeds")),
        "4.1.3: input size": ({512}, each("encoders", "max_length")),
        "Table 6.5: three evaluation seeds": ({("scirepeval", (1, 2, 3))}, each("benchmarks", "kind", "seeds")),
        "5.3: τ and scale, and the margin of SPECTER, 2.3": (
            {("infonce", 0.1), ("cosent", 20.0), ("angle", 20.0), ("triplet", 1.0)},
            of_losses("models", "temperature", "scale", "margin"),
        ),
    },
    ("graph-embeddings", "CoCite 2024"): {
        "6.3.1": ({("dot", 128), ("dot", 512), ("dot", 768), ("cos", 768)}, each("embeddings", *EMBEDDING[:2])),
        "4.2.2, as SciNCL's": ({(20, 0.1, 10, 10_000)}, each("embeddings", *EMBEDDING[2:])),
        "4.2.2: margin": ({("ranking", 0.15)}, of_losses("embeddings", "margin")),
        "6.3.1: hold-out of 5%": ({0.05}, each("embeddings", "holdout")),
    },
    ("ablations", "SPECTER"): {
        "3: two hard and three easy negatives": ((5, 3), one("triplets", "specter", "per_query", "easy")),
        "4: authors as a third field": (
            (["title", "abstract", "authors"],),
            lambda config: (config["encoders"][config["models"]["specter-authors"]["encoder"]]["text"],),
        ),
        "145,375 validation triplets, by Parisot & Zavrel 2022, 4.1": (
            145_375,
            lambda config: validation_queries(config) * 5,
        ),
    },
    ("ablations", "SciNCL"): {
        "Appendix, and SPECTER, 3: training triplets": (684_100, triplets("scincl")),
        "Appendix: training queries": (136_820, training_queries),
        "Table 9": ((25, 4000, 5, 3, "before"), one("triplets", "scincl", *SCINCL)),
        "7: k⁻": (
            {2000, 3000, 4000},
            each("triplets", "k_negative", of=lambda name: name in ("scincl", "scincl-k-2000", "scincl-k-3000")),
        ),
        "7.1: shares": ({0.01, 0.1}, each("triplets", "share", of=lambda name: name.endswith("percent"))),
        "4: BitFit": (("bias", 1e-4), one("models", "scincl-bitfit", "trainable", "lr")),
        "Appendix C": (("dot", 768, 20, 0.1, 10, 10_000), one("embeddings", "citation-dot-768", *EMBEDDING)),
        "4, and SPECTER, 3: 2 epochs, batch 32, 10%": (
            {(2, 32, 0.1)},
            each("models", "epochs", "batch_size", "warmup"),
        ),
        "Table 2: ten seeds": (10, lambda config: len(config["models"]["scincl"]["seeds"])),
    },
    ("aspects", "SciAspect"): {
        "4.3: 132k training queries": (132, lambda config: round(training_queries(config) / 1000)),
        "4.3: 19k validation queries": (19, lambda config: round(validation_queries(config) / 1000)),
        "a quarter of the queries have no abstract": (True, lambda config: config["corpus"]["allow_missing_abstract"]),
        "4.3: no paper of the benchmarks": ({"scidocs", "mdcr"}, lambda config: set(config["exclude"])),
        "4.5: benchmarks": (
            {"scidocs", "mdcr", "scirepeval"},
            lambda config: each("benchmarks", "kind")(config) - {"holdout", "aspects"},
        ),
        "4.4: 2 epochs, 2e-5, ε, cosine after 100 steps": (
            {(2, 2e-5, 1e-8, "cosine", 100)},
            each("models", "epochs", "lr", "epsilon", "schedule", "warmup"),
        ),
        "4.4: batch of experiment 1": ({32}, effective_batch("specter")),
        "4.4: batch of the others": ({8}, effective_batch(but=["specter"])),
        "Table 6.3: positives × negatives": (
            {(1, 1, 0), (1, 2, 3), (1, 0, 3), (2, 2, 3), (4, 2, 3), (5, 2, 3)},
            each("triplets", "positives", "hard", "easy", of=lambda name: "to-" in name),
        ),
        "Table 6.3: τ": (
            {("supcon", 0.01), ("supcon", 0.05), ("supcon", 0.1), ("supcon", 0.5)},
            of_losses("models", "temperature", of=begins("specter-cl")),
        ),
        "Table 6.6: α": (
            {0.5, 0.6, 0.7, 0.8, 0.9},
            lambda config: {
                m["objectives"][0]["weight"] for n, m in config["models"].items() if n.startswith("hybrid")
            },
        ),
        "5: an instance of an aspect": ((1, 10, 3), one("triplets", "aspects", "positives", "linked", "easy")),
        "5.4: local and global negatives": (
            (1, 5, 5, 0),
            one("triplets", "hybrid", "positives", "linked", "two_away", "easy"),
        ),
        "Table 6.7: negatives two links away": (
            {(3, 3), (5, 0), (0, 3)},
            each("triplets", "two_away", "easy", of=begins("away")),
        ),
    },
    ("objectives", "Parisot & Zavrel 2022"): {
        "4.1: SPECTER's triplets": (684_100, triplets("citations")),
        "4.1: validation triplets": (145_375, lambda config: validation_queries(config) * 5),
        "4.1: five negatives of each system, 3.0 below": (
            (5, 3.0),
            lambda config: tuple(config["triplets"]["msmarco"]["layout"][key] for key in ("per_system", "margin")),
        ),
        "4.1: a triplet of each query": ({True}, one_per_query),
        "3.2: spans of ten tokens": ((10,), one("triplets", "cropping", "shortest")),
        "4.1: sentences with two papers": (
            (2, 1, 0, 1),
            one("triplets", "context2doc", "min_cited", "positives", "elsewhere", "easy"),
        ),
        "4.1: InPars of all datasets of BEIR": (
            {f"inpars-{name}" for name in INPARS},
            lambda config: set(config["triplets"]["inpars"]["of"]),
        ),
        "4.2: BEIR's subset": (
            {f"beir_{name.replace('-', '_')}" for name in BEIR},
            lambda config: set(config["benchmarks"]["beir"]["tasks"]),
        ),
        "4.3: 200,000 steps, patience, 16 × 2, 2e-5, no warm-up": (
            {(200_000, 2, 16, 2, 2e-5, 0.0, 1e-8, 0.0)},
            models(*STEPS, go_on=False),
        ),
        "4.3: fine-tuning for an epoch": ({(1, 1e-5, 0.0)}, models("epochs", "lr", "warmup", go_on=True)),
        "Table 2": (
            pairs("msmarco", "cropping")
            | pairs("citations", "msmarco")
            | pairs("citations", "cropping")
            | {(frozenset({"msmarco", "citations", "cropping"}), mixing) for mixing in ("in-batch", "alternating")},
            lambda config: {each for each in combined(config) if not LATER & set(each)},
        ),
        "Tables 3 and 4": (
            {
                *(("cropping", "doc2doc"), ("cropping", "context2doc")),
                *((first, "inpars") for first in ("msmarco", "citations", "cropping")),
            },
            lambda config: {each for each in combined(config) if LATER & set(each)},
        ),
        "Figure 3: shares of MS MARCO beside 0 and 1": ({0.25, 0.5, 0.75}, shares_of("msmarco")),
        "3.1: MNRL": (
            {"mnrl"},
            lambda config: {c.loss.kind for m in config["models"].values() for c in entry_of(m, Model).comparisons},
        ),
    },
}


@pytest.mark.parametrize(
    ("experiment", "published", "has"),
    [
        pytest.param(experiment, published, has, id=f"{experiment}: {paper}, {source}")
        for (experiment, paper), rows in PUBLISHED.items()
        for source, (published, has) in rows.items()
    ],
)
def test_an_experiment_has_the_published_sizes_and_settings(experiment, published, has, experiments):
    assert has(experiments(experiment)) == published
