"""A batch as mini-batches of documents, each once and with little padding; spans that stand for documents."""

from functools import partial
from itertools import combinations, pairwise
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.encoder.published import fetched, published
from torch.nn.functional import normalize

from cocite.config.models import TrainingSettings
from cocite.encoder.attention import Dropout, use_fast_dropout
from cocite.encoder.batch import TOKENS_OF_A_START, Collator, build_batch, mini_batches_of_like_length, runs_of
from cocite.encoder.documents import Documents, Spans, documents_of
from cocite.encoder.examples import Examples, Links, joined_examples, open_examples
from cocite.encoder.model import open_encoder
from cocite.encoder.objective import Learner, Objective
from cocite.encoder.tokens import open_tokenizer

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


def collated(numbers, start=128):
    features_of = partial(Documents.padded, padding=0)
    encoder = SimpleNamespace(reads="tokens", device=torch.device("cpu"), features_of=features_of)
    with patch.dict(TOKENS_OF_A_START, cpu=start):
        return Collator(examples=small_examples(), encoder=encoder, settings=TrainingSettings())(np.array(numbers))


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


def test_processes_embed_every_document_once_and_know_the_same_pairs(monkeypatch):
    batches = []
    for count, number in ((1, 0), (2, 0), (2, 1)):
        monkeypatch.setenv("WORLD_SIZE", str(count))
        monkeypatch.setenv("RANK", str(number))
        batches.append(collated([0, 1, 2]))
    one, *shares = batches
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


def gradients(prepared, *, start, mini_batch_tokens="all", dropout=0.0):
    """Loss and gradients of the first eight examples."""
    model, examples = prepared
    for module in model.modules():
        if isinstance(module, Dropout):
            module.p = dropout
    model.train()
    model.zero_grad()
    torch.manual_seed(3)
    settings = TrainingSettings(loss={"kind": "cosent", "scale": 5.0}, mini_batch_tokens=mini_batch_tokens)
    with patch.dict(TOKENS_OF_A_START, cpu=start):
        batch = Collator(examples=examples, encoder=model, settings=settings)(np.arange(8))
    loss = Objective(learner=Learner(model), settings=settings)(batch)
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
    assert_close(*(gradients(prepared, start=0, mini_batch_tokens=tokens, dropout=0.3) for tokens in ("all", 10**6)))


def test_small_mini_batches_give_the_gradients_of_the_whole_batch(prepared):
    assert_close(gradients(prepared, start=10**6), gradients(prepared, start=10**6, mini_batch_tokens=40))


FIRST, LAST = 101, 102
OF_PAPERS = st.lists(st.integers(0, 60), min_size=1, max_size=20)


def papers(lengths, *, shortest=10, longest=2**31 - 1, roles=0):
    """Documents of so many tokens, 0, 1, 2, … of which are between the first and the last one, all to be cropped."""
    documents = documents_of([np.array([FIRST, *range(length), LAST], dtype=np.int32) for length in lengths])
    columns = {"shortest": shortest, "longest": longest, "papers": np.arange(len(lengths)), "roles": roles}
    spans = Spans(**{name: np.broadcast_to(column, len(lengths)) for name, column in columns.items()}, head=1, tail=1)
    return type(documents)(**{**vars(documents), "spans": spans})


@given(lengths=OF_PAPERS, shortest=st.integers(1, 20), more=st.integers(0, 20), epoch=st.integers(-1, 5))
def test_a_span_is_tokens_of_the_text_that_follow_each_other_within_the_frame(lengths, shortest, more, epoch):
    drawn = papers(lengths, shortest=shortest, longest=shortest + more).drawn(seed=7, epochs=epoch)
    for row, length in enumerate(lengths):
        first, *span, last = drawn[row].tolist()
        assert (first, last) == (FIRST, LAST)
        assert span == list(range(span[0], span[0] + len(span))) if span else length == 0
        assert min(length, shortest) <= len(span) <= min(length, shortest + more)
        assert drawn.lengths[row] == len(span) + 2


def test_a_span_follows_from_seed_epoch_paper_and_role_alone():
    together = papers([50] * 30).drawn(seed=3, epochs=2)
    alone = papers([50] * 30).chosen(np.array([17, 4])).drawn(seed=3, epochs=2)
    assert alone[0].tolist() == together[17].tolist()
    assert alone[1].tolist() == together[4].tolist()
    others = [(4, 2, 0), (3, 3, 0), (3, 2, 1)]
    for seed, epoch, role in others:
        other = papers([50] * 30, roles=role).drawn(seed=seed, epochs=epoch)
        assert sum(other[row].tolist() == together[row].tolist() for row in range(30)) < 3


def test_lengths_and_starts_of_spans_are_drawn_evenly():
    drawn = papers([19] * 100_000).drawn(seed=1, epochs=0)
    lengths = drawn.lengths - 2
    assert np.bincount(lengths)[10:] / 100_000 == pytest.approx(np.full(10, 0.1), abs=0.005)
    starts = drawn.offsets[lengths == 10]
    assert np.bincount(starts) / len(starts) == pytest.approx(np.full(10, 0.1), abs=0.015)


