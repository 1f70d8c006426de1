"""The card says where a model comes from, by the command that trains it."""

import json

import pytest
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.origins import settings_of_origin
from cocite.core.atomic import write_json
from cocite.encoder.card import SEPARATOR, card_of

CONFIGURATION = {
    "corpus": {"source": "s2"},
    "graphs": {"cited": {"signal": "citation", "directed": True}},
    "embeddings": {},
    "triplets": {"specter": {"sampler": "citations", "graph": "cited", "per_query": 5, "easy": 3}},
    "encoders": {"scibert": {"model": "allenai/scibert_scivocab_uncased", "revision": 40 * "a", "pooling": "cls"}},
    "models": {"mine": {"triplets": "specter", "encoder": "scibert"}},
}


@pytest.fixture
def trained(command_line, tmp_path):
    """A function that trains one epoch by the command line, and returns the card."""

    def card(*options):
        words = [*command_line(tmp_path, epochs=1, batch_size=8, lr=0.001), *map(str, options)]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        return (tmp_path / "model/README.md").read_text()

    return card


def test_a_trained_model_names_its_encoder_its_triplets_its_corpus_and_the_terms_of_each(trained, tmp_path):
    write_json(tmp_path / "manifest.json", {"release": "2024-07-16", "datasets": {"papers": {"shards": []}}})
    origin = json.dumps(settings_of_origin("mine", CONFIGURATION))
    card = trained("--origin", origin, "--manifest", tmp_path / "manifest.json")
    for line in (
        "| model | mine |",
        f"| what it is | allenai/scibert_scivocab_uncased of the Hugging Face hub, commit {40 * 'a'} |",
        "| terms | The terms are those of the owner of allenai/scibert_scivocab_uncased. |",
        "| graph | cited |",
        "| signal | citation |",
        "| easy | 3 |",
        "| source | Semantic Scholar |",
        "| release | 2024-07-16 |",
    ):
        assert line in card, line
    assert "| sampler | citations: The sampler of SPECTER" in card
    assert "licensed under ODC-BY" in card


def test_a_training_without_an_origin_has_a_card_of_the_rest(trained):
    card = trained()
    assert "| training triplets | 22 |" in card
    assert "Corpus" not in card


def test_a_bar_does_not_end_a_cell_and_a_separator_that_is_not_the_tokenizers_own_is_in_the_example():
    shared = {"origin": {"Corpus": {"source": "a | b"}}, "settings": {"trainable": {"kind": "all"}}}
    shared |= {"best": {"step": 1, "validation_loss": 0.5, "validation_accuracy": 0.9}}
    shared |= {"seeds": {}, "triplets": {}, "versions": {}}
    usual, other = (card_of(encoder={"pooling": "mean", **said}, **shared) for said in ({}, {SEPARATOR: "' '"}))
    assert "| source | a \\| b |" in usual
    assert "joined by the tokenizer's separator" in usual
    assert "model.encode([title + model.tokenizer.sep_token + abstract])" in usual
    assert "joined by ' ', so that" in other
    assert "model.encode([title + ' ' + abstract])" in other
