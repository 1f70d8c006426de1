"""Spans that stand for documents, drawn again for each epoch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.encoder.batch import build_batch
from cocite.encoder.data import Examples, Links, Spans, documents_of, joined_examples, open_examples
from cocite.encoder.tokens import open_tokenizer

FIRST, LAST = 101, 102
LENGTHS = st.lists(st.integers(0, 60), min_size=1, max_size=20)


def papers(lengths, *, shortest=10, longest=2**31 - 1, roles=0):
    """Documents of so many tokens, 0, 1, 2, … of which are between the first and the last one, all to be cropped."""
    documents = documents_of([np.array([FIRST, *range(length), LAST], dtype=np.int32) for length in lengths])
    columns = {"shortest": shortest, "longest": longest, "papers": np.arange(len(lengths)), "roles": roles}
    spans = Spans(**{name: np.broadcast_to(column, len(lengths)) for name, column in columns.items()}, head=1, tail=1)
    return type(documents)(**{**vars(documents), "spans": spans})


@given(lengths=LENGTHS, shortest=st.integers(1, 20), more=st.integers(0, 20), epoch=st.integers(-1, 5))
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
