"""Fine-tuning: what it learns and from which batches it measures, when it ends, and what it leaves."""

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file
from scipy.stats import spearmanr
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tests.encoder.building import AfterSteps, assert_same_results, paper_texts, trained
from tests.examples import OVER_EXAMPLES, curve_in, texts_of_examples
from transformers import AutoModel, AutoTokenizer
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.models import TrainingSettings
from cocite.config.origins import settings_of_origin
from cocite.core.atomic import read_json, write_json
from cocite.core.errors import InputError
from cocite.core.randomness import derive_seed
from cocite.core.tables.files import read_table, write_table
from cocite.encoder import schedule, trainer
from cocite.encoder.batch import PairIndices, build_batch
from cocite.encoder.card import SEPARATOR, card_of
from cocite.encoder.documents import documents_of
from cocite.encoder.examples import Examples, Links, open_examples
from cocite.encoder.measuring import explained_memory, measure, rank_correlation
from cocite.encoder.model import open_encoder
from cocite.encoder.objective import Learner, Objective
from cocite.encoder.processes import Unfinished
from cocite.encoder.results import curves_of
from cocite.encoder.schedule import round_order
from cocite.encoder.trainer import Inputs


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
    assert_same_results(again, one)
    assert (other / "model/model.safetensors").read_bytes() != (one / "model/model.safetensors").read_bytes()


def test_nothing_in_the_folder_names_a_path_of_this_machine(one, encoder):
    for file in (path for path in (one / "model").rglob("*") if path.is_file()):
        content = file.read_bytes()
        assert str(one.parent).encode() not in content, file
        assert str(encoder).encode() not in content, file


def test_gradients_come_from_deterministic_kernels_and_an_operation_without_one_is_reported_and_goes_on(
    train, monkeypatch, capfd
):
    modes, computed, has_other = [], Objective.__call__, False

    def call(objective, batch):
        if has_other:
            torch.zeros(2).put_(torch.tensor([0]), torch.ones(1))
        loss = computed(objective, batch)
        loss.register_hook(lambda _: modes.append(torch.get_deterministic_debug_mode()))
        return loss

    monkeypatch.setattr(Objective, "__call__", call)
    whole = train(epochs=1)
    # 22 triplets in batches of 4; while the gradients are computed, 1 warns and 2 refuses.
    assert modes == [2] * 6
    assert torch.get_deterministic_debug_mode() == 1
    assert not torch.utils.deterministic.fill_uninitialized_memory
    said = "may differ from run to run in their last digits: put_ does not have a deterministic"
    assert said not in capfd.readouterr().err
    has_other = True
    after = train(epochs=1)
    assert modes[6:] == [1] * 6
    assert said in capfd.readouterr().err
    assert (after / "model/model.safetensors").read_bytes() == (whole / "model/model.safetensors").read_bytes()


def test_a_validation_loss_that_is_no_number_stops_the_training_and_names_the_step(train, monkeypatch):
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


