"""Fine-tuning: what it learns, which weights learn, when it ends, and what it leaves."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tests.encoder.building import AfterSteps, assert_goes_on, paper_texts
from tests.examples import OVER_EXAMPLES, curve_in
from transformers import AutoModel, AutoTokenizer

from cocite.config.models import TrainingSettings
from cocite.core.atomic import read_json
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, write_table
from cocite.encoder import trainer
from cocite.encoder.examples import open_examples
from cocite.encoder.measuring import measure
from cocite.encoder.model import open_encoder
from cocite.encoder.objective import Learner, Objective, objective_of
from cocite.encoder.processes import Unfinished
from cocite.encoder.results import EVENTS_FILE, curves_of


@pytest.fixture(scope="module", params=OVER_EXAMPLES)
def trained(request, train):
    return train(loss=request.param, epochs=4)


def test_every_loss_learns_to_tell_two_topics_apart(trained):
    losses = list(curve_in(trained, "training_loss").values())
    assert sum(losses[-6:]) < sum(losses[:6])
    assert max(curve_in(trained, "validation_accuracy").values()) == 1.0


@pytest.fixture(scope="module")
def one(train):
    return train(epochs=4)


def test_the_encoder_of_the_smallest_validation_loss_is_kept(one, inputs):
    model = open_encoder(one / "model")
    validation = open_examples(inputs.validation[0])
    measured = measure(objective_of(Learner(model), TrainingSettings()), validation, batch_size=4)["eval_loss"]
    assert measured == pytest.approx(min(curve_in(one, "validation_loss").values()), abs=1e-6)


def test_the_learning_rate_rises_over_its_share_and_falls_to_zero(train):
    # 22 triplets in batches of 4: 6 steps an epoch, 12 in two; a quarter of them, 3, are warm-up.
    rates = curve_in(train(epochs=2, warmup=0.25, lr=9e-3), "learning_rate")
    expected = [0.0, 3e-3, 6e-3] + [9e-3 * left / 9 for left in range(9, 0, -1)]
    assert list(rates.values()) == pytest.approx(expected)


def test_the_same_seed_gives_the_same_files_and_another_does_not(train, one):
    again, other = train(epochs=4), train(epochs=4, training_seed=2)
    for file in ("model/model.safetensors", "curves.parquet", "settings.json", "model/README.md"):
        assert (again / file).read_bytes() == (one / file).read_bytes()
    assert (other / "model/model.safetensors").read_bytes() != (one / "model/model.safetensors").read_bytes()


def test_the_settings_are_written_as_they_were_resolved(train):
    written = read_json(train(loss="cosent", epochs=1) / "settings.json")
    assert written["settings"]["loss"] == {"kind": "cosent", "temperature": 20.0}
    assert written["seeds"] == {"run": 1, "training": 1}
    assert written["triplets"] == {"training": 22, "validation": 6}
    assert written["versions"]["torch"] == torch.__version__


def test_nothing_in_the_folder_names_a_path_of_this_machine(one, encoder):
    for file in (path for path in (one / "model").rglob("*") if path.is_file()):
        content = file.read_bytes()
        assert str(one.parent).encode() not in content, file
        assert str(encoder).encode() not in content, file


def modes_of_gradients(monkeypatch, before_the_loss=lambda: None):
    """The list of torch's deterministic modes while the gradients of each batch are computed: 1 warns, 2 refuses."""
    modes, computed = [], Objective.__call__

    def call(objective, batch):
        before_the_loss()
        loss, vectors = computed(objective, batch)
        loss.register_hook(lambda _: modes.append(torch.get_deterministic_debug_mode()))
        return loss, vectors

    monkeypatch.setattr(Objective, "__call__", call)
    return modes


def test_gradients_come_from_deterministic_kernels_only_and_memory_is_not_filled(train, monkeypatch):
    modes = modes_of_gradients(monkeypatch)
    train(epochs=1)
    # 22 triplets in batches of 4.
    assert modes == [2] * 6
    assert torch.get_deterministic_debug_mode() == 1
    assert not torch.utils.deterministic.fill_uninitialized_memory


