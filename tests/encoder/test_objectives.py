"""Several losses, spaces of aspects, and a graph embedding that teaches, against loops and in trainings."""

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.encoder.building import assert_goes_on, embedded, trained, write_documents
from tests.encoder.loops import cosine, loop_infonce, loop_supcon
from tests.examples import HYBRID, Row, curve_in
from torch import nn

from cocite.config.models import TrainingSettings
from cocite.core.atomic import read_json
from cocite.core.errors import InputError
from cocite.core.tables.files import vector_column, write_table
from cocite.encoder import losses
from cocite.encoder.batch import Collator, PairIndices, build_batch
from cocite.encoder.documents import documents_of
from cocite.encoder.examples import Examples, Links, open_examples, open_teachers
from cocite.encoder.losses import Distillation
from cocite.encoder.model import open_encoder
from cocite.encoder.objective import PROJECTION, Learner, Objective, new_learner

# Papers 0 to 7 are documents 0 to 7.
ROWS: list[Row] = [
    (0, [1, 2], [3, 4, 5], "background", ["linked", "two-away", "easy"]),
    (0, [3], [1, 6], "result", ["linked", "easy"]),
    (1, [0], [4, 7], "background", ["two-away", "easy"]),
    (2, [5, 6, 7], [0, 1], "result", ["linked", "linked"]),
]


def linked(lists):
    return Links(documents=np.concatenate(lists), starts=np.cumsum([0, *map(len, lists)]))


def small_examples():
    """Those rows over eight documents, whose numbers are their ids."""
    queries, positives, negatives, aspects, kinds = zip(*ROWS, strict=True)
    return Examples(
        queries=np.array(queries),
        positives=linked(positives),
        negatives=linked(negatives),
        documents=documents_of([np.full(2 + d % 3, 10 + d, np.int32) for d in range(8)]),
        ids=np.arange(8),
        aspects=np.array(aspects),
        kinds=np.array([kind for of in kinds for kind in of]),
    )


def drawn(seed, documents, wide):
    random = torch.Generator().manual_seed(seed)
    return torch.randn(documents, wide, generator=random, dtype=torch.float64)


class Stub(nn.Module):
    """Stands for an encoder of which nothing but its device is asked."""

    device = torch.device("cpu")


def learner_with_maps():
    torch.manual_seed(1)
    return Learner(Stub(), {name: nn.Linear(6, 6, dtype=torch.float64) for name in ("background", "result")})


def loss_of_hybrid(vectors, learner):
    """The loss of a batch of all rows whose documents have these vectors."""
    settings = TrainingSettings(objectives=HYBRID)
    batch = build_batch(small_examples(), np.arange(len(ROWS)), comparisons=settings.comparisons)
    return Objective(learner=learner, settings=settings).loss_of(vectors[batch.documents], batch)


def by_hand(vectors, learner):
    """The hybrid as loops: the examples of an aspect with a negative of the kinds, by their share."""
    total = 0.0
    for weight, kinds, in_aspects, loss in (
        (0.3, {"linked"}, True, partial(loop_supcon, temperature=0.05)),
        (0.7, {"two-away", "easy"}, False, partial(loop_infonce, temperature=0.5)),
    ):
        for aspect in ("background", "result"):
            seen = learner.heads[aspect](vectors).detach() if in_aspects else vectors
            kept = []
            for query, near, far, of, named in ROWS:
                against = [d for d, kind in zip(far, named, strict=True) if kind in kinds]
                if of == aspect and against:
                    kept.append((query, near, against))
            if kept:
                total += weight * len(kept) / len(ROWS) * loss(seen.tolist(), kept)
    return total


def test_a_hybrid_of_two_losses_in_two_spaces_is_what_loops_give():
    vectors, learner = drawn(0, 8, 6), learner_with_maps()
    assert loss_of_hybrid(vectors, learner).item() == pytest.approx(by_hand(vectors, learner), rel=1e-10)


