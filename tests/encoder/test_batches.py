"""The order of the triplets in an epoch."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cocite.encoder.batches import Plan, epoch_order
from cocite.encoder.tokens import Documents, joined_text

QUERIES = st.lists(st.integers(0, 5), min_size=1, max_size=40).map(np.array)


def runs(values):
    """Lengths of the runs of equal neighbours, with their value."""
    ends = [i for i in range(len(values)) if i + 1 == len(values) or values[i] != values[i + 1]]
    return [(values[end], end - start + 1) for start, end in zip([0, *(e + 1 for e in ends)], ends, strict=False)]


@given(queries=QUERIES, block=st.integers(1, 5), epoch=st.integers(0, 3))
def test_an_epoch_holds_every_triplet_once(queries, block, epoch):
    order = epoch_order(queries, block=block, seed=3, epoch=epoch)
    assert sorted(order) == list(range(len(queries)))


def test_the_triplets_of_a_query_stay_together_in_blocks_of_up_to_four():
    queries = np.repeat(np.arange(50), 4)[np.random.default_rng(1).permutation(200)]
    order = epoch_order(queries, block=4, seed=1, epoch=0)
    assert [length for _, length in runs(queries[order].tolist())] == [4] * 50
    assert queries[order].tolist() != sorted(queries)


def test_seven_triplets_of_a_query_make_blocks_of_four_and_three():
    queries = np.repeat(np.arange(200), 7)
    lengths = [length for _, length in runs(queries[epoch_order(queries, block=4, seed=1, epoch=0)].tolist())]
    # The two blocks of a query may happen to be neighbours, and then look like one of seven.
    assert set(lengths) <= {3, 4, 7}
    assert lengths.count(7) < 10


def test_each_epoch_has_its_own_order_and_the_same_seed_gives_it_again():
    queries = np.arange(100)
    first, second = (epoch_order(queries, block=1, seed=9, epoch=epoch).tolist() for epoch in (0, 1))
    assert first != second
    assert first == epoch_order(queries, block=1, seed=9, epoch=0).tolist()
    assert first != epoch_order(queries, block=1, seed=8, epoch=0).tolist()


def test_the_batches_of_a_step_are_the_same_whichever_steps_were_asked_for_before():
    def plan():
        return Plan(queries=np.arange(10), batch_size=2, accumulation=2, block=1, epochs=3, seed=2)

    in_turn, alone = plan(), plan()
    # 10 examples in steps of two batches of 2 are 3 steps an epoch; the third has one batch.
    assert (in_turn.steps_of_an_epoch, in_turn.steps) == (3, 9)
    told = {step: [batch.tolist() for batch in in_turn.batches_of(step)] for step in range(1, 10)}
    assert [len(batches) for batches in told.values()] == [2, 2, 1] * 3
    for step in (8, 2, 5, 9):
        assert [batch.tolist() for batch in alone.batches_of(step)] == told[step]
    for epoch in range(3):
        of_epoch = [number for step in range(3 * epoch + 1, 3 * epoch + 4) for batch in told[step] for number in batch]
        assert of_epoch == epoch_order(np.arange(10), block=1, seed=2, epoch=epoch).tolist()


def test_a_batch_is_padded_to_its_longest_document():
    documents = Documents(tokens=np.array([5, 6, 7, 8, 9, 4], np.int32), starts=np.array([0, 2, 5, 6]))
    ids, mask = documents.padded([2, 1], padding=0)
    assert ids.tolist() == [[4, 0, 0], [7, 8, 9]]
    assert mask.tolist() == [[1, 0, 0], [1, 1, 1]]


def test_only_the_fields_that_are_there_are_joined():
    assert joined_text(("Title", "Abstract"), "[SEP]") == "Title[SEP]Abstract"
    assert joined_text(("Title", None), "[SEP]") == "Title"
    assert joined_text(("", " Abstract "), "[SEP]") == "Abstract"
    assert joined_text((None, ""), "[SEP]") == ""