@pytest.mark.parametrize("is_killed", [False, True], ids=["whole", "killed before its results"])
def test_patience_ends_a_training_after_so_many_validations_that_are_no_better(train, monkeypatch, tmp_path, is_killed):
    losses, others = iter([5.0, 4.0, 4.5, 4.6, 3.0]), {"eval_accuracy": 0.5, "eval_spearman": 0.0}
    monkeypatch.setattr(trainer, "measure", lambda *_, **__: {"eval_loss": next(losses), **others})
    how = {"folder": tmp_path, "validations": 6, "patience": 2}  # 12 steps: a validation every second step
    if is_killed:
        with monkeypatch.context() as patch:
            patch.setattr(trainer, "write_results", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                train(**how)
    folder = train(**how)
    assert curve_in(folder, "validation_loss") == {2: 5.0, 4: 4.0, 6: 4.5, 8: 4.6}
    assert "smallest validation loss (4.0000 at step 4" in (folder / "model/README.md").read_text()


def test_a_training_in_bfloat16_learns_as_one_in_float32_and_says_so_and_writes_weights_in_float32(train):
    fast, slow = (train(precision=precision, loss="mnrl", epochs=4) for precision in ("bfloat16", "float32"))
    rounded_off, exact = (list(curve_in(folder, "validation_loss").values()) for folder in (fast, slow))
    assert rounded_off != exact
    assert rounded_off == pytest.approx(exact, rel=0.02)
    assert {weight.dtype for weight in load_file(fast / "model/model.safetensors").values()} == {torch.float32}
    assert read_json(fast / "settings.json")["settings"]["precision"] == "bfloat16"
    assert "| precision | bfloat16 |" in (fast / "model/README.md").read_text()


SETTINGS = {
    "plain": {"epochs": 1, "warmup": 0.0},
    "accumulated": {"epochs": 2, "accumulation": 2, "warmup": 0.2},
    "decayed": {"epochs": 2, "weight_decay": 0.1, "epsilon": 1e-4, "warmup": 3, "schedule": "cosine"},
    "cut off": {"epochs": 3, "max_steps": 7, "schedule": "constant", "validate_every": 100},
}
LR = 3e-3
BATCH = 4


def share(name: str, step: int, steps: int) -> float:
    """The share of the learning rate at a step, from 0, by the definitions of the schedules."""
    warmup = {"plain": 0, "accumulated": math.ceil(0.2 * steps), "decayed": 3, "cut off": math.ceil(0.05 * steps)}[name]
    if step < warmup:
        return step / warmup
    progress = (step - warmup) / (steps - warmup)
    return {"decayed": 0.5 * (1 + math.cos(math.pi * progress)), "cut off": 1.0}.get(name, 1 - progress)


def loop(inputs: Inputs, name: str, settings: TrainingSettings) -> dict[str, torch.Tensor]:
    """The weights after a training, step by step."""
    tokenizer, model = AutoTokenizer.from_pretrained(inputs.encoder), AutoModel.from_pretrained(inputs.encoder)
    model.eval()  # without dropout
    texts = texts_of_examples(inputs.training[0], tokenizer.sep_token)
    numbers: dict[str, int] = {}
    for text in (text for triplet in texts for text in triplet):
        numbers.setdefault(text, len(numbers))  # documents are numbered in the order in which they first occur
    queries = np.array([numbers[query] for query, *_ in texts])
    given = {"weight_decay": 0.0, "epsilon": 1e-8, "accumulation": 1, "max_steps": math.inf, **SETTINGS[name]}
    used = [weight for key, weight in model.named_parameters() if not key.startswith("pooler")]
    matrices, vectors = ([weight for weight in used if (weight.ndim > 1) is is_matrix] for is_matrix in (True, False))
    groups = [{"params": matrices, "weight_decay": given["weight_decay"]}, {"params": vectors, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=LR, eps=given["epsilon"], foreach=False)
    in_step = BATCH * given["accumulation"]
    of_epoch = math.ceil(len(texts) / in_step)
    steps = min(given["epochs"] * of_epoch, given["max_steps"])
    seed = derive_seed(1, "train", 1)
    for step in range(steps):
        epoch, within = divmod(step, of_epoch)
        order = round_order(queries, block=settings.together, seed=seed, number=epoch)
        chosen = order[within * in_step : (within + 1) * in_step]
        batches = [chosen[start : start + BATCH] for start in range(0, len(chosen), BATCH)]
        for batch in batches:
            (loss_of(model, tokenizer, [texts[number] for number in batch], settings) / len(batches)).backward()
        torch.nn.utils.clip_grad_norm_(used, 1.0)
        for group in optimiser.param_groups:
            group["lr"] = LR * share(name, step, steps)
        optimiser.step()
        optimiser.zero_grad()
    return dict(model.state_dict())


def loss_of(model, tokenizer, triplets: list[list[str]], settings: TrainingSettings) -> torch.Tensor:
    """The loss of triplets of texts, each text embedded once."""
    distinct = sorted({text for triplet in triplets for text in triplet})
    rows = torch.tensor([[distinct.index(text) for text in triplet] for triplet in triplets])
    tokens = tokenizer(distinct, padding=True, truncation=True, max_length=16, return_tensors="pt")
    hidden, mask = model(**tokens).last_hidden_state, tokens["attention_mask"].unsqueeze(-1)
    vectors = (hidden * mask).sum(1) / mask.sum(1)
    batch = PairIndices(positives=rows[:, [0, 1]], negatives=rows[:, [0, 2]], triplets=rows)
    return settings.loss(vectors, batch)


@pytest.mark.parametrize(
    ("name", "loss"), [*(("accumulated", loss) for loss in OVER_EXAMPLES), *((n, "mnrl") for n in SETTINGS)]
)
def test_a_training_ends_with_the_weights_of_a_loop_written_out(name, loss, train, inputs, tmp_path):
    given = {"loss": loss, "batch_size": BATCH, "lr": LR, **SETTINGS[name]}
    # The last weights are the best where nothing is measured before them.
    given = given if "validate_every" in given else {**given, "validations": 1}
    train(folder=tmp_path, **given)
    settings = TrainingSettings(**given)
    ours, theirs = load_file(tmp_path / "model/model.safetensors"), loop(inputs, name, settings)
    # Distances do not change where all vectors move alike, so Adam follows nothing but rounding there.
    left_out = {"encoder.layer.0.output.LayerNorm.bias"} if loss == "triplet" else set()
    compared = (ours.keys() & theirs.keys()) - left_out
    assert len(compared) > 15
    for key in compared:
        torch.testing.assert_close(ours[key], theirs[key], rtol=2e-3, atol=2e-5)


@pytest.fixture
def batch():
    """Two triplets of the queries 100 and 101, over four documents."""
    documents, ids = documents_of([np.zeros(1, np.int32)] * 4), np.arange(100, 104)
    near, far = (Links(documents=np.full(2, row), starts=np.arange(3)) for row in (2, 3))
    examples = Examples(queries=np.arange(2), positives=near, negatives=far, documents=documents, ids=ids)
    return build_batch(examples, np.arange(2))


LACK_OF_MEMORY = (InputError, r"4 documents.*mini_batch_tokens.*batch_size")


@pytest.mark.parametrize(
    ("error", "raised", "sentence"),
    [
        (MemoryError(), *LACK_OF_MEMORY),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB"), *LACK_OF_MEMORY),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"), *LACK_OF_MEMORY),
        (RuntimeError("shapes do not match"), RuntimeError, "shapes"),
    ],
)
def test_a_lack_of_memory_names_the_settings_to_lower_and_other_errors_are_left(batch, error, raised, sentence):
    with pytest.raises(raised, match=sentence), explained_memory(batch):
        raise error


