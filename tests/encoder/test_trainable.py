"""Which weights learn, when a training ends before its last epoch, and what it leaves beside the encoder."""

import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tests.encoder.building import AfterSteps, assert_goes_on
from tests.examples import curve_in
from transformers import AutoModel

from cocite.core.tables.files import read_table
from cocite.encoder import trainer
from cocite.encoder.processes import Unfinished
from cocite.encoder.results import EVENTS_FILE


def changed(folder, encoder):
    """The weights of the trained encoder that differ from those it started from: name → difference."""
    before, after = (load_file(path / "model.safetensors") for path in (encoder, folder / "model"))
    assert before.keys() == after.keys()
    return {name: after[name] - before[name] for name in before if not torch.equal(before[name], after[name])}


def test_bias_trains_the_bias_terms_and_nothing_else(train, encoder):
    names = changed(train(trainable="bias"), encoder)
    assert names
    assert all(name.endswith("bias") for name in names)


def test_low_rank_additions_are_merged_into_the_linear_weights(train, encoder):
    differences = changed(train(trainable={"kind": "lora", "rank": 2, "alpha": 8}), encoder)
    assert any("attention" in name for name in differences)
    for name, difference in differences.items():
        assert name.endswith("weight")
        assert "embeddings" not in name
        assert 1 <= torch.linalg.matrix_rank(difference, rtol=1e-3) <= 2


def test_both_libraries_open_what_was_trained_by_low_rank_additions(train):
    folder = train(trainable="lora")
    assert SentenceTransformer(str(folder / "model"), device="cpu").encode("bees").shape == (16,)
    loading = AutoModel.from_pretrained(folder / "model", output_loading_info=True)[1]
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]
    assert not list((folder / "model").glob("adapter*"))


@pytest.mark.parametrize("trainable", ["bias", "lora"])
def test_a_stopped_training_of_some_weights_ends_as_a_whole_one(inputs, tmp_path, trainable):
    assert_goes_on(tmp_path, inputs, 7, epochs=2, trainable=trainable)


@pytest.fixture
def validation_losses(monkeypatch):
    """Validations that give these losses, one after the other."""
    losses, others = iter([5.0, 4.0, 4.5, 4.6, 3.0]), {"eval_accuracy": 0.5, "eval_spearman": 0.0}
    monkeypatch.setattr(trainer, "measure", lambda *_, **__: {"eval_loss": next(losses), **others})


def test_patience_ends_a_training_after_so_many_validations_that_are_no_better(train, validation_losses):
    # 12 steps and 6 validations: every second step.
    folder = train(evaluations=6, patience=2)
    assert curve_in(folder, "validation_loss") == {2: 5.0, 4: 4.0, 6: 4.5, 8: 4.6}
    assert "smallest validation loss (4.0000 at step 4" in (folder / "model/README.md").read_text()


def test_a_training_without_patience_left_does_not_go_on(train, validation_losses, monkeypatch, tmp_path):
    how = {"folder": tmp_path, "evaluations": 6, "patience": 2}
    with monkeypatch.context() as patch:
        patch.setattr(trainer, "write_results", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            train(**how)
    assert list(curve_in(train(**how), "validation_loss")) == [2, 4, 6, 8]


def test_the_events_hold_what_the_curves_hold_also_when_a_training_was_stopped(train, tmp_path):
    with pytest.raises(Unfinished):
        train(stopping=AfterSteps(7), folder=tmp_path)
    folder = train(folder=tmp_path)
    events = EventFileLoader(str(folder / "tensorboard" / EVENTS_FILE)).Load()
    values = ((event.step, value) for event in events if event.HasField("summary") for value in event.summary.value)
    points = sorted((step, value.tag, value.tensor.float_val[0]) for step, value in values)
    curves = read_table(folder / "curves.parquet", "training_curves").to_pylist()
    assert [point[:2] for point in points] == [(row["step"], row["metric"]) for row in curves]
    assert [point[2] for point in points] == pytest.approx([row["value"] for row in curves], rel=1e-6)


def test_the_card_names_data_settings_pooling_length_versions_and_scores(train):
    card = (train() / "model/README.md").read_text()
    for line in (
        "| pooling | mean |",
        "| longest text | 16 tokens; what is longer is cut |",
        "| training triplets | 22 |",
        "| loss | triplet |",
        "| loss: margin | 1.0 |",
        "| lr | 0.003 |",
        f"| torch | {torch.__version__} |",
    ):
        assert line in card
    assert "| validation_spearman |" in card
