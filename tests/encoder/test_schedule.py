"""Which examples are learned from at which step, and how several sets are mixed in one training."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import curve_in, written_pairs

from cocite.config.models import TrainingSettings
from cocite.config.settings import parse_settings
from cocite.encoder.documents import documents_of
from cocite.encoder.examples import Examples, Links
from cocite.encoder.measuring import triplets_with_others
from cocite.encoder.schedule import Schedule, round_order

QUERIES = st.lists(st.integers(0, 5), min_size=1, max_size=40).map(np.array)


def one_set(queries, settings, seed=2):
    return Schedule(queries=[queries], settings=settings, seed=seed)


def runs(values):
    """Lengths of the runs of equal neighbours, with their value."""
    ends = [i for i in range(len(values)) if i + 1 == len(values) or values[i] != values[i + 1]]
    return [(values[end], end - start + 1) for start, end in zip([0, *(e + 1 for e in ends)], ends, strict=False)]


@given(queries=QUERIES, block=st.integers(1, 5), epoch=st.integers(0, 3))
def test_an_epoch_holds_every_triplet_once(queries, block, epoch):
    order = round_order(queries, block=block, seed=3, number=epoch)
    assert sorted(order) == list(range(len(queries)))


def test_seven_triplets_of_a_query_make_blocks_of_four_and_three():
    queries = np.repeat(np.arange(200), 7)
    lengths = [length for _, length in runs(queries[round_order(queries, block=4, seed=1, number=0)].tolist())]
    # The two blocks of a query may happen to be neighbours, and then look like one of seven.
    assert set(lengths) <= {3, 4, 7}
    assert lengths.count(7) < 10


@pytest.mark.parametrize(
    ("loss", "together"),
    [("mnrl", 1), ("cosent", 1), ("angle", 1), ("triplet", 8), ("infonce", 4), ("supcon", 8)],
)
def test_losses_over_the_batch_shuffle_triplets_one_by_one(loss, together):
    settings = parse_settings(TrainingSettings, json.dumps({"loss": loss, "batch_size": 16}))
    assert settings.together == together
    queries = np.repeat(np.arange(200), 5)
    [batch] = one_set(queries, settings).batches_of(1)
    assert (len(np.unique(queries[batch.numbers])) > 13) == (together == 1)


def test_the_batches_of_a_step_are_the_same_whichever_steps_were_asked_for_before():
    settings = TrainingSettings(batch_size=2, accumulation=2, block=1, epochs=3)
    in_turn, alone = (one_set(np.arange(10), settings) for _ in range(2))
    # 10 examples in steps of two batches of 2 are 3 steps an epoch; the third has one batch.
    assert (in_turn.steps_of_an_epoch, in_turn.steps) == (3, 9)
    taken = {step: [batch.numbers.tolist() for batch in in_turn.batches_of(step)] for step in range(1, 10)}
    assert [len(batches) for batches in taken.values()] == [2, 2, 1] * 3
    for step in (8, 2, 5, 9):
        assert [batch.numbers.tolist() for batch in alone.batches_of(step)] == taken[step]
    for epoch in range(3):
        of_epoch = [number for step in range(3 * epoch + 1, 3 * epoch + 4) for batch in taken[step] for number in batch]
        assert of_epoch == round_order(np.arange(10), block=1, seed=2, number=epoch).tolist()


SIZES = st.lists(st.integers(1, 60), min_size=2, max_size=4)


def mixture(sizes, *, shares=None, mixing="in-batch", seed=1, **settings):
    """Sets of so many examples, each of a query of its own."""
    terms = [{"triplets": str(number), "loss": "mnrl"} for number in range(len(sizes))]
    if shares is not None:
        terms = [{**term, "weight": share} for term, share in zip(terms, shares, strict=True)]
    given = TrainingSettings(**{"objectives": terms, "mixing": mixing, "batch_size": 8, **settings})
    return Schedule(queries=[np.arange(size) for size in sizes], settings=given, seed=seed)


@given(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=20), batch_size=st.integers(1, 5))
def test_one_example_of_each_query_is_taken_in_an_epoch_and_all_of_them_in_as_many_as_it_has(sizes, batch_size):
    queries = np.repeat(np.arange(len(sizes)), sizes)[np.random.default_rng(2).permutation(sum(sizes))]
    mixed = one_set(queries, TrainingSettings(batch_size=batch_size, block=8, one_per_query=True), seed=3)
    assert mixed.examples == len(sizes)
    epochs = [mixed.epoch(number).numbers for number in range(max(sizes))]
    for numbers in epochs:
        assert sorted(queries[numbers]) == [*range(len(sizes))]
    for query, size in enumerate(sizes):
        taken = [int(number) for numbers in epochs[:size] for number in numbers if queries[number] == query]
        assert sorted(taken) == np.flatnonzero(queries == query).tolist()


@pytest.mark.parametrize("mixing", ["in-batch", "alternating"])
def test_of_mixed_sets_only_that_one_has_one_example_of_each_query_in_a_round(mixing):
    queries = [np.repeat(np.arange(30), 5), np.repeat(np.arange(10), 3)]
    terms = [{"triplets": name, "loss": "mnrl", "one_per_query": name == "a"} for name in ("a", "b")]
    settings = TrainingSettings(objectives=terms, mixing=mixing, batch_size=5)
    mixed = Schedule(queries=queries, settings=settings, seed=4)
    assert mixed.examples == 60
    numbers = mixed.epoch(0).numbers
    assert sorted(queries[0][numbers[numbers < 150]]) == [*range(30)]
    assert sorted(numbers[numbers >= 150]) == [*range(150, 180)]


def set_of(numbers, sizes):
    """The set that each example is of."""
    return np.searchsorted(np.cumsum(sizes), numbers, side="right")


def of_each(numbers, sizes):
    return np.bincount(set_of(numbers, sizes), minlength=len(sizes)).tolist()


@pytest.mark.parametrize("shares", [[0.4, 0.6], [0.05, 0.95], [0.37, 0.63]])
def test_the_shares_of_examples_hold_within_one_in_a_hundred_over_an_epoch(shares):
    sizes = [300, 700]
    numbers = mixture(sizes, shares=shares).epoch(3).numbers
    assert len(numbers) == 1000
    assert np.array(of_each(numbers, sizes)) / 1000 == pytest.approx(shares, abs=0.01)


def test_the_examples_of_a_batch_come_from_all_sets():
    sizes = [500, 500]
    numbers = mixture(sizes, batch_size=100).epoch(0).numbers
    found = [of_each(numbers[start : start + 100], sizes) for start in range(0, 1000, 100)]
    assert all(30 < first < 70 for first, _ in found)
    assert len({first for first, _ in found}) > 3


@given(sizes=SIZES, epochs=st.integers(1, 4), mixing=st.sampled_from(["in-batch", "alternating"]))
def test_a_set_is_gone_through_as_a_whole_before_it_starts_again(sizes, epochs, mixing):
    mixed = mixture(sizes, mixing=mixing)
    parts = [mixed.epoch(epoch) for epoch in range(epochs)]
    numbers, rounds = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    for each in range(len(sizes)):
        is_ours = set_of(numbers, sizes) == each
        mine, of_round = numbers[is_ours] - sum(sizes[:each]), rounds[is_ours]
        assert (np.diff(of_round) >= 0).all()
        for number in range(int(of_round.max(initial=-1)) + 1):
            taken = mine[of_round == number]
            assert len(set(taken.tolist())) == len(taken)
            assert number == of_round.max() or len(taken) == sizes[each]


@given(sizes=SIZES, batch_size=st.integers(1, 9), accumulation=st.integers(1, 3))
def test_alternating_batches_are_of_one_set(sizes, batch_size, accumulation):
    how = {"batch_size": batch_size, "accumulation": accumulation, "epochs": 2}
    schedule = mixture(sizes, mixing="alternating", **how)
    for step in range(1, schedule.steps + 1):
        for batch in schedule.batches_of(step):
            assert len(batch.numbers) == batch_size
            assert len(set(set_of(batch.numbers, sizes).tolist())) == 1


def test_equal_shares_take_turns_and_others_are_spread():
    sizes = [40, 40]
    even = mixture(sizes, mixing="alternating").epoch(0).numbers[::8]
    assert set_of(even, sizes).tolist() == [0, 1] * 5
    sizes = [70, 26]
    uneven = mixture(sizes, mixing="alternating", shares=[0.75, 0.25]).epoch(0).numbers[::8]
    # 12 batches, 9 and 3 of them: those of the smaller share stand at 1/6, 3/6 and 5/6 of the epoch.
    assert set_of(uneven, sizes).tolist() == [0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0]


def test_an_epoch_of_one_set_is_in_its_order():
    queries = np.repeat(np.arange(10), 3)
    alone = one_set(queries, TrainingSettings(batch_size=4, block=2), seed=9)
    for epoch in (0, 3):
        numbers, rounds = alone.epoch(epoch)
        assert numbers.tolist() == round_order(queries, block=2, seed=9, number=epoch).tolist()
        assert set(rounds.tolist()) == {epoch}


def test_an_epoch_follows_from_the_seed_and_its_number_alone():
    first, again, other = (mixture([30, 50], seed=seed).epoch(2).numbers.tolist() for seed in (1, 1, 2))
    assert first == again
    assert first != other


SETS = [{"triplets": "topics", "loss": "mnrl"}, {"triplets": "crops", "loss": "mnrl"}]


def test_objectives_with_the_same_loss_are_compared_with_one_another():
    [together] = TrainingSettings(objectives=SETS).comparisons
    assert together.objectives == {0, 1}
    apart = TrainingSettings(objectives=[SETS[0], {"triplets": "crops", "loss": "triplet"}]).comparisons
    assert [(each.loss.kind, each.objectives) for each in apart] == [("mnrl", {0}), ("triplet", {1})]


@pytest.mark.parametrize("mixing", ["in-batch", "alternating"])
def test_each_objective_of_a_training_is_validated_by_itself(mixing, train_several):
    folder = train_several(objectives=SETS, mixing=mixing, epochs=4, validations=2)
    means = curve_in(folder, "validation_loss")
    parts = [curve_in(folder, f"validation_loss of {name}") for name in ("topics", "crops")]
    assert len(means) == 2
    for step, mean in means.items():
        assert mean == pytest.approx((parts[0][step] + parts[1][step]) / 2)
    accuracy = curve_in(folder, "validation_accuracy of topics")
    assert max(accuracy.values()) > 0.8


def test_without_negatives_a_pair_is_compared_with_a_positive_of_another_query():
    def compared(pairs):
        """The triplets of examples with one positive each; documents are papers of the same numbers."""
        ones = np.arange(len(pairs) + 1)
        query, positive = (np.array(of) for of in zip(*pairs, strict=True))
        numbers = {
            "positives": Links(documents=positive, starts=ones),
            "negatives": Links(documents=ones[:0], starts=0 * ones),
        }
        return triplets_with_others(
            Examples(queries=query, ids=np.arange(9), documents=documents_of([]), **numbers)
        ).tolist()

    assert compared([(0, 1), (2, 3), (4, 5)]) == [[0, 1, 3], [2, 3, 5], [4, 5, 1]]
    assert compared([(0, 1), (0, 2), (0, 3), (4, 5)]) == [[0, 2, 5], [4, 5, 2]]
    assert compared([(0, 1), (1, 0)]) == []  # the query itself
    assert compared([(0, 2), (0, 3), (1, 2), (1, 3)]) == []  # its own positives


def test_a_model_learns_from_pairs_without_negatives(train_several, several, tmp_path, encoder):
    files = written_pairs(tmp_path / "pairs", several.training[0], encoder)
    folder = train_several(inputs=replace(several, training=[files], validation=[files]), loss="mnrl", epochs=16)
    losses = list(curve_in(folder, "training_loss").values())
    assert sum(losses[-24:]) < sum(losses[:24])
    assert set(curve_in(folder, "validation_accuracy")) == set(curve_in(folder, "validation_loss"))
