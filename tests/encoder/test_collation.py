"""A batch as groups of documents: each once, little padding, and vectors that find their triplets."""

from itertools import combinations, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cocite.encoder.collation import Collator, groups_of_like_length
from cocite.encoder.folder import open_encoder
from cocite.encoder.losses.cosent import loss as cosent
from cocite.encoder.objective import TripletObjective
from cocite.encoder.texts import Documents
from cocite.encoder.triplets import Triplets, prepare_triplets

LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=7).map(np.array)


def cost(groups, lengths, start):
    return sum(len(group) * max(lengths[document] for document in group) + start for group in groups)


def cheapest(lengths, start, most):
    """The smallest cost over all ways to cut the documents, ordered by length, into groups."""
    order = sorted(range(len(lengths)), key=lambda document: -lengths[document])
    costs = []
    for count in range(len(order)):
        for cuts in combinations(range(1, len(order)), count):
            ends = [0, *cuts, len(order)]
            groups = [order[a:b] for a, b in pairwise(ends)]
            if most is None or max(map(len, groups)) <= most:
                costs.append(cost(groups, lengths, start))
    return min(costs)


@given(lengths=LENGTHS, start=st.integers(0, 40), most=st.none() | st.integers(1, 4))
def test_no_cut_into_groups_costs_less(lengths, start, most):
    groups = groups_of_like_length(lengths, start=start, most=most)
    assert sorted(np.concatenate(groups)) == list(range(len(lengths)))
    assert cost(groups, lengths, start) == cheapest(lengths, start, most)
    assert most is None or max(map(len, groups)) <= most


def small_triplets():
    """Documents 0 to 4 of one to five tokens; document d holds the token 10 + d."""
    tokens = np.repeat(np.arange(10, 15), np.arange(1, 6)).astype(np.int32)
    documents = Documents(tokens=tokens, starts=np.array([0, 1, 3, 6, 10, 15]))
    rows = np.array([[0, 4, 2], [0, 3, 4], [1, 0, 2]])
    return Triplets(rows=rows, documents=documents, ids=np.arange(100, 105))


def test_a_document_of_several_triplets_is_in_a_batch_once():
    batch = Collator(triplets=small_triplets(), padding=0, start=0)([0, 1])
    assert sorted(batch["documents"].tolist()) == [0, 2, 3, 4]
    assert sum(len(group["input_ids"]) for group in batch["groups"]) == 4


def test_each_place_of_a_triplet_leads_to_its_document():
    collator = Collator(triplets=small_triplets(), padding=0, start=1000)
    batch = collator([2, 0])
    assert len(batch["groups"]) == 1
    tokens = batch["groups"][0]["input_ids"][batch["rows"], 0]
    assert tokens.tolist() == [[11, 10, 12], [10, 14, 12]]


def test_without_a_cost_of_starting_nothing_is_padded():
    batch = Collator(triplets=small_triplets(), padding=0, start=0)([0, 1, 2])
    assert all(bool(group["attention_mask"].all()) for group in batch["groups"])


@pytest.fixture(scope="module")
def prepared(encoder, triplets, tmp_path_factory):
    model = open_encoder(encoder)
    folder = tmp_path_factory.mktemp("prepared") / "tokens"
    return model, prepare_triplets(triplets / "training.parquet", folder, model.tokenizer, 16)


def gradients(prepared, *, start, at_once=None, dropout=0.0):
    """Loss and gradients of the first eight triplets."""
    model, triplets = prepared
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = dropout
    model.train()
    model.zero_grad()
    torch.manual_seed(3)
    batch = Collator(triplets=triplets, padding=model.tokenizer.pad_token_id, start=start, at_once=at_once)(range(8))
    objective = TripletObjective(
        model, lambda *columns: cosent(*columns, temperature=5.0), recompute=at_once is not None
    )
    loss, _ = objective(batch["groups"], batch["rows"])
    loss.backward()
    return loss.item(), {
        name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None
    }


def assert_close(some, others):
    assert some[0] == pytest.approx(others[0], rel=1e-5)
    assert some[1].keys() == others[1].keys()
    for name, gradient in some[1].items():
        torch.testing.assert_close(gradient, others[1][name], rtol=1e-4, atol=1e-6)


def test_gradients_do_not_depend_on_the_groups(prepared):
    assert_close(gradients(prepared, start=0), gradients(prepared, start=10**6))


def test_gradients_are_those_of_three_columns_that_are_encoded_one_by_one(prepared):
    grouped = gradients(prepared, start=0)
    model, triplets = prepared
    model.zero_grad()
    columns = []
    for column in triplets.rows[:8].T:
        vectors = []
        for document in column:
            ids, mask = (torch.from_numpy(array) for array in triplets.documents.padded([document], 0))
            vectors.append(model({"input_ids": ids, "attention_mask": mask})["sentence_embedding"])
        columns.append(torch.cat(vectors))
    loss = cosent(*columns, None, temperature=5.0)
    loss.backward()
    alone = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    assert_close(grouped, (loss.item(), alone))


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_recomputed_batches_have_the_gradients_of_whole_ones(prepared, dropout):
    whole, recomputed = (
        # Groups of one size in both, so that dropout draws the same numbers.
        gradients(prepared, start=0, at_once=at_once, dropout=dropout)
        for at_once in (None, 1000)
    )
    assert_close(whole, recomputed)


def test_few_documents_at_once_give_the_gradients_of_the_whole_batch(prepared):
    assert_close(gradients(prepared, start=10**6), gradients(prepared, start=10**6, at_once=3))
