"""Which examples are learned from at which step, and a batch of them as mini-batches of documents and spans."""

from dataclasses import replace
from functools import partial
from itertools import combinations, groupby, pairwise
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.encoder.published import fetched, published
from tests.examples import curve_in, written_pairs
from torch.nn.functional import normalize

from cocite.config.models import TrainingSettings
from cocite.encoder.attention import Dropout, use_fast_dropout
from cocite.encoder.batch import TOKENS_OF_A_START, Collator, build_batch, mini_batches_of_like_length, runs_of
from cocite.encoder.documents import Documents, Spans, documents_of
from cocite.encoder.examples import Examples, Links, joined_examples, open_examples
from cocite.encoder.measuring import triplets_with_others
from cocite.encoder.model import open_encoder
from cocite.encoder.objective import Learner, Objective
from cocite.encoder.schedule import Schedule, round_order
from cocite.encoder.tokens import open_tokenizer

QUERIES = st.lists(st.integers(0, 5), min_size=1, max_size=40).map(np.array)


def one_set(queries, settings, seed=2):
    return Schedule(queries=[queries], settings=settings, seed=seed)


@given(queries=QUERIES, block=st.integers(1, 5), epoch=st.integers(0, 3))
def test_an_epoch_holds_every_triplet_once(queries, block, epoch):
    order = round_order(queries, block=block, seed=3, number=epoch)
    assert sorted(order) == list(range(len(queries)))


def test_seven_triplets_of_a_query_make_blocks_of_four_and_three():
    queries = np.repeat(np.arange(200), 7)
    ordered = queries[round_order(queries, block=4, seed=1, number=0)]
    lengths = [len([*run]) for _, run in groupby(ordered)]
    # The two blocks of a query may happen to be neighbours, and then look like one of seven.
    assert set(lengths) <= {3, 4, 7}
    assert lengths.count(7) < 10


@pytest.mark.parametrize(
    ("loss", "together"), [("mnrl", 1), ("cosent", 1), ("angle", 1), ("triplet", 8), ("infonce", 4), ("supcon", 8)]
)
def test_losses_over_the_batch_shuffle_triplets_one_by_one(loss, together):
    settings = TrainingSettings(loss=loss, batch_size=16)
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
    weights = [{"weight": share} for share in shares] if shares else [{}] * len(sizes)
    terms = [{"triplets": str(number), "loss": "mnrl", **weight} for number, weight in enumerate(weights)]
    given = TrainingSettings(**{"objectives": terms, "mixing": mixing, "batch_size": 8, **settings})
    return Schedule(queries=[np.arange(size) for size in sizes], settings=given, seed=seed)


@given(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=20), batch_size=st.integers(1, 5))
def test_one_example_of_each_query_is_taken_in_an_epoch_and_all_of_them_in_as_many_as_it_has(sizes, batch_size):
    queries = np.repeat(np.arange(len(sizes)), sizes)[np.random.default_rng(2).permutation(sum(sizes))]
    mixed = one_set(queries, TrainingSettings(batch_size=batch_size, one_per_query=True), seed=3)
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


@pytest.mark.parametrize("shares", [[0.4, 0.6], [0.05, 0.95], [0.37, 0.63]])
def test_the_shares_of_examples_hold_within_one_in_a_hundred_over_an_epoch(shares):
    numbers = mixture([300, 700], shares=shares).epoch(3).numbers
    assert len(numbers) == 1000
    assert np.bincount(set_of(numbers, [300, 700])) / 1000 == pytest.approx(shares, abs=0.01)


def test_the_examples_of_a_batch_come_from_all_sets():
    numbers = mixture([500, 500], batch_size=100).epoch(0).numbers
    found = [(numbers[start : start + 100] < 500).sum() for start in range(0, 1000, 100)]
    assert all(30 < first < 70 for first in found)
    assert len(set(found)) > 3


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
    even = mixture([40, 40], mixing="alternating").epoch(0).numbers[::8]
    assert set_of(even, [40, 40]).tolist() == [0, 1] * 5
    uneven = mixture([70, 26], mixing="alternating", shares=[0.75, 0.25]).epoch(0).numbers[::8]
    # 12 batches, 9 and 3 of them: those of the smaller share stand at 1/6, 3/6 and 5/6 of the epoch.
    assert set_of(uneven, [70, 26]).tolist() == [0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0]


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
def test_each_objective_of_a_training_is_validated_by_itself(mixing, train, several):
    folder = train(inputs=several, objectives=SETS, mixing=mixing, epochs=4, validations=2)
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
        near, none = Links(documents=positive, starts=ones), Links(documents=ones[:0], starts=0 * ones)
        columns = {"queries": query, "positives": near, "negatives": none, "ids": np.arange(9)}
        return triplets_with_others(Examples(documents=documents_of([]), **columns)).tolist()

    assert compared([(0, 1), (2, 3), (4, 5)]) == [[0, 1, 3], [2, 3, 5], [4, 5, 1]]
    assert compared([(0, 1), (0, 2), (0, 3), (4, 5)]) == [[0, 2, 5], [4, 5, 2]]
    assert compared([(0, 1), (1, 0)]) == []  # the query itself
    assert compared([(0, 2), (0, 3), (1, 2), (1, 3)]) == []  # its own positives