def test_documents_that_no_span_is_asked_of_stay_whole():
    whole = papers([5, 50], shortest=np.array([0, 10]))
    drawn = whole.drawn(seed=1, epochs=0)
    assert drawn[0].tolist() == [FIRST, *range(5), LAST]
    assert len(drawn[1]) <= 52


def cropped(count):
    """Examples of papers 0, 1, …, each near to itself, with the next paper as its negative."""
    numbers = np.arange(count)
    roles = np.repeat([0, 1, 2], count)
    ids = np.concatenate([numbers, numbers, (numbers + 1) % count])
    documents = papers([40] * 3 * count, roles=roles)
    spans = Spans(**{**vars(documents.spans), "papers": ids})
    each = np.arange(count + 1)
    return Examples(
        queries=numbers,
        positives=Links(documents=numbers + count, starts=each),
        negatives=Links(documents=numbers + 2 * count, starts=each),
        documents=type(documents)(**{**vars(documents), "spans": spans}),
        ids=ids,
    )


def test_the_two_spans_of_a_paper_are_two_documents_of_a_batch_and_change_with_the_epoch():
    examples, numbers = cropped(4), np.arange(4)
    batches = [build_batch(examples, numbers, epochs=np.full(4, epoch), seed=5) for epoch in (0, 0, 1)]
    assert all(len(batch.documents) == 12 for batch in batches)
    tokens = [{row: batch.tokens[place].tolist() for place, row in enumerate(batch.documents)} for batch in batches]
    assert tokens[0] == tokens[1]
    assert sum(tokens[0][row] != tokens[2][row] for row in range(12)) >= 10
    query, positive = batches[0].whole.positives[0].tolist()
    assert batches[0].tokens[query].tolist() != batches[0].tokens[positive].tolist()


def test_a_span_of_two_epochs_is_two_documents_of_a_batch():
    batch = build_batch(cropped(4), np.array([1, 1]), epochs=np.array([0, 1]), seed=5)
    assert len(batch.documents) == 6
    assert sorted(batch.documents.tolist()) == [1, 1, 5, 5, 9, 9]


def test_spans_of_the_paper_of_a_query_are_no_negatives_of_it():
    """Each paper is also the negative of the one before, as another span."""
    examples, [term] = cropped(3), TrainingSettings(loss="mnrl").comparisons
    batch = build_batch(examples, np.arange(3), epochs=np.zeros(3, np.int64), comparisons=[term])
    vectors = normalize(torch.randn(9, 4, generator=torch.Generator().manual_seed(1)), dim=1)
    [[part]], paper, losses = batch.parts, examples.ids[batch.documents], []
    for query, positive in part.positives.tolist():
        candidates = [*part.positives[:, 1].tolist(), *part.negatives[:, 1].tolist()]
        others = [document for document in candidates if paper[document] != paper[query]]
        assert len(others) == 4
        logits = 20 * vectors[[positive, *others]] @ vectors[query]
        losses.append(logits.logsumexp(0) - logits[0])
    torch.testing.assert_close(term.loss(vectors, part), torch.stack(losses).mean())


def test_a_whole_document_of_two_objectives_is_one_and_spans_stay_apart():
    texts = [np.array([FIRST, number, LAST], dtype=np.int32) for number in range(3)]
    each = np.arange(2)
    whole = Examples(
        queries=np.array([0]),
        positives=Links(documents=np.array([1]), starts=each),
        negatives=Links(documents=np.array([2]), starts=each),
        documents=documents_of(texts),
        ids=np.array([0, 1, 2]),
    )
    joined = joined_examples([whole, cropped(2), whole])
    assert joined.objectives.tolist() == [0, 1, 1, 2]
    assert joined.queries[0] == joined.queries[3] == 0
    batch = build_batch(joined, np.arange(4), epochs=np.zeros(4, np.int64), seed=1)
    assert len(batch.documents) == 3 + 6
    assert joined.ids[joined.queries].tolist() == [0, 0, 1, 0]
    assert joined.negatives.documents[joined.negatives.starts[3]] == joined.negatives.documents[0]


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta"])
def test_a_document_starts_with_its_prompt_and_the_space_after_it_is_of_the_first_word(kind, tmp_path):
    prompts, source = {"document": "the bees: "}, published(tmp_path / "plain", kind)
    tokenizer = open_tokenizer(fetched(source, tmp_path / "model", pooling="mean", prompts=prompts))
    (start, _), [tokens] = tokenizer.frame, tokenizer(["the bees: collect nectar"])
    assert tokenizer.backend.decode(tokens[start:].tolist()).strip() == "collect nectar"


def test_spans_of_a_table_keep_what_every_document_starts_and_ends_with(cropped_papers, encoder):
    tokenizer = open_tokenizer(encoder)
    assert tokenizer.frame == (1, 1)
    examples = open_examples(cropped_papers.training[0], tokenizer.frame)
    drawn = examples.documents.drawn(seed=1, epochs=0)
    whole = examples.documents
    assert len(examples.documents) == 3 * 12
    for row in range(len(drawn)):
        assert drawn[row][0] == whole[row][0]
        assert drawn[row][-1] == whole[row][-1]
        inner, span = (" ".join(map(str, tokens[1:-1])) for tokens in (whole[row], drawn[row]))
        assert f" {span} " in f" {inner} "
    assert (drawn.lengths <= whole.lengths).all()
    assert (drawn.lengths < whole.lengths).any()