def test_gradients_of_vectors_and_maps_are_those_of_finite_differences():
    learner, vectors = learner_with_maps(), drawn(0, 8, 6).requires_grad_()
    assert torch.autograd.gradcheck(lambda given: loss_of_hybrid(given, learner), vectors)
    loss_of_hybrid(vectors, learner).backward()
    for weight in learner.heads.parameters():
        for place in np.ndindex(*weight.shape):
            sides = []
            for step in (1e-6, -1e-6):
                with torch.no_grad():
                    weight[place] += step
                    sides.append(loss_of_hybrid(vectors, learner).item())
                    weight[place] -= step
            assert weight.grad[place].item() == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-4, abs=1e-7)


def test_negatives_that_no_loss_sees_are_left_out_and_kinds_that_have_none_are_refused(inputs):
    examples = small_examples().with_negatives(["linked"])
    assert examples.negatives.documents.tolist() == [3, 1, 0, 1]
    assert examples.negatives.starts.tolist() == [0, 1, 2, 2, 4]
    assert examples.kinds.tolist() == ["linked"] * 4
    with pytest.raises(InputError, match="asks for negatives that are linked, and the examples tell no kinds"):
        open_examples(inputs.training[0]).with_negatives(["linked"])


def contents(folder):
    """The files of a model but its card, links among them, and its curves, by their names."""
    files = [path for path in (folder / "model").rglob("*") if path.is_file() and path.name != "README.md"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in [*files, folder / "curves.parquet"]}


@pytest.mark.parametrize("chosen", [0, 1])
def test_weights_of_one_and_nought_are_the_single_objectives_bit_for_bit(train, aspects, chosen):
    weighted = [term | {"weight": float(number == chosen)} for number, term in enumerate(HYBRID)]
    both, alone = (train(inputs=aspects, objectives=some, epochs=3) for some in (weighted, [weighted[chosen]]))
    assert contents(both) == contents(alone)
    assert ("model/aspects/result/modules.json" in contents(both)) == (chosen == 0)


@pytest.fixture
def batch(encoder, inputs):
    given = {"encoder": open_encoder(encoder), "settings": TrainingSettings(loss="mnrl")}
    return Collator(examples=open_examples(inputs.training[0]), **given)(np.arange(6))


def objective_by(encoder, seed=1, **settings):
    given = TrainingSettings(**{"loss": "mnrl", **settings})
    learner = new_learner(open_encoder(encoder), given, seed)
    learner.encoder.eval()
    return Objective(learner=learner, settings=given)


def vectors_by(objective, batch):
    with torch.no_grad():
        return torch.cat([objective.learner.encoder(some) for some in batch.mini_batches])


@pytest.mark.parametrize("normalises", [False, True])
@pytest.mark.parametrize("loss", ["mnrl", "triplet"])
def test_matryoshka_adds_the_losses_of_encoders_that_keep_the_leading_dimensions(encoder, batch, loss, normalises):
    objective, expected = objective_by(encoder, loss=loss, matryoshka=(4, 8)), 0.0
    objective.learner.encoder.normalises = normalises
    found = objective(batch).item()
    for objective.learner.encoder.dimension in (4, 8, 16):
        expected += TrainingSettings(loss=loss).loss(vectors_by(objective, batch), batch.whole).item()
    assert found == pytest.approx(expected, rel=1e-6)


def test_a_loss_sees_what_the_projection_makes_of_the_vectors(encoder, batch):
    objective = objective_by(encoder, projection=5)
    loss, vectors = objective(batch), vectors_by(objective, batch)
    first, _, second = objective.learner.heads[PROJECTION]
    seen = torch.relu(vectors @ first.weight.T + first.bias) @ second.weight.T + second.bias
    assert seen.shape == (len(vectors), 5)
    assert loss.item() == pytest.approx(TrainingSettings(loss="mnrl").loss(seen, batch.whole).item(), rel=1e-6)


