"""A graph embedding teaches: the loss against loops, which documents it sees, and what a training takes from it."""

import math
import re

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import curve_in

from cocite.config.models import TrainingSettings
from cocite.core.errors import InputError
from cocite.core.tables.files import read_json, vector_column, write_table
from cocite.encoder import similarities
from cocite.encoder.batches import arranged
from cocite.encoder.compared import Together
from cocite.encoder.examples import open_examples
from cocite.encoder.losses.distillation import Distillation
from cocite.encoder.schedule import Stopping, Unfinished
from cocite.encoder.teachers import NONE, open_teachers, read_teachers
from cocite.encoder.training import train_encoder

LOSS = Distillation(kind="distillation", embedding="graph")
ALONE = {"loss": {"kind": "distillation", "embedding": "graph"}}
ADDED = {"objectives": [{"loss": "triplet"}, {"loss": ALONE["loss"], "weight": 0.5}]}


def written_teacher(path, papers, wide=4):
    """A graph embedding of papers: those of even numbers lie near one axis, those of odd ones near another."""
    random = np.random.default_rng(3)
    vectors = np.float32([np.eye(wide)[paper % 2] + 0.1 * random.normal(size=wide) for paper in papers])
    write_table(path, "graph_embeddings", pa.table({"corpusid": papers, "vector": vector_column(vectors)}))
    return path


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """A graph embedding that knows all papers of the examples but the first two and the last, and many others."""
    return written_teacher(tmp_path_factory.mktemp("teacher") / "graph_embeddings.parquet", [*range(2, 23), 100, 7000])


@pytest.fixture
def train(inputs, teacher, outputs_in, tmp_path):
    """A function that trains by a teacher into a folder of this name."""

    def run(name, settings=ADDED, table=teacher, stopping=None, **more):
        folder = tmp_path / name
        given = TrainingSettings(**{"epochs": 4, "batch_size": 4, "lr": 3e-3, **settings, **more})
        taught = type(inputs)(**{**vars(inputs), "teachers": {"graph": table}})
        where = {"threads": 1, "state": folder / "state", "stopping": stopping}
        train_encoder(taught, outputs_in(folder), given, seed=1, training_seed=1, **where)
        return folder

    return run


def cosine(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True)) / math.sqrt(sum(a * a for a in x) * sum(b * b for b in y))


def by_loops(texts, papers):
    pairs = [(i, j) for i in range(len(texts)) for j in range(i)]
    return sum((cosine(texts[i], texts[j]) - cosine(papers[i], papers[j])) ** 2 for i, j in pairs) / len(pairs)


def drawn(seed, documents, wide):
    random = torch.Generator().manual_seed(seed)
    return torch.randn(documents, wide, generator=random, dtype=torch.float64)


def test_two_documents_have_the_square_of_the_difference_of_their_cosines():
    # The cosine of (1, 0) and (3, 4) is 0.6, that of (1, 1) and (1, 0) is 1/√2.
    vectors = torch.tensor([[9.0, 9.0], [1.0, 0.0], [3.0, 4.0]], dtype=torch.float64)
    taught = torch.tensor([[1.0, 1.0], [1.0, 0.0]])
    value = LOSS(vectors, Together(places=torch.tensor([1, 2]), taught=taught))
    assert value.item() == pytest.approx((0.6 - 0.5**0.5) ** 2, abs=1e-7)


