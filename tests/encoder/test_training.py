"""Fine-tuning: what it learns, which weights learn, when it ends, and what it leaves."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from tests.encoder.building import assert_goes_on, paper_texts
from tests.encoder.published import fetched, published
from tests.examples import OVER_EXAMPLES, curve_in
from transformers import AutoModel, AutoTokenizer

from cocite.config.models import TrainingSettings
from cocite.core.atomic import read_json
from cocite.core.errors import InputError
from cocite.core.tables.files import write_table
from cocite.encoder import trainer
from cocite.encoder.adapters import choose_weights, learned_weights
from cocite.encoder.examples import open_examples
from cocite.encoder.measuring import measure
from cocite.encoder.model import open_encoder
from cocite.encoder.objective import Learner, Objective


@pytest.mark.parametrize("loss", OVER_EXAMPLES)
def test_every_loss_learns_to_tell_two_topics_apart(loss, train):
    folder = train(loss=loss, epochs=4)
    losses = list(curve_in(folder, "training_loss").values())
    assert sum(losses[-6:]) < sum(losses[:6])
    assert max(curve_in(folder, "validation_accuracy").values()) == 1.0


@pytest.fixture(scope="module")
def one(train):
    return train(epochs=4)


def test_the_encoder_of_the_smallest_validation_loss_is_kept(one, inputs):
    model = open_encoder(one / "model")
    validation = open_examples(inputs.validation[0])
    objective = Objective(learner=Learner(model), settings=TrainingSettings(batch_size=4))
    measured = measure(objective, validation)["eval_loss"]
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
        loss = computed(objective, batch)
        loss.register_hook(lambda _: modes.append(torch.get_deterministic_debug_mode()))
        return loss

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
    objective = Objective(learner=Learner(open_encoder(encoder)), settings=TrainingSettings(batch_size=2))
    assert measure(objective, validation)["eval_accuracy"] == 0.5


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


ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
LINEAR = {
    "qwen3": {*ATTENTION, "gate_proj", "up_proj", "down_proj"},
    "llama": {*ATTENTION, "gate_proj", "up_proj", "down_proj"},
    "gemma3_text": {*ATTENTION, "gate_proj", "up_proj", "down_proj"},
    "modernbert": {"Wqkv", "Wo", "Wi"},
    "xlm-roberta": {"query", "key", "value", "dense"},
    "t5": {"q", "k", "v", "o", "wi", "wo"},
}


@pytest.mark.parametrize("kind", LINEAR)
def test_low_rank_additions_are_to_the_linear_layers_of_the_architecture_or_to_some_of_them(kind, tmp_path):
    folder = fetched(published(tmp_path / "plain", kind), tmp_path / "model")
    for modules in (None, sorted(LINEAR[kind])[:2]):
        model = open_encoder(folder, "bfloat16", reduced=True)
        choose_weights(model, TrainingSettings(trainable={"kind": "lora", "modules": modules}), seed=1)
        learned = learned_weights(model)
        assert {name.split(".lora_")[0].rpartition(".")[2] for name in learned} == {*(modules or LINEAR[kind])}
        assert {weight.dtype for weight in learned.values()} == {torch.float32}
        assert {weight.dtype for name, weight in model.named_parameters() if "lora_" not in name} == {torch.bfloat16}
    lacking = TrainingSettings(trainable={"kind": "lora", "modules": [*modules, "c_attn"]})
    there = ", ".join(sorted(LINEAR[kind]))
    with pytest.raises(InputError, match=f"has c_attn; the linear layers are {there}."):
        choose_weights(open_encoder(folder), lacking, seed=1)


def test_a_base_in_bfloat16_keeps_its_digits_and_gets_additions_of_low_rank(train, encoder):
    differences = changed(train(trainable={"kind": "lora", "rank": 2, "alpha": 8}, precision="bfloat16"), encoder)
    assert differences
    for difference in differences.values():
        assert 1 <= torch.linalg.matrix_rank(difference, rtol=1e-3) <= 2


def test_both_libraries_open_what_was_trained_by_low_rank_additions(train):
    folder = train(trainable="lora")
    assert SentenceTransformer(str(folder / "model"), device="cpu").encode("bees").shape == (16,)
    loading = AutoModel.from_pretrained(folder / "model", output_loading_info=True)[1]
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]
    assert not list((folder / "model").glob("adapter*"))


@pytest.mark.parametrize("changed", [{"trainable": "lora"}, {"trainable": "bias"}, {"loss": "mnrl", "projection": 8}])
def test_a_stopped_training_of_some_weights_or_with_a_projection_ends_as_a_whole_one(
    inputs, with_dropout, tmp_path, changed
):
    assert_goes_on(tmp_path, replace(inputs, encoder=with_dropout), 7, epochs=2, **changed)


@pytest.fixture
def validation_losses(monkeypatch):
    """Validations that give these losses, one after the other."""
    losses, others = iter([5.0, 4.0, 4.5, 4.6, 3.0]), {"eval_accuracy": 0.5, "eval_spearman": 0.0}
    monkeypatch.setattr(trainer, "measure", lambda *_, **__: {"eval_loss": next(losses), **others})


def test_patience_ends_a_training_after_so_many_validations_that_are_no_better(train, validation_losses):
    # 12 steps and 6 validations: every second step.
    folder = train(validations=6, patience=2)
    assert curve_in(folder, "validation_loss") == {2: 5.0, 4: 4.0, 6: 4.5, 8: 4.6}
    assert "smallest validation loss (4.0000 at step 4" in (folder / "model/README.md").read_text()


def test_a_training_without_patience_left_does_not_go_on(train, validation_losses, monkeypatch, tmp_path):
    how = {"folder": tmp_path, "validations": 6, "patience": 2}
    with monkeypatch.context() as patch:
        patch.setattr(trainer, "write_results", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            train(**how)
    assert list(curve_in(train(**how), "validation_loss")) == [2, 4, 6, 8]


LEARNING = {"loss": "mnrl", "epochs": 4}


@pytest.fixture(scope="module")
def fast(train):
    return train(precision="bfloat16", **LEARNING)


def test_a_training_in_bfloat16_learns_as_one_in_float32(fast, train):
    rounded_off, exact = (list(curve_in(folder, "validation_loss").values()) for folder in (fast, train(**LEARNING)))
    assert rounded_off != exact
    assert rounded_off == pytest.approx(exact, rel=0.02)


def test_a_training_in_bfloat16_writes_weights_in_float32_and_its_settings_and_card_name_its_precision(fast):
    assert {weight.dtype for weight in load_file(fast / "model/model.safetensors").values()} == {torch.float32}
    assert read_json(fast / "settings.json")["settings"]["precision"] == "bfloat16"
    assert "| precision | bfloat16 |" in (fast / "model/README.md").read_text()
