"""Several losses and spaces of aspects, against loops and in trainings; heads, leading dimensions and cut vectors."""

import numpy as np
import pytest
import torch
from tests.encoder.building import CURVES, WEIGHTS, assert_goes_on, embedded, write_documents
from tests.examples import HYBRID, Row, curve_in
from torch import nn

from cocite.config.models import TrainingSettings
from cocite.core.errors import InputError
from cocite.encoder.batch import Collator, build_batch
from cocite.encoder.documents import documents_of
from cocite.encoder.examples import Examples, Links, open_examples
from cocite.encoder.model import open_encoder
from cocite.encoder.objective import PROJECTION, Learner, Objective, new_learner

# Papers 0 to 7 are documents 0 to 7.
ROWS: list[Row] = [
    (0, [1, 2], [3, 4, 5], "background", ["linked", "two-away", "easy"]),
    (0, [3], [1, 6], "result", ["linked", "easy"]),
    (1, [0], [4, 7], "background", ["two-away", "easy"]),
    (2, [5, 6, 7], [0, 1], "result", ["linked", "linked"]),
]


def small_examples(rows=ROWS):
    """Those rows over eight documents, whose numbers are their ids."""
    queries, positives, negatives, aspects, kinds = zip(*rows, strict=True)
    return Examples(
        queries=np.array(queries),
        positives=linked(positives),
        negatives=linked(negatives),
        documents=documents_of([np.full(2 + d % 3, 10 + d, np.int32) for d in range(8)]),
        ids=np.arange(8),
        aspects=np.array(aspects),
        kinds=np.array([kind for of in kinds for kind in of]),
    )


def linked(lists):
    return Links(documents=np.concatenate(lists), starts=np.cumsum([0, *map(len, lists)]))


def drawn_vectors(seed=0, wide=6):
    return torch.randn(8, wide, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


class Stub(nn.Module):
    """Stands for an encoder of which nothing but its device is asked."""

    device = torch.device("cpu")


def learner_with(wide=6, seed=1):
    torch.manual_seed(seed)
    maps = {name: nn.Linear(wide, wide, dtype=torch.float64) for name in ("background", "result")}
    return Learner(Stub(), maps)


def objective_of(objectives, learner):
    settings = TrainingSettings(objectives=objectives)
    return Objective(learner=learner, settings=settings), settings.comparisons


def loss_of(objectives, vectors, learner, rows=ROWS):
    """The loss of a batch of all rows whose documents have these vectors."""
    objective, terms = objective_of(objectives, learner)
    batch = build_batch(small_examples(rows), np.arange(len(rows)), comparisons=terms)
    return objective.loss_of(vectors[batch.documents], batch)


def cosine(x, y):
    return float(x @ y / (x.norm() * y.norm()))


def supcon_by_hand(v, query, near, far, temperature=0.05):
    of = {d: np.exp(cosine(v[query], v[d]) / temperature) for d in (*near, *far)}
    return [-np.log(of[p] / sum(of.values())) for p in near]


def infonce_by_hand(v, query, near, far, temperature=0.5):
    against = sum(np.exp(cosine(v[query], v[d]) / temperature) for d in far)
    of = [np.exp(cosine(v[query], v[p]) / temperature) for p in near]
    return [-np.log(own / (own + against)) for own in of]


def by_hand(vectors, learner):
    """The hybrid as loops: the examples of an aspect with a negative of the kinds, by their share."""
    total = 0.0
    for weight, kinds, in_aspects, loss in (
        (0.3, {"linked"}, True, supcon_by_hand),
        (0.7, {"two-away", "easy"}, False, infonce_by_hand),
    ):
        for aspect in ("background", "result"):
            seen = learner.heads[aspect](vectors).detach() if in_aspects else vectors
            losses, examples = [], 0
            for query, near, far, of, named in ROWS:
                kept = [d for d, kind in zip(far, named, strict=True) if kind in kinds]
                if of == aspect and kept:
                    losses += loss(seen, query, near, kept)
                    examples += 1
            if losses:
                total += weight * examples / len(ROWS) * np.mean(losses)
    return total


def test_a_hybrid_of_two_losses_in_two_spaces_is_what_loops_give():
    vectors, learner = drawn_vectors(), learner_with()
    assert loss_of(HYBRID, vectors, learner).item() == pytest.approx(by_hand(vectors, learner), rel=1e-10)


def test_gradients_of_vectors_and_maps_are_those_of_finite_differences():
    learner, vectors = learner_with(), drawn_vectors().requires_grad_()
    assert torch.autograd.gradcheck(lambda given: loss_of(HYBRID, given, learner), vectors)
    loss_of(HYBRID, vectors, learner).backward()
    for weight in learner.heads.parameters():
        for place in np.ndindex(*weight.shape):
            sides = []
            for step in (1e-6, -1e-6):
                with torch.no_grad():
                    weight[place] += step
                    sides.append(loss_of(HYBRID, vectors, learner).item())
                    weight[place] -= step
            assert weight.grad[place].item() == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-4, abs=1e-7)


