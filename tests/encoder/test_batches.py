"""A batch as mini-batches of documents: each once, little padding, and vectors that find their triplets."""

from itertools import combinations, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cocite.config.models import TrainingSettings
from cocite.encoder.attention import Dropout, use_fast_dropout
from cocite.encoder.batch import Collator, mini_batches_of_like_length, runs_of
from cocite.encoder.data import Examples, Links, documents_of, open_examples
from cocite.encoder.model import open_encoder
from cocite.encoder.objective import Learner, Objective

TERMS = TrainingSettings(loss={"kind": "cosent", "temperature": 5.0}).comparisons
LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=7).map(np.array)


def cost(mini_batches, lengths, start):
    return sum(len(some) * max(lengths[document] for document in some) + start for some in mini_batches)


def fits(mini_batch, lengths, most):
    """Whether it has no more tokens than that, padding counted, or one document only."""
    return len(mini_batch) == 1 or len(mini_batch) * max(lengths[document] for document in mini_batch) <= most


def cheapest(lengths, start, most):
    """The smallest cost over all ways to cut the documents, ordered by length, into mini-batches."""
    order = sorted(range(len(lengths)), key=lambda document: -lengths[document])
    costs = []
    for count in range(len(order)):
        for cuts in combinations(range(1, len(order)), count):
            ends = [0, *cuts, len(order)]
            mini_batches = [order[a:b] for a, b in pairwise(ends)]
            if most is None or all(fits(some, lengths, most) for some in mini_batches):
                costs.append(cost(mini_batches, lengths, start))
    return min(costs)


@given(lengths=LENGTHS, start=st.integers(0, 40), most=st.none() | st.integers(1, 90))
def test_no_cut_into_mini_batches_costs_less(lengths, start, most):
    mini_batches = mini_batches_of_like_length(lengths, start=start, most=most)
    assert sorted(np.concatenate(mini_batches)) == list(range(len(lengths)))
    assert cost(mini_batches, lengths, start) == cheapest(lengths, start, most)
    assert most is None or all(fits(some, lengths, most) for some in mini_batches)


@given(lengths=LENGTHS, most=st.none() | st.integers(1, 90))
def test_runs_hold_all_documents_in_order_and_as_many_as_fit(lengths, most):
    runs = runs_of(lengths, most)
    assert [document for run in runs for document in range(len(lengths))[run]] == list(range(len(lengths)))
    for run, after in pairwise(runs):
        assert run.stop - run.start == 1 or lengths[run].sum() <= most
        assert lengths[run].sum() + lengths[after.start] > most
    assert most is not None or len(runs) == 1


def small_examples():
    """Documents 0 to 4 of one to five tokens; document d holds the token 10 + d. The second example is no triplet."""
    return Examples(
        queries=np.array([0, 0, 1]),
        positives=Links(documents=np.array([4, 3, 1, 0]), starts=np.array([0, 1, 3, 4])),
        negatives=Links(documents=np.array([2, 4, 2, 2]), starts=np.array([0, 1, 3, 4])),
        documents=documents_of([np.full(1 + document, 10 + document, np.int32) for document in range(5)]),
        ids=np.arange(100, 105),
    )


def collated(numbers, **how):
    return Collator(examples=small_examples(), padding=0, **how)(np.array(numbers))


def test_a_document_of_several_examples_is_in_a_batch_once():
    batch = collated([0, 1], start=0)
    assert sorted(batch.documents.tolist()) == [0, 1, 2, 3, 4]
    assert sum(len(some["input_ids"]) for some in batch.mini_batches) == 5