@given(st.integers(0, 2**31), st.integers(2, 9), st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_the_loss_is_the_mean_over_all_pairs_of_documents(seed, documents, wide, of_teacher, in_blocks):
    vectors, taught = drawn(seed, documents + 2, wide), drawn(seed + 1, documents, of_teacher)
    places = torch.randperm(documents + 2, generator=torch.Generator().manual_seed(seed))[:documents]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarities, "COMPARISONS_AT_ONCE", 2 * documents if in_blocks else 2**20)
        value = LOSS(vectors, Together(places=places, taught=taught))
    assert value.item() == pytest.approx(by_loops(vectors[places].tolist(), taught.tolist()), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("at_once", [1, 2**20])
def test_its_gradients_are_those_of_finite_differences(monkeypatch, at_once):
    monkeypatch.setattr(similarities, "COMPARISONS_AT_ONCE", at_once)
    batch = Together(places=torch.tensor([4, 0, 2]), taught=drawn(2, 3, 4))
    assert torch.autograd.gradcheck(lambda vectors: LOSS(vectors, batch), drawn(1, 5, 3).requires_grad_())


def test_a_text_without_a_direction_is_as_near_to_nothing_and_spoils_no_other():
    value = LOSS(torch.zeros(2, 3), Together(places=torch.arange(2), taught=torch.eye(2)))
    assert value.item() == 0.0


def test_a_batch_holds_the_documents_that_the_teacher_knows_with_their_vectors(inputs, teacher):
    examples = open_examples(inputs.training[0])
    [known] = open_teachers(teacher, [examples.ids])
    taught = type(examples)(**{**vars(examples), "teachers": {"graph": known}})
    batch = arranged(taught, np.arange(4), comparisons=TrainingSettings(**ADDED).comparisons)
    [[_], [part]] = batch.parts
    papers = examples.ids[batch.documents[part.compared.places]]
    in_batch = set(examples.ids[batch.documents].tolist())
    assert {0, 1} < in_batch
    assert set(papers.tolist()) == in_batch - {0, 1}
    # Near the axis that the parity of the paper's number names.
    assert part.compared.taught.argmax(dim=1).tolist() == (papers % 2).tolist()


def test_a_batch_with_one_taught_document_has_no_pair_and_no_loss(inputs, tmp_path):
    examples = open_examples(inputs.training[0])
    [known] = open_teachers(written_teacher(tmp_path / "t.parquet", [0, 12]), [examples.ids])
    assert known.untaught == len(examples.ids) - 2
    taught = type(examples)(**{**vars(examples), "teachers": {"graph": known}})
    comparisons = TrainingSettings(**ALONE).comparisons
    with_zero = np.flatnonzero(examples.ids[examples.queries] == 0)[:1]
    assert arranged(taught, with_zero, comparisons=comparisons).parts == [[]]


def test_only_the_vectors_of_the_documents_are_held(teacher):
    first, second = open_teachers(teacher, [np.array([3, 2, -5]), np.array([100, 3])])
    assert first.vectors is second.vectors or np.shares_memory(first.vectors, second.vectors)
    assert len(first.vectors) == 3
    assert first.rows[2] == NONE
    assert first.rows[0] == second.rows[1]
    assert (first.untaught, second.untaught) == (1, 0)


def test_a_teacher_of_none_of_the_papers_is_refused(train, tmp_path):
    strange = written_teacher(tmp_path / "strange.parquet", [500, 501])
    with pytest.raises(InputError, match=r"strange\.parquet: has no vector of any of the 13 documents"):
        train("strange", table=strange)


def test_a_teacher_without_a_table_is_refused(inputs, outputs_in, tmp_path):
    with pytest.raises(InputError, match="name the teacher graph, and --teachers has no table of it"):
        train_encoder(
            inputs, outputs_in(tmp_path), TrainingSettings(**ALONE), seed=1, training_seed=1, threads=1, state=tmp_path
        )


def test_teachers_that_are_no_names_and_paths_are_refused():
    assert {name: path.name for name, path in read_teachers('{"a": "x/y.parquet"}').items()} == {"a": "y.parquet"}
    with pytest.raises(InputError, match=re.escape("--teachers is [1]; it should be names and paths")):
        read_teachers("[1]")


@pytest.mark.parametrize("settings", [ALONE, ADDED], ids=["alone", "added"])
def test_texts_become_as_similar_as_their_papers_are(train, settings):
    folder = train("taught", settings, epochs=10, validate_every=1)
    name = "validation_loss" if settings is ALONE else "validation_loss of distillation"
    losses = list(curve_in(folder, name).values())
    assert min(losses) < 0.2 * losses[0]
    assert max(curve_in(folder, "validation_accuracy").values()) == 1.0


def test_each_of_the_losses_that_are_added_up_has_its_curve(train):
    folder = train("taught")
    whole, triplet, taught = (
        np.array(list(curve_in(folder, name).values()))
        for name in ("validation_loss", "validation_loss of triplet", "validation_loss of distillation")
    )
    assert len(whole) == 4
    np.testing.assert_allclose(whole, triplet + 0.5 * taught, rtol=1e-6)


def test_what_a_teacher_does_not_know_is_counted(train):
    folder = train("taught", epochs=1)
    said = "no vector of 2 of 13 training documents and of 1 of 8 validation documents, which are left out of its pairs"
    assert read_json(folder / "settings.json")["teachers"] == {"graph": said}
    assert f"| teacher graph | {said} |" in (folder / "model/README.md").read_text()


class AfterThreeSteps(Stopping):
    """Stops a training once."""

    steps = 0

    def reason(self):
        """After the third step."""
        self.steps += 1
        return "a test" if self.steps == 3 else None


def test_a_taught_training_goes_on_from_where_it_was_stopped(train):
    whole = train("whole")
    with pytest.raises(Unfinished):
        train("stopped", stopping=AfterThreeSteps())
    again = train("stopped")
    for file in ("model/model.safetensors", "curves.parquet", "settings.json"):
        assert (again / file).read_bytes() == (whole / file).read_bytes()
