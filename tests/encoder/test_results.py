"""What a training leaves: its settings, its curves, and a card that says where the model comes from."""

import json

import pytest
import torch
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tests.encoder.building import AfterSteps
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.origins import settings_of_origin
from cocite.core.atomic import read_json, write_json
from cocite.core.tables.files import read_table
from cocite.encoder.card import SEPARATOR, card_of
from cocite.encoder.processes import Unfinished
from cocite.encoder.results import curves_of

CONFIGURATION = {
    "corpus": {"source": "s2"},
    "graphs": {"cited": {"signal": "citation", "directed": True}},
    "embeddings": {},
    "triplets": {"specter": {"sampler": "citations", "graph": "cited", "per_query": 5, "easy": 3}},
    "encoders": {"scibert": {"model": "allenai/scibert_scivocab_uncased", "revision": 40 * "a", "pooling": "cls"}},
    "models": {"mine": {"triplets": "specter", "encoder": "scibert"}},
}


def test_a_trained_model_names_its_encoder_its_triplets_its_corpus_and_the_terms_of_each(command_line, tmp_path):
    manifest = tmp_path / "manifest.json"
    write_json(manifest, {"release": "2024-07-16", "datasets": {"papers": {"shards": []}}})
    origin = json.dumps(settings_of_origin("mine", CONFIGURATION))
    words = command_line(tmp_path, epochs=1, batch_size=8, lr=0.001)
    result = CliRunner().invoke(app, [*words, "--origin", origin, "--manifest", str(manifest)])
    assert result.exit_code == 0, result.output
    card = (tmp_path / "model/README.md").read_text()
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


@pytest.fixture(scope="module")
def folder(train):
    return train(loss="cosent", epochs=1)


def test_the_settings_are_written_as_they_were_resolved(folder):
    written = read_json(folder / "settings.json")
    assert written["settings"]["loss"] == {"kind": "cosent", "scale": 20.0}
    assert written["seeds"] == {"run": 1, "training": 1}
    assert written["triplets"] == {"training": 22, "validation": 6}
    assert written["versions"]["torch"] == torch.__version__


def test_curves_come_in_the_order_of_steps():
    log = [
        {"step": 2, "loss": 0.5, "learning_rate": 1e-3},
        {"step": 1, "eval_loss": 0.7, "eval_accuracy": 1, "epoch": 1},
    ]
    assert curves_of(log).to_pylist() == [
        {"step": 1, "metric": "validation_accuracy", "value": 1.0},
        {"step": 1, "metric": "validation_loss", "value": 0.7},
        {"step": 2, "metric": "learning_rate", "value": 1e-3},
        {"step": 2, "metric": "training_loss", "value": 0.5},
    ]


def test_the_events_hold_what_the_curves_hold_also_when_a_training_was_stopped(train, tmp_path):
    with pytest.raises(Unfinished):
        train(stopping=AfterSteps(7), folder=tmp_path)
    folder = train(folder=tmp_path)
    [file] = (folder / "tensorboard").iterdir()
    events = EventFileLoader(str(file)).Load()
    values = ((event.step, value) for event in events if event.HasField("summary") for value in event.summary.value)
    points = sorted((step, value.tag, value.tensor.float_val[0]) for step, value in values)
    curves = read_table(folder / "curves.parquet", "training_curves").to_pylist()
    assert [point[:2] for point in points] == [(row["step"], row["metric"]) for row in curves]
    assert [point[2] for point in points] == pytest.approx([row["value"] for row in curves], rel=1e-6)


def test_the_card_names_data_settings_pooling_length_versions_and_scores_and_no_origin_if_it_has_none(folder):
    card = (folder / "model/README.md").read_text()
    for line in (
        "| pooling | mean |",
        "| longest text | 16 tokens; what is longer is cut |",
        "| training triplets | 22 |",
        "| loss | cosent |",
        "| loss: scale | 20.0 |",
        "| lr | 0.003 |",
        f"| torch | {torch.__version__} |",
    ):
        assert line in card
    assert "| validation_spearman |" in card
    assert "Corpus" not in card