def test_a_training_that_runs_out_of_memory_says_so(inputs, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr("cocite.encoder.objective._passed", fail)
    with pytest.raises(InputError, match="Memory ran out over a batch of"):
        trained(tmp_path, inputs)


@pytest.mark.parametrize(("stops_after", "factor"), [(4, "nan"), (99, "nan"), (99, "inf")])
def test_a_loss_that_is_not_a_number_is_reported_with_its_step_before_it_is_logged_or_saved(
    inputs, tmp_path, monkeypatch, stops_after, factor
):
    calls = []

    def spoilt(objective, batch):
        calls.append(1)
        return computed(objective, batch) * (float(factor) if len(calls) == 3 else 1)

    computed = Objective.__call__
    monkeypatch.setattr(Objective, "__call__", spoilt)
    monkeypatch.setattr(schedule, "LOGS", 1)  # one log, after the last of six steps
    with pytest.raises(InputError, match=f"The training loss is {factor} at step 3;"):
        trained(tmp_path, inputs, AfterSteps(stops_after), validations=1)
    assert not (tmp_path / "state/checkpoint.safetensors").exists()


def test_rank_correlation_is_that_of_scipy_with_ties_and_without_and_0_where_all_are_alike():
    random = np.random.default_rng(1)
    assert rank_correlation(np.zeros(2), np.zeros(2)) == 0.0
    for digits in (1, 8):
        near, far = random.normal(0.2, size=30).round(digits), random.normal(size=50).round(digits)
        expected = spearmanr(np.concatenate([near, far]), [1] * 30 + [0] * 50).statistic
        assert rank_correlation(near, far) == pytest.approx(expected, rel=1e-12)


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


def test_settings_and_card_name_data_settings_versions_and_scores_as_they_were_resolved_and_no_origin(train):
    folder = train(loss="cosent", epochs=1)
    written = read_json(folder / "settings.json")
    assert written["settings"]["loss"] == {"kind": "cosent", "scale": 20.0}
    assert written["seeds"] == {"run": 1, "training": 1}
    assert written["triplets"] == {"training": 22, "validation": 6}
    assert written["versions"]["torch"] == torch.__version__
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


def test_the_events_hold_what_the_curves_hold_in_the_order_of_steps_also_when_a_training_was_stopped(train, tmp_path):
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
    measured = {f"validation_{name}" for name in ("loss", "accuracy", "spearman")}
    assert {row["metric"] for row in curves} == {"training_loss", "learning_rate", *measured}
    log = [{"step": 2, "loss": 0.5, "learning_rate": 1e-3}, {"step": 1, "eval_loss": 0.7, "epoch": 1}]
    expected = [(1, "validation_loss", 0.7), (2, "learning_rate", 1e-3), (2, "training_loss", 0.5)]
    assert [tuple(row.values()) for row in curves_of(log).to_pylist()] == expected
