"""Documents in windows, and batches of documents of like length."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.encoder.embedding import batches_of_like_length
from cocite.encoder.tokens import open_tokenizer
from cocite.encoder.windows import texts_of, tokenised_windows

WORDS = {"a": "bees", "b": None, "c": "collect nectar", "d": "bees collect nectar", "e": "loops", "f": None, "g": "in"}


@pytest.fixture
def files(write_documents, tmp_path):
    """Two files of documents, with a, b and c to g; b and f have no text."""
    names = list(WORDS)
    return [
        write_documents(tmp_path / f"{number}.parquet", {name: (WORDS[name], None) for name in some})
        for number, some in enumerate((names[:2], names[2:]))
    ]


def test_texts_come_in_the_order_of_the_files_and_may_be_empty(files):
    assert dict(texts_of(files, " ")) == {name: text or "" for name, text in WORDS.items()}
    assert [name for name, _ in texts_of(files, " ")] == list(WORDS)


def test_a_window_counts_documents_with_a_text_and_without(encoder, files):
    found = list(tokenised_windows(files, open_tokenizer(encoder), start=0, size=3))
    assert [window.names for window in found] == [["a", "c"], ["d", "e"], ["g"]]
    assert [window.rows.tolist() for window in found] == [[0, 2], [3, 4], [6]]
    # Each word is a token; [CLS] and [SEP] are two more.
    assert [window.tokens.lengths.tolist() for window in found] == [[3, 4], [5, 3], [3]]


def test_windows_may_start_later(encoder, files):
    found = list(tokenised_windows(files, open_tokenizer(encoder), start=1, size=3))
    assert [window.names for window in found] == [["d", "e"], ["g"]]
    assert [window.rows.tolist() for window in found] == [[3, 4], [6]]
    assert list(tokenised_windows(files, open_tokenizer(encoder), start=3, size=3)) == []


def test_a_window_may_have_no_text_at_all(encoder, files):
    second = list(tokenised_windows(files, open_tokenizer(encoder), start=0, size=1))[1]
    assert second.names == []
    assert len(second.tokens) == 0


@given(lengths=st.lists(st.integers(1, 40), max_size=60), tokens=st.integers(1, 200))
def test_batches_hold_each_document_once_and_no_more_tokens_than_asked(lengths, tokens):
    lengths = np.array(lengths, dtype=np.int64)
    batches = [lengths[rows] for rows in batches_of_like_length(lengths, tokens)]
    joined = np.concatenate([np.empty(0, np.int64), *batches])
    assert joined.tolist() == sorted(lengths.tolist(), reverse=True)
    rows = [row for batch in batches_of_like_length(lengths, tokens) for row in batch]
    assert sorted(rows) == list(range(len(lengths)))
    for number, batch in enumerate(batches):
        assert len(batch) == 1 or len(batch) * batch.max() <= tokens
        is_last = number == len(batches) - 1
        assert is_last or (len(batch) + 1) * batch.max() > tokens
