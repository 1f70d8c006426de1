"""Which weights learn, when a training ends before its last epoch, and what it leaves beside the encoder."""

import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from transformers import AutoModel

from cocite.config.models import TrainingSettings
from cocite.core.tables.files import read_table
from cocite.encoder import training
from cocite.encoder.results import EVENTS_FILE
from cocite.encoder.schedule import Stopping, Unfinished
from cocite.encoder.training import train_encoder


@pytest.fixture
def train(inputs, outputs_in, tmp_path):
    """A function that trains two epochs of six steps with some settings and returns the folder of the results."""

    def run(name="trained", stopping=None, **settings):
        folder = tmp_path / name
        given = TrainingSettings(**{"epochs": 2, "batch_size": 4, "lr": 3e-3, **settings})
        where = {"threads": 1, "state": folder / "state", "stopping": stopping}
        train_encoder(inputs, outputs_in(folder), given, seed=1, training_seed=1, **where)
        return folder

    return run


@pytest.fixture
def stopping_once(monkeypatch):
    """A `Stopping` that stops after the seventh step."""
    stopping, steps = Stopping(), iter(range(1, 100))
    monkeypatch.setattr(stopping, "reason", lambda: "a test" if next(steps) == 7 else None)
    return stopping


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
def test_a_stopped_training_of_some_weights_ends_as_a_whole_one(train, trainable, stopping_once):
    whole = train("whole", trainable=trainable)
    with pytest.raises(Unfinished):
        train("stopped", stopping_once, trainable=trainable)
    stopped = train("stopped", trainable=trainable)
    for file in ("model/model.safetensors", "curves.parquet"):
        assert (stopped / file).read_bytes() == (whole / file).read_bytes()


@pytest.fixture
def validation_losses(monkeypatch):
    """Validations that give these losses, one after the other."""
    losses = iter([5.0, 4.0, 4.5, 4.6, 3.0])
    monkeypatch.setattr(
        training, "measure", lambda *_, **__: {"eval_loss": next(losses), "eval_accuracy": 0.5, "eval_spearman": 0.0}
    )


def validations(folder):
    rows = read_table(folder / "curves.parquet", "training_curves").to_pylist()
    return {row["step"]: row["value"] for row in rows if row["metric"] == "validation_loss"}


def test_patience_ends_a_training_after_so_many_validations_that_are_no_better(train, validation_losses):
    # 12 steps and 6 validations: every second step.
    folder = train(evaluations=6, patience=2)
    assert validations(folder) == {2: 5.0, 4: 4.0, 6: 4.5, 8: 4.6}
    assert "smallest validation loss (4.0000 at step 4" in (folder / "model/README.md").read_text()


def test_a_training_without_patience_left_does_not_go_on(train, validation_losses, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(training, "write_results", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            train(evaluations=6, patience=2)
    assert list(validations(train(evaluations=6, patience=2))) == [2, 4, 6, 8]


def test_the_events_hold_what_the_curves_hold_also_when_a_training_was_stopped(train, stopping_once):
    with pytest.raises(Unfinished):
        train(stopping=stopping_once)
    folder = train()
    events = [
        event
        for event in EventFileLoader(str(folder / "tensorboard" / EVENTS_FILE)).Load()
        if event.HasField("summary")
    ]
    points = sorted(
        (event.step, value.tag, value.tensor.float_val[0]) for event in events for value in event.summary.value
    )
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


@pytest.mark.parametrize(("trainable", "named"), [("all", False), ("lora", True)])
def test_the_card_names_the_rank_where_there_is_one_and_a_margin_where_the_loss_has_one(train, trainable, named):
    card = (train(trainable=trainable, loss="infonce") / "model/README.md").read_text()
    assert ("| trainable: rank | 8 |" in card) is named
    assert "margin" not in card
