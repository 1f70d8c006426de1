"""A graph embedding teaches: the loss against loops, which documents it sees, and what a training takes from it."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.encoder.building import CURVES, WEIGHTS, assert_goes_on, trained
from tests.examples import curve_in

from cocite.config.models import TrainingSettings
from cocite.core.atomic import read_json
from cocite.core.errors import InputError
from cocite.core.tables.files import vector_column, write_table
from cocite.encoder import losses
from cocite.encoder.batch import PairIndices, build_batch
from cocite.encoder.examples import open_examples, open_teachers
from cocite.encoder.losses import Distillation

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
def taught(inputs, teacher):
    """Inputs of trainings by a teacher."""
    return replace(inputs, teachers={"graph": teacher})


@pytest.fixture(scope="module")
def added(inputs, teacher, tmp_path_factory):
    """A training by a loss and a teacher."""
    return trained(tmp_path_factory.mktemp("added"), replace(inputs, teachers={"graph": teacher}), epochs=4, **ADDED)


def cosine(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True)) / math.sqrt(sum(a * a for a in x) * sum(b * b for b in y))


def by_loops(texts, papers):
    pairs = [(i, j) for i in range(len(texts)) for j in range(i)]
    return sum((cosine(texts[i], texts[j]) - cosine(papers[i], papers[j])) ** 2 for i, j in pairs) / len(pairs)


def drawn(seed, documents, wide):
    random = torch.Generator().manual_seed(seed)
    return torch.randn(documents, wide, generator=random, dtype=torch.float64)


@given(st.integers(0, 2**31), st.integers(2, 9), st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_the_loss_is_the_mean_over_all_pairs_of_documents(seed, documents, wide, of_teacher, in_blocks):
    vectors, taught = drawn(seed, documents + 2, wide), drawn(seed + 1, documents, of_teacher)
    places = torch.randperm(documents + 2, generator=torch.Generator().manual_seed(seed))[:documents]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(losses, "COMPARISONS_AT_ONCE", 2 * documents if in_blocks else 2**20)
        value = LOSS(vectors, PairIndices(places=places, taught=taught))
    assert value.item() == pytest.approx(by_loops(vectors[places].tolist(), taught.tolist()), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("at_once", [1, 2**20])
def test_its_gradients_are_those_of_finite_differences(monkeypatch, at_once):
    monkeypatch.setattr(losses, "COMPARISONS_AT_ONCE", at_once)
    batch = PairIndices(places=torch.tensor([4, 0, 2]), taught=drawn(2, 3, 4))
    assert torch.autograd.gradcheck(lambda vectors: LOSS(vectors, batch), drawn(1, 5, 3).requires_grad_())


def test_a_text_without_a_direction_is_as_near_to_nothing_and_spoils_no_other():
    value = LOSS(torch.zeros(2, 3), PairIndices(places=torch.arange(2), taught=torch.eye(2)))
    assert value.item() == 0.0


def test_a_batch_holds_the_documents_that_the_teacher_knows_with_their_vectors(inputs, teacher):
    examples = open_examples(inputs.training[0])
    [known] = open_teachers(teacher, [examples.ids])
    taught = replace(examples, teachers={"graph": known})
    batch = build_batch(taught, np.arange(4), comparisons=TrainingSettings(**ADDED).comparisons)
    [[_], [part]] = batch.parts
    papers = examples.ids[batch.documents[part.places]]
    in_batch = set(examples.ids[batch.documents].tolist())
    assert {0, 1} < in_batch
    assert set(papers.tolist()) == in_batch - {0, 1}
    # Near the axis that the parity of the paper's number names.
    assert part.taught.argmax(dim=1).tolist() == (papers % 2).tolist()


def test_a_batch_with_one_taught_document_has_no_pair_and_no_loss(inputs, tmp_path):
    examples = open_examples(inputs.training[0])
    [known] = open_teachers(written_teacher(tmp_path / "t.parquet", [0, 12]), [examples.ids])
    assert known.untaught == len(examples.ids) - 2
    taught = replace(examples, teachers={"graph": known})
    comparisons = TrainingSettings(**ALONE).comparisons
    with_zero = np.flatnonzero(examples.ids[examples.queries] == 0)[:1]
    assert build_batch(taught, with_zero, comparisons=comparisons).parts == [[]]


def test_only_the_vectors_of_the_documents_are_held(teacher):
    first, second = open_teachers(teacher, [np.array([3, 2, -5]), np.array([100, 3])])
    assert first.vectors is second.vectors or np.shares_memory(first.vectors, second.vectors)
    assert len(first.vectors) == 3
    assert first.rows[2] == -1
    assert first.rows[0] == second.rows[1]
    assert (first.untaught, second.untaught) == (1, 0)


def test_a_teacher_of_none_of_the_papers_is_refused(inputs, tmp_path):
    strange = written_teacher(tmp_path / "strange.parquet", [500, 501])
    with pytest.raises(InputError, match=r"strange\.parquet: has no vector of any of the 13 documents"):
        trained(tmp_path, replace(inputs, teachers={"graph": strange}), **ADDED)


@pytest.mark.parametrize("settings", [ALONE, ADDED], ids=["alone", "added"])
def test_texts_become_as_similar_as_their_papers_are(taught, tmp_path, settings):
    folder = trained(tmp_path, taught, epochs=10, validate_every=1, **settings)
    name = "validation_loss" if settings is ALONE else "validation_loss of distillation"
    losses = list(curve_in(folder, name).values())
    assert min(losses) < 0.2 * losses[0]
    assert max(curve_in(folder, "validation_accuracy").values()) == 1.0


def test_each_of_the_losses_that_are_added_up_has_its_curve(added):
    whole, triplet, taught = (
        np.array(list(curve_in(added, f"validation_loss{name}").values()))
        for name in ("", " of triplet", " of distillation")
    )
    assert len(whole) == 4
    np.testing.assert_allclose(whole, triplet + 0.5 * taught, rtol=1e-6)


def test_what_a_teacher_does_not_know_is_counted(added):
    said = "no vector of 2 of 13 training documents and of 1 of 8 validation documents, which are left out of its pairs"
    assert read_json(added / "settings.json")["teachers"] == {"graph": said}
    assert f"| teacher graph | {said} |" in (added / "model/README.md").read_text()


def test_a_taught_training_goes_on_from_where_it_was_stopped(taught, tmp_path):
    assert_goes_on(tmp_path, taught, 3, files=(WEIGHTS, CURVES, "settings.json"), epochs=4, **ADDED)