def test_negatives_that_no_loss_sees_are_left_out():
    examples = small_examples().with_negatives(["linked"])
    assert examples.negatives.documents.tolist() == [3, 1, 0, 1]
    assert examples.negatives.starts.tolist() == [0, 1, 2, 2, 4]
    assert examples.kinds.tolist() == ["linked"] * 4


def test_kinds_of_negatives_that_have_none_are_refused(inputs):
    with pytest.raises(InputError, match="asks for negatives that are linked, and the examples tell no kinds"):
        open_examples(inputs.training[0]).with_negatives(["linked"])


def contents(folder):
    """The files of a model and its curves, links among them, by their names."""
    files = [path for path in (folder / "model").rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in [*files, folder / "curves.parquet"]}


def test_weights_of_one_and_nought_are_the_single_objectives_bit_for_bit(train_hybrid):
    for chosen in (0, 1):
        weights = [{"weight": float(number == chosen)} for number in (0, 1)]
        both = train_hybrid(f"both-{chosen}", objectives=[term | w for term, w in zip(HYBRID, weights, strict=True)])
        alone = train_hybrid(f"alone-{chosen}", objectives=[HYBRID[chosen] | {"weight": 1.0}])
        left_out = {"model/README.md"}
        some, others = (
            {name: content for name, content in contents(folder).items() if name not in left_out}
            for folder in (both, alone)
        )
        assert some == others
        assert ("model/aspects/result/modules.json" in some) == (chosen == 0)


def test_a_training_of_aspects_goes_on_from_where_it_was_stopped_with_its_maps(aspects, tmp_path):
    maps = [f"model/aspects/{name}/2_Dense/model.safetensors" for name in ("background", "result", "concatenated")]
    assert_goes_on(tmp_path, aspects, 3, files=(WEIGHTS, CURVES, *maps), objectives=HYBRID, epochs=3)


@pytest.fixture
def batch(encoder, inputs):
    given = {"encoder": open_encoder(encoder), "settings": TrainingSettings(loss="mnrl")}
    return Collator(examples=open_examples(inputs.training[0]), **given)(np.arange(6))


def objective_by(encoder, **settings):
    given = TrainingSettings(loss="mnrl", **settings)
    learner = new_learner(open_encoder(encoder), given, seed=1)
    learner.encoder.eval()
    return Objective(learner=learner, settings=given)


def vectors_by(objective, batch):
    with torch.no_grad():
        return torch.cat([objective.learner.encoder(some) for some in batch.mini_batches])


def test_matryoshka_adds_the_losses_of_the_leading_dimensions(encoder, batch):
    objective = objective_by(encoder, matryoshka=(4, 8))
    loss, vectors = objective(batch), vectors_by(objective, batch)
    plain = TrainingSettings(loss="mnrl").loss
    expected = sum(plain(vectors[:, :dimension], batch.whole).item() for dimension in (4, 8, 16))
    assert loss.item() == pytest.approx(expected, rel=1e-6)


def test_a_loss_sees_what_the_projection_makes_of_the_vectors(encoder, batch):
    objective = objective_by(encoder, projection=5)
    loss, vectors = objective(batch), vectors_by(objective, batch)
    first, _, second = objective.learner.heads[PROJECTION]
    seen = torch.relu(vectors @ first.weight.T + first.bias) @ second.weight.T + second.bias
    assert seen.shape == (len(vectors), 5)
    assert loss.item() == pytest.approx(TrainingSettings(loss="mnrl").loss(seen, batch.whole).item(), rel=1e-6)


def test_heads_follow_from_the_seed(encoder):
    settings = TrainingSettings(projection=5)
    some, again, others = (new_learner(open_encoder(encoder), settings, seed).heads.state_dict() for seed in (1, 1, 2))
    name = "projection.0.weight"
    assert torch.equal(some[name], again[name])
    assert not torch.equal(some[name], others[name])


def test_more_leading_dimensions_than_there_are_are_refused(encoder):
    with pytest.raises(InputError, match="matryoshka has 16, but the encoder's vectors have only 16 dimensions"):
        new_learner(open_encoder(encoder), TrainingSettings(matryoshka=(8, 16)), seed=1)


def test_an_odd_number_of_dimensions_is_refused_by_angle(encoder, batch):
    given = TrainingSettings(loss="angle", projection=5)
    learner = new_learner(open_encoder(encoder), given, seed=1)
    with pytest.raises(InputError, match="angle needs an even number of dimensions, and there are 5"):
        Objective(learner=learner, settings=given)(batch)


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
