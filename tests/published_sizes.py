"""Sizes and settings of the experiments at paper scale, to be compared with those of their papers: each row has the
published value and its source, and how the same is read from the resolved configuration."""

from functools import cache
from pathlib import Path

import pytest
import yaml

from cocite.config.configuration import resolve

BEIR = {"scifact", "nfcorpus", "trec-covid", "arguana", "scidocs"}
INPARS = BEIR | {
    *("bioasq", "nq", "hotpotqa", "fiqa", "signal1m", "trec-news", "robust04", "webis-touche2020", "cqadupstack"),
    *("quora", "dbpedia-entity", "fever", "climate-fever"),
}
FOLDERS = "SCIBERT GTE BERT BERT_LARGE BIOBERT SCIDOCS MDCR MINILM MSMARCO INPARS BEIR"
"""Variables of the environment that experiments name folders by."""
ROOT = Path(__file__).parents[1]


def training_queries(config):
    return round(config["queries"]["count"] * (1 - config["queries"]["validation"]))


def validation_queries(config):
    return config["queries"]["count"] - training_queries(config)


def triplets(name):
    """Training triplets that a set asks for: so many of each query, or the count of a part."""

    def count(config):
        entry = config["triplets"][name]
        return entry.get("count") or training_queries(config) * entry["per_query"]

    return count


def each(section, *keys, of=lambda name: True):
    """The distinct values that the entries of a section have for some keys, of one key without a tuple."""

    def values(config):
        entries = [entry for name, entry in config[section].items() if of(name)]
        found = {tuple(shown(entry.get(key)) for key in keys) for entry in entries}
        return {value for (value,) in found} if len(keys) == 1 else found

    return values


def shown(value):
    """A value that a set can hold: of a loss or another choice, its kind."""
    return value.get("kind") if isinstance(value, dict) else tuple(value) if isinstance(value, list) else value


def one(section, name, *keys):
    return lambda config: tuple(shown(config[section][name].get(key)) for key in keys)


def models(*keys, go_on):
    """As `each`, of the models that go on from another one, or of those that start from an encoder."""
    return lambda config: each("models", *keys, of=lambda name: ("from" in config["models"][name]) == go_on)(config)


def begins(*prefixes):
    return lambda name: name.startswith(prefixes)


def effective_batch(*names, but=()):
    """The batches of some models, or of all but some."""

    def batches(config):
        models = [config["models"][name] for name in names or set(config["models"]).difference(but)]
        return {model["batch_size"] * model["accumulation"] for model in models}

    return batches


def bands(prefix):
    """k⁺ and k⁻ of the sets that the models of a prefix learn from, or of what these are parts of."""

    def found(config):
        sets = config["triplets"]
        learned = [model["triplets"] for name, model in config["models"].items() if name.startswith(prefix)]
        return {(sets[sets[name]["of"]]["k_positive"], sets[sets[name]["of"]]["k_negative"]) for name in learned}

    return found


def losses_by_encoder(config):
    """Loss, and encoder by its pooling, of each model."""
    encoders = config["encoders"]
    return {
        (model["loss"]["kind"], model["encoder"], encoders[model["encoder"]]["pooling"])
        for model in config["models"].values()
    }


def combined(config):
    """Which sets the models combine, and how: in-batch, alternating, or one after the other in that order."""
    found = set()
    for model in config["models"].values():
        sets = [term["triplets"] for term in model.get("objectives") or ()]
        weights = {term.get("weight") for term in model.get("objectives") or ()}
        if sets and weights == {None}:
            found.add((frozenset(sets), model.get("mixing") or "in-batch"))
        elif "from" in model:
            found.add((config["models"][model["from"]]["triplets"], model["triplets"]))
    return found


def pairs(*names):
    """The four ways to combine two objectives in Table 2."""
    first, second = names
    return {(frozenset(names), mixing) for mixing in ("in-batch", "alternating")} | {(first, second), (second, first)}


def shares_of(name):
    """The shares of a set in the models that mix it with another one, 0 and 1 for the two that are alone."""

    def found(config):
        models = config["models"].values()
        two = [model["objectives"] for model in models if len(model.get("objectives") or ()) == 2]
        two = [terms for terms in two if {term["triplets"] for term in terms} == {"citations", name}]
        return {term.get("weight", 0.5) for terms in two for term in terms if term["triplets"] == name}

    return found


@pytest.fixture(scope="session")
def experiments(tmp_path_factory):
    """Resolves an experiment, where every folder that it names is there."""
    folder = tmp_path_factory.mktemp("there")
    (folder / "scores.tsv").touch()
    for dataset in (*INPARS, "iclr2022"):
        (folder / dataset / "qrels").mkdir(parents=True)
        for file in ("corpus.jsonl", "queries.jsonl", "qrels.tsv" if dataset == "iclr2022" else "qrels/test.tsv"):
            (folder / dataset / file).touch()

    @cache
    def resolved(experiment):
        with pytest.MonkeyPatch.context() as patch:
            for name in FOLDERS.split():
                patch.setenv(f"COCITE_{name}", str(folder))
            return resolve(yaml.safe_load((ROOT / f"experiments/{experiment}.yaml").read_text()))

    return resolved