def test_each_place_of_a_pair_or_triplet_leads_to_its_document():
    batch = collated([2, 1], start=1000)
    assert len(batch.mini_batches) == 1
    tokens = batch.mini_batches[0]["input_ids"]
    assert tokens[batch.whole.positives, 0].tolist() == [[11, 10], [10, 13], [10, 11]]
    assert tokens[batch.whole.negatives, 0].tolist() == [[11, 12], [10, 14], [10, 12]]
    triplets = [(11, 10, 12), (10, 13, 14), (10, 13, 12), (10, 11, 14), (10, 11, 12)]
    assert tokens[batch.whole.triplets, 0].tolist() == list(map(list, triplets))


def test_processes_embed_every_document_once_and_know_the_same_pairs():
    one, *shares = (
        collated([0, 1, 2], processes=processes, process=process) for processes, process in ((1, 0), (2, 0), (2, 1))
    )
    tokens = torch.cat([some["input_ids"][:, 0] for share in shares for some in share.mini_batches])
    assert tokens.tolist() == [10 + document for document in shares[0].documents]
    assert shares[0].shares == shares[1].shares == (3, 2)
    for share in shares:
        for name in ("positives", "negatives", "triplets"):
            of_one, of_share = (batch.documents[getattr(batch.whole, name).numpy()] for batch in (one, share))
            assert of_one.tolist() == of_share.tolist()


def test_a_batch_is_padded_to_its_longest_document():
    documents = documents_of([np.array(tokens, np.int32) for tokens in ([5, 6], [7, 8, 9], [4])])
    ids, mask = documents.padded([2, 1], padding=0).values()
    assert ids.tolist() == [[4, 0, 0], [7, 8, 9]]
    assert mask.tolist() == [[1, 0, 0], [1, 1, 1]]


@pytest.fixture(scope="module")
def prepared(encoder, inputs):
    opened = open_encoder(encoder)
    use_fast_dropout(opened)
    return opened, open_examples(inputs.training[0])


def gradients(prepared, *, start, mini_batch_tokens=None, dropout=0.0):
    """Loss and gradients of the first eight examples."""
    model, examples = prepared
    for module in model.modules():
        if isinstance(module, Dropout):
            module.p = dropout
    model.train()
    model.zero_grad()
    torch.manual_seed(3)
    how = {"start": start, "mini_batch_tokens": mini_batch_tokens, "comparisons": TERMS}
    batch = Collator(examples=examples, padding=model.tokenizer.padding, **how)(np.arange(8))
    objective = Objective(learner=Learner(model), comparisons=TERMS, recompute=mini_batch_tokens is not None)
    loss, _ = objective(batch)
    loss.backward()
    return loss.item(), learned_gradients(model)


def learned_gradients(model):
    return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}


def assert_close(some, others):
    assert some[0] == pytest.approx(others[0], rel=1e-5)
    assert some[1].keys() == others[1].keys()
    for name, gradient in some[1].items():
        torch.testing.assert_close(gradient, others[1][name], rtol=1e-4, atol=1e-6)


def test_gradients_are_those_of_documents_that_are_encoded_one_by_one(prepared):
    grouped = gradients(prepared, start=0)
    model, examples = prepared
    model.zero_grad()
    vectors = torch.cat([model(examples.documents.padded([row], 0)) for row in range(len(examples.documents))])
    near, far = (
        torch.cosine_similarity(vectors[examples.queries[:8]], vectors[links.documents[:8]])
        for links in (examples.positives, examples.negatives)
    )
    loss = torch.log1p(torch.exp(5.0 * (far[:, None] - near[None, :])).sum())
    loss.backward()
    assert_close(grouped, (loss.item(), learned_gradients(model)))


def test_recomputed_batches_have_the_gradients_of_whole_ones(prepared):
    # Mini-batches of one size in both, so that dropout draws the same numbers.
    assert_close(*(gradients(prepared, start=0, mini_batch_tokens=tokens, dropout=0.3) for tokens in (None, 10**6)))


def test_small_mini_batches_give_the_gradients_of_the_whole_batch(prepared):
    assert_close(gradients(prepared, start=10**6), gradients(prepared, start=10**6, mini_batch_tokens=40))