def test_a_model_learns_from_pairs_without_negatives(train, several, tmp_path, encoder):
    files = written_pairs(tmp_path / "pairs", several.training[0], encoder)
    folder = train(inputs=replace(several, training=[files], validation=[files]), loss="mnrl", epochs=16)
    losses = list(curve_in(folder, "training_loss").values())
    assert sum(losses[-24:]) < sum(losses[:24])
    assert set(curve_in(folder, "validation_accuracy")) == set(curve_in(folder, "validation_loss"))


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
    near, far = (Links(documents=np.array(of), starts=np.array([0, 1, 3, 4])) for of in ([4, 3, 1, 0], [2, 4, 2, 2]))
    documents = documents_of([np.full(1 + document, 10 + document, np.int32) for document in range(5)])
    ids = np.arange(100, 105)
    return Examples(queries=np.array([0, 0, 1]), positives=near, negatives=far, documents=documents, ids=ids)


def collated(numbers, start=128):
    how = {"reads": "tokens", "device": torch.device("cpu"), "features_of": partial(Documents.padded, padding=0)}
    encoder = SimpleNamespace(**how)
    with patch.dict(TOKENS_OF_A_START, cpu=start):
        return Collator(examples=small_examples(), encoder=encoder, settings=TrainingSettings())(np.array(numbers))


def test_a_document_of_several_examples_is_in_a_batch_once_and_each_place_of_a_pair_leads_to_it():
    batch = collated([0, 1], start=0)
    assert sorted(batch.documents.tolist()) == [0, 1, 2, 3, 4]
    assert sum(len(some["input_ids"]) for some in batch.mini_batches) == 5
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
    ids, mask = documents.padded([2, 1], padding=1).values()
    assert ids.tolist() == [[4, 1, 1], [7, 8, 9]]
    assert mask.tolist() == [[1, 0, 0], [1, 1, 1]]


@pytest.fixture(scope="module")
def prepared(encoder, inputs):
    opened = open_encoder(encoder)
    use_fast_dropout(opened)
    return opened, open_examples(inputs.training[0])


def gradients(prepared, *, start, mini_batch_tokens="all", dropout=0.0):
    """The loss of the first eight examples, without a name, and its gradients."""
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
    return loss_and_gradients(loss, model)


def loss_and_gradients(loss, model):
    loss.backward()
    learned = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    return {"": loss.detach(), **learned}


def assert_close(some, others):
    assert some.keys() == others.keys()
    torch.testing.assert_close(some[""], others[""], rtol=1e-5, atol=0)
    for name, gradient in some.items():
        torch.testing.assert_close(gradient, others[name], rtol=1e-4, atol=1e-6)


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
    assert_close(grouped, loss_and_gradients(loss, model))


# Mini-batches of one size in the first two, so that dropout draws the same numbers.
@pytest.mark.parametrize(("start", "tokens", "dropout"), [(0, 10**6, 0.3), (10**6, 40, 0.0)])
def test_recomputed_and_small_mini_batches_have_the_gradients_of_whole_batches(prepared, start, tokens, dropout):
    whole, cut = (gradients(prepared, start=start, mini_batch_tokens=of, dropout=dropout) for of in ("all", tokens))
    assert_close(whole, cut)


FIRST, LAST = 101, 102
OF_PAPERS = st.lists(st.integers(0, 60), min_size=1, max_size=20)


def papers(lengths, *, shortest=10, longest=2**31 - 1, roles=0):
    """Documents of so many tokens, 0, 1, 2, … of which are between the first and the last one, all to be cropped."""
    documents = documents_of([np.array([FIRST, *range(length), LAST], dtype=np.int32) for length in lengths])
    columns = {"shortest": shortest, "longest": longest, "papers": np.arange(len(lengths)), "roles": roles}
    spans = Spans(**{name: np.broadcast_to(column, len(lengths)) for name, column in columns.items()}, head=1, tail=1)
    return replace(documents, spans=spans)


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
    for seed, epoch, role in ((4, 2, 0), (3, 3, 0), (3, 2, 1)):
        other = papers([50] * 30, roles=role).drawn(seed=seed, epochs=epoch)
        assert sum(other[row].tolist() == together[row].tolist() for row in range(30)) < 3