def test_heads_follow_from_the_seed(encoder):
    heads = (objective_by(encoder, seed, projection=5).learner.heads.state_dict() for seed in (1, 1, 2))
    some, again, others = (head["projection.0.weight"] for head in heads)
    assert torch.equal(some, again)
    assert not torch.equal(some, others)


def test_numbers_of_dimensions_that_do_not_go_together_are_refused(encoder, batch):
    with pytest.raises(InputError, match="matryoshka has 16, but the encoder's vectors have only 16 dimensions"):
        objective_by(encoder, matryoshka=(8, 16))
    with pytest.raises(InputError, match="angle needs an even number of dimensions, and there are 5"):
        objective_by(encoder, loss="angle", projection=5)(batch)


def test_a_training_with_a_projection_learns_and_leaves_an_encoder_of_the_usual_kind(train, encoder):
    folder = train(loss="mnrl", epochs=4, projection=8)
    losses = list(curve_in(folder, "training_loss").values())
    assert losses[-1] < losses[0]
    assert {path.name for path in (folder / "model").iterdir()} == {path.name for path in encoder.iterdir()}
    assert open_encoder(folder / "model").dimension == 16


def test_vectors_are_cut_to_their_first_numbers(encoder, tmp_path):
    documents = write_documents(tmp_path / "documents.parquet", {"a": ("bees", "nectar"), "b": ("loops", None)})
    cut, whole = (
        embedded(encoder, documents, tmp_path / f"cut-{dimension}", dimension=dimension) for dimension in (6, None)
    )
    assert cut.shape == (2, 6)
    np.testing.assert_array_equal(cut, whole[:, :6])


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


@pytest.fixture(scope="module")
def taught(inputs, teacher):
    """Inputs of trainings by a teacher."""
    return replace(inputs, teachers={"graph": teacher})


def by_loops(texts, papers):
    pairs = [(i, j) for i in range(len(texts)) for j in range(i)]
    return sum((cosine(texts[i], texts[j]) - cosine(papers[i], papers[j])) ** 2 for i, j in pairs) / len(pairs)


@given(st.integers(0, 2**31), st.integers(2, 9), st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_distillation_is_the_mean_over_all_pairs_of_documents(seed, documents, wide, of_teacher, in_blocks):
    vectors, taught = drawn(seed, documents + 2, wide), drawn(seed + 1, documents, of_teacher)
    places = torch.randperm(documents + 2, generator=torch.Generator().manual_seed(seed))[:documents]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(losses, "COMPARISONS_AT_ONCE", 2 * documents if in_blocks else 2**20)
        value = LOSS(vectors, PairIndices(places=places, taught=taught))
    assert value.item() == pytest.approx(by_loops(vectors[places].tolist(), taught.tolist()), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("at_once", [1, 2**20])
def test_the_gradients_of_distillation_are_those_of_finite_differences(monkeypatch, at_once):
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


def test_each_loss_that_is_added_up_has_its_curve_and_what_a_teacher_does_not_know_is_counted(taught, tmp_path):
    added = trained(tmp_path, taught, epochs=4, **ADDED)
    names = ("", " of triplet", " of distillation")
    whole, triplet, taught = (np.array(list(curve_in(added, f"validation_loss{name}").values())) for name in names)
    assert len(whole) == 4
    np.testing.assert_allclose(whole, triplet + 0.5 * taught, rtol=1e-6)
    said = "no vector of 2 of 13 training documents and of 1 of 8 validation documents, which are left out of its pairs"
    assert read_json(added / "settings.json")["teachers"] == {"graph": said}
    assert f"| teacher graph | {said} |" in (added / "model/README.md").read_text()


def test_a_taught_training_goes_on_from_where_it_was_stopped(taught, tmp_path):
    assert_goes_on(tmp_path, taught, 3, epochs=4, **ADDED)