def test_an_operation_without_a_deterministic_kernel_is_reported_and_does_not_end_the_training(
    train, monkeypatch, capfd
):
    whole = train(epochs=1)
    modes = modes_of_gradients(monkeypatch, lambda: torch.zeros(2).put_(torch.tensor([0]), torch.ones(1)))
    capfd.readouterr()
    after = train(epochs=1)
    assert modes == [1] * 6
    said = "may differ from run to run in their last digits: put_ does not have a deterministic"
    assert said in capfd.readouterr().err
    assert (after / "model/model.safetensors").read_bytes() == (whole / "model/model.safetensors").read_bytes()


def test_a_loss_that_is_no_number_stops_the_training_and_names_the_step(train, monkeypatch):
    with pytest.raises(InputError, match=r"The training loss is (nan|inf) at step \d+"):
        train(loss="cosent", lr=1e30, max_grad_norm=1e30)
    measured = {"eval_loss": float("nan"), "eval_accuracy": 0.0, "eval_spearman": 0.0}
    monkeypatch.setattr(trainer, "measure", lambda *_, **__: measured)
    with pytest.raises(InputError, match="The validation loss is nan at step 3"):
        train()


def test_examples_that_cannot_be_used_are_named(train, inputs, write_examples, tmp_path):
    with pytest.raises(InputError, match=r"none/examples\.parquet: has no examples"):
        train(inputs=replace(inputs, training=[write_examples(tmp_path / "none", [])]))
    training, others = (write_examples(tmp_path / name, [(0, 2, paper)]) for name, paper in (("a", 7), ("b", 9)))
    with pytest.raises(InputError, match=r"b/tokens: has no tokens of paper 7, nor of 0 others"):
        train(inputs=replace(inputs, training=[replace(training, tokens=others.tokens)]))


def test_accuracy_counts_the_triplets_whose_positive_is_nearer(encoder, write_examples, tmp_path):
    # Of two triplets that differ in the order of positive and negative, exactly one is right.
    validation = open_examples(write_examples(tmp_path, [(0, 2, 1), (0, 1, 2)]))
    objective = objective_of(Learner(open_encoder(encoder)), TrainingSettings())
    assert measure(objective, validation, batch_size=2)["eval_accuracy"] == 0.5


def test_each_example_finds_the_tokens_of_its_documents(encoder, write_examples, tmp_path, monkeypatch):
    monkeypatch.setattr("cocite.encoder.tokens.TEXTS_IN_CALL", 2)
    rows = [(6, 8, 1), (6, 10, 3), (6, 12, 5), (2, 6, 3), (4, 2, 6)]
    examples = open_examples(write_examples(tmp_path, rows))
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    numbers = zip(examples.queries, examples.positives.documents, examples.negatives.documents, strict=True)
    for documents, papers in zip(numbers, rows, strict=True):
        for document, paper in zip(documents, papers, strict=True):
            text = "[SEP]".join(paper_texts()[paper])
            assert examples.documents[document].tolist() == tokenizer(text, truncation=True, max_length=16)["input_ids"]
    assert len(examples.documents) == 9


def test_examples_of_several_positives_keep_theirs(write_examples, tmp_path):
    files = write_examples(tmp_path, [(6, 8, 1), (2, 10, 3)])
    lists = {"positives": [[8, 10], [6]], "negatives": [[1], [3, 1]]}
    write_table(files.table, "training_examples", pa.table({"query": [6, 2], **lists}))
    examples = open_examples(files)
    assert examples.ids.tolist() == [6, 8, 10, 1, 2, 3]
    for name, papers in lists.items():
        links = getattr(examples, name)
        owner, places = links.places_of(np.array([0, 1]))
        assert [examples.ids[links.documents[places[owner == example]]].tolist() for example in (0, 1)] == papers


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