def test_lengths_and_starts_of_spans_are_drawn_evenly():
    drawn = papers([19] * 100_000).drawn(seed=1, epochs=0)
    lengths = drawn.lengths - 2
    assert np.bincount(lengths)[10:] / 100_000 == pytest.approx(np.full(10, 0.1), abs=0.005)
    starts = drawn.offsets[lengths == 10]
    assert np.bincount(starts) / len(starts) == pytest.approx(np.full(10, 0.1), abs=0.015)


def test_documents_that_no_span_is_asked_of_stay_whole():
    drawn = papers([5, 50], shortest=np.array([0, 10])).drawn(seed=1, epochs=0)
    assert drawn[0].tolist() == [FIRST, *range(5), LAST]
    assert len(drawn[1]) <= 52


def cropped(count):
    """Examples of papers 0, 1, …, each near to itself, with the next paper as its negative."""
    numbers = np.arange(count)
    ids = np.concatenate([numbers, numbers, (numbers + 1) % count])
    documents = papers([40] * 3 * count, roles=np.repeat([0, 1, 2], count))
    documents = replace(documents, spans=replace(documents.spans, papers=ids))
    near, far = (Links(documents=numbers + of * count, starts=np.arange(count + 1)) for of in (1, 2))
    return Examples(queries=numbers, positives=near, negatives=far, documents=documents, ids=ids)


def test_the_two_spans_of_a_paper_are_two_documents_of_a_batch_and_change_with_the_epoch():
    examples, numbers = cropped(4), np.arange(4)
    batches = [build_batch(examples, numbers, epochs=np.full(4, epoch), seed=5) for epoch in (0, 0, 1)]
    assert all(len(batch.documents) == 12 for batch in batches)
    tokens = [{row: batch.tokens[place].tolist() for place, row in enumerate(batch.documents)} for batch in batches]
    assert tokens[0] == tokens[1]
    assert sum(tokens[0][row] != tokens[2][row] for row in range(12)) >= 10
    query, positive = batches[0].whole.positives[0].tolist()
    assert batches[0].tokens[query].tolist() != batches[0].tokens[positive].tolist()
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


def test_a_loss_that_corrects_for_popularity_is_told_how_often_papers_are_candidates_of_its_objectives():
    """Documents 3 and 4 are spans of one paper, 13."""
    examples = Examples(
        queries=np.array([0, 0, 1, 2]),
        positives=Links(documents=np.array([2, 3, 4, 3]), starts=np.arange(5)),
        negatives=Links(documents=np.array([4, 1, 5, 2]), starts=np.arange(5)),
        documents=documents_of([np.full(3, number, np.int32) for number in range(6)]),
        ids=np.array([10, 11, 12, 13, 13, 14]),
        objectives=np.array([0, 0, 1, 1]),
    )

    def told(*objectives):
        named = [{"triplets": "ab"[each], "loss": {"kind": "mnrl", **loss}} for each, loss in enumerate(objectives)]
        settings = TrainingSettings(objectives=named)
        batch = build_batch(examples, np.arange(4), comparisons=settings.comparisons)
        of_each = [part.frequencies for [part] in batch.parts]
        return [some[np.argsort(batch.documents)].tolist() if len(some) else [] for some in of_each]

    assert told({"log_q": 0.5}, {"log_q": 1, "sampled_negatives": False}) == [[0, 1, 1, 2, 2, 0], [0, 0, 0, 2, 2, 0]]
    assert told({"log_q": 0.5}, {"log_q": 0.5}) == [[0, 1, 2, 4, 4, 1]]  # one loss over both
    assert told({"scale": 10}, {"log_q": 0.5}) == [[], [0, 0, 1, 2, 2, 1]]


def test_a_whole_document_of_two_objectives_is_one_and_spans_stay_apart():
    texts = documents_of([np.array([FIRST, number, LAST], dtype=np.int32) for number in range(3)])
    near, far = (Links(documents=np.array([of]), starts=np.arange(2)) for of in (1, 2))
    whole = Examples(queries=np.array([0]), positives=near, negatives=far, documents=texts, ids=np.arange(3))
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
    whole = open_examples(cropped_papers.training[0], tokenizer.frame).documents
    drawn = whole.drawn(seed=1, epochs=0)
    assert len(whole) == 3 * 12
    for row in range(len(drawn)):
        assert (drawn[row][0], drawn[row][-1]) == (whole[row][0], whole[row][-1])
        inner, span = (" ".join(map(str, tokens[1:-1])) for tokens in (whole[row], drawn[row]))
        assert f" {span} " in f" {inner} "
    assert (drawn.lengths <= whole.lengths).all()
    assert (drawn.lengths < whole.lengths).any()
